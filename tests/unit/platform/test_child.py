"""Processes: how their ends are told, and how one is known again."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.support.waiting import eventually

from penstock.errors import CommandError
from penstock.platform.child import (
    end_of,
    end_processes,
    how_ended,
    identity_of,
    is_alive,
    memory_bytes,
    send,
    start_process,
    wait_until,
)
from penstock.platform.state import ProcessIdentity

DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); signal.pause()"


def python(program: str) -> list[str]:
    return [sys.executable, "-u", "-c", program]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with code 0"),
        (3, "ended with code 3"),
        (-9, "was ended by signal 9 (SIGKILL)"),
        (-99, "was ended by signal 99"),
    ],
)
def test_an_end_in_words(code: int, words: str) -> None:
    assert how_ended(code) == words


def test_the_end_of_a_log_leaves_out_settings_and_what_came_before(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("of the life before\n")
    since = log.stat().st_size
    with log.open("a") as file:
        file.write("values:\n\ta = 1\n\n" + "".join(f"line {number}\n" for number in range(20)))
    lines = end_of(log, since=since).splitlines()
    assert lines[-1] == "line 19"
    assert len(lines) < 20
    log.write_text("values:\n\ta = 1\nlast\n")
    assert end_of(log) == "values:\nlast"
    assert end_of(tmp_path / "none") == ""


def test_a_process_is_known_again_and_no_other_is_taken_for_it() -> None:
    ours = identity_of(os.getpid())
    assert is_alive(ours)
    assert (memory_bytes(ours.pid) or 0) > 1_000_000
    another = ProcessIdentity(pid=ours.pid, born=ours.born + 1)
    assert not is_alive(another)
    assert not send(another, signal.SIGKILL)  # Or this would be the last line.


def test_what_has_ended_but_was_not_waited_for_is_not_alive(tmp_path: Path) -> None:
    process = start_process(python("input()"), tmp_path / "x.log")
    identity = identity_of(process.pid)
    eventually(lambda: not is_alive(identity), what="its end")
    assert process.wait() != 0


def test_who_does_not_stop_in_time_or_in_a_hurry_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "deaf.log"
    for timeout_s, hurried in ((0.05, False), (60.0, True)):
        deaf = start_process(python(DEAF), log)
        eventually(lambda: "deaf" in log.read_text(), what="a deaf process")
        hurry = threading.Event()
        if hurried:
            hurry.set()
        assert end_processes([deaf], timeout_s=timeout_s, hurry=hurry) == [deaf]
        assert deaf.returncode == -signal.SIGKILL
        log.unlink()


def test_who_stops_when_asked_is_not_killed(tmp_path: Path) -> None:
    willing = start_process(python("import time; time.sleep(600)"), tmp_path / "x.log")
    assert end_processes([willing], timeout_s=60) == []
    assert willing.returncode == -signal.SIGTERM


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path;"
        "from penstock.platform.child import start_process;"
        f"child = start_process([sys.executable, '-c', 'import time; time.sleep(600)'],"
        f" Path({str(tmp_path / 'x.log')!r}));"
        "print(child.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(python(program), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = identity_of(int(parent.stdout.readline()))
        assert is_alive(child)
        parent.kill()
    eventually(lambda: not is_alive(child), what="the end of the child")


def test_a_log_that_has_grown_large_is_set_aside(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    with log.open("wb") as file:
        file.truncate(64 << 20)
    start_process(python("print('new')"), log).wait()
    assert log.read_text() == "new\n"
    assert (tmp_path / "x.log.1").stat().st_size == 64 << 20


def test_what_cannot_be_started_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be started"):
        start_process([str(tmp_path / "nothing")], tmp_path / "x.log")


def test_waiting_ends_with_the_condition_the_time_or_the_stop() -> None:
    stop = threading.Event()
    stop.set()
    assert wait_until(lambda: True, timeout_s=60, stop=stop)
    assert not wait_until(lambda: False, timeout_s=60, stop=stop)
    assert not wait_until(lambda: False, timeout_s=0.01)
