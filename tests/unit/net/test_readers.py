"""Readers: who is told that bytes have come, and who no more, with epoll and without."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from penstock.net.readers import HAS_EPOLL, Readers

EITHER = [True, False] if HAS_EPOLL else [False]


@contextmanager
def pairs(count: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    opened = [socket.socketpair() for _ in range(count)]
    for _, ours in opened:
        ours.setblocking(False)
    try:
        yield opened
    finally:
        for theirs, ours in opened:
            theirs.close()
            ours.close()


def with_readers(scenario: Callable[[Readers], Awaitable[None]], *, uses_epoll: bool) -> None:
    async def run() -> None:
        readers = Readers(asyncio.get_running_loop(), uses_epoll=uses_epoll)
        async with asyncio.timeout(60):
            await scenario(readers)
        readers.close()

    asyncio.run(run())


@pytest.mark.parametrize("uses_epoll", EITHER)
def test_everybody_whose_bytes_have_come_is_told_until_they_are_taken(uses_epoll: bool) -> None:
    async def scenario(readers: Readers) -> None:
        heard: list[bytes] = []
        with pairs(3) as opened:
            for theirs, ours in opened:
                readers.add(ours.fileno(), lambda ours=ours: heard.append(ours.recv(1)))  # type: ignore[misc]
                theirs.send(b"ab")
            while len(heard) < 6:
                await asyncio.sleep(0)
            assert sorted(heard) == [b"a"] * 3 + [b"b"] * 3
            for _, ours in opened:
                readers.remove(ours.fileno())

    with_readers(scenario, uses_epoll=uses_epoll)


@pytest.mark.parametrize("uses_epoll", EITHER)
def test_whoever_is_removed_is_not_told_not_even_in_the_same_turn(uses_epoll: bool) -> None:
    async def scenario(readers: Readers) -> None:
        with pairs(2) as opened:
            told: list[int] = []
            numbers = [ours.fileno() for _, ours in opened]

            def end_both(own: int) -> None:
                told.append(own)
                for number in numbers:
                    readers.remove(number)

            for (theirs, ours), number in zip(opened, numbers, strict=True):
                readers.add(ours.fileno(), lambda number=number: end_both(number))  # type: ignore[misc]
                theirs.send(b"x")
            while not told:
                await asyncio.sleep(0)
            for _ in range(5):
                await asyncio.sleep(0)
            assert len(told) == 1

    with_readers(scenario, uses_epoll=uses_epoll)


@pytest.mark.parametrize("uses_epoll", EITHER)
def test_a_peer_that_is_gone_is_told_of_and_the_clock_is_that_of_the_turn(uses_epoll: bool) -> None:
    async def scenario(readers: Readers) -> None:
        loop = asyncio.get_running_loop()
        with pairs(1) as [(theirs, ours)]:
            gone = asyncio.Event()
            readers.add(ours.fileno(), gone.set)
            closed_s = loop.time()
            theirs.close()
            await gone.wait()
            assert ours.recv(1) == b""
            assert closed_s <= readers.now_s <= loop.time()
            readers.remove(ours.fileno())

    with_readers(scenario, uses_epoll=uses_epoll)


@pytest.mark.parametrize("uses_epoll", EITHER)
def test_who_was_removed_can_be_added_again(uses_epoll: bool) -> None:
    async def scenario(readers: Readers) -> None:
        with pairs(1) as [(theirs, ours)]:
            heard = asyncio.Event()
            readers.add(ours.fileno(), lambda: None)
            readers.remove(ours.fileno())
            theirs.send(b"x")
            readers.add(ours.fileno(), heard.set)
            await heard.wait()
            readers.remove(ours.fileno())

    with_readers(scenario, uses_epoll=uses_epoll)
