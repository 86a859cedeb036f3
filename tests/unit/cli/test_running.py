"""Processes are found by their command lines, and asked to stop."""

import os
import signal
import subprocess

import pytest
from tests.support.processes import python
from tests.support.waiting import eventually

from penstock.cli import running
from penstock.cli.running import processes, terminate
from penstock.errors import CommandError


def test_a_process_is_found_and_stops_when_it_is_asked() -> None:
    words = [python(), "-c", "input()", "a word of its own"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        # Just after it was started the kernel may have no words for it yet.
        eventually(lambda: dict(processes("it"))[process.pid][: len(words)] == words, timeout_s=60)
        terminate(process.pid, "process")
        assert process.wait(60) == -signal.SIGTERM
    terminate(process.pid, "process")  # Gone already.


def test_a_process_of_somebody_else_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(pid: int, number: int) -> None:
        raise PermissionError(pid, number)

    monkeypatch.setattr(running.os, "kill", kill)
    with pytest.raises(CommandError, match="The broker with process id 7 belongs to another user"):
        terminate(7, "broker")


def test_ones_own_process_is_among_them() -> None:
    assert os.getpid() in dict(processes("it"))
