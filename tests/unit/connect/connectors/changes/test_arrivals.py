"""Waiting for a database, also in a worker that has many descriptors."""

import fcntl
import os
import resource
import socket
from collections.abc import Iterator

import pytest

from penstock.connect.connectors.changes.arrivals import has_arrived

_BEYOND_SELECT = 1_024


class _Descriptor:
    """One end of a connection, at a number of its own."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_nothing_then_bytes_then_the_end(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    assert not has_arrived(ours, 0.0)
    theirs.send(b"x")
    assert has_arrived(ours, 60.0)
    ours.recv(1)
    theirs.close()
    assert has_arrived(ours, 60.0)


def test_descriptors_that_select_refuses(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= _BEYOND_SELECT:
        pytest.skip("this process may not open so many files")
    number = fcntl.fcntl(ours.fileno(), fcntl.F_DUPFD_CLOEXEC, _BEYOND_SELECT)
    try:
        assert number >= _BEYOND_SELECT
        assert not has_arrived(_Descriptor(number), 0.0)
        theirs.send(b"x")
        assert has_arrived(_Descriptor(number), 60.0)
    finally:
        os.close(number)
