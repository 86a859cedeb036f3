"""A directory belongs to one tree, and to its last process when the supervisor was killed."""

import fcntl
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import CommandError
from penstock.platform.child import end_processes, identity_of, is_alive, start_process
from penstock.platform.directory import PlatformDirectory
from penstock.platform.settings import PlannedProcess
from penstock.platform.state import ProcessIdentity, ProcessState, TreeState

NEVER = threading.Event()


def tree(supervisor: ProcessIdentity, *below: ProcessIdentity) -> TreeState:
    processes = tuple(
        ProcessState(
            name="x", identity=one, started_ms=0, restarts=0, log="", last_end=None, doors=()
        )
        for one in below
    )
    return TreeState(supervisor=supervisor, started_ms=0, is_up=True, processes=processes)


GONE = ProcessIdentity(pid=os.getpid(), born=1)  # Our number, but not us.


def ignore(text: str) -> None:
    """Whatever is told."""


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[PlatformDirectory]:
    directory = PlatformDirectory(tmp_path / "up")
    assert directory.take(ignore, NEVER)
    yield directory
    directory.leave()


def test_a_second_one_is_refused_with_the_process_that_runs(taken: PlatformDirectory) -> None:
    taken.write_state(tree(identity_of(os.getpid())))
    with pytest.raises(CommandError, match=f"runs already .*in process {os.getpid()}"):
        PlatformDirectory(taken.path).take(ignore, NEVER)


def test_one_that_is_just_starting_is_respected_too(
    taken: PlatformDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.platform.directory._GLANCE_S", 0.1)
    with pytest.raises(CommandError, match="runs already"):
        PlatformDirectory(taken.path).take(ignore, NEVER)


def test_after_it_was_left_it_is_free_and_nothing_but_lock_and_logs_is_there(
    taken: PlatformDirectory,
) -> None:
    taken.write_state(tree(identity_of(os.getpid())))
    plan = PlannedProcess(name="x", command=("server",), properties={"a": "b c"}, doors=())
    file = taken.write_settings(plan)
    assert file.read_text() == "a=b c\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert taken.is_held() or taken.lock_fd is not None
    taken.leave()
    assert not taken.is_held()
    assert taken.state() is None
    assert [p.name for p in taken.path.rglob("*") if p.is_file()] == ["up.lock"]
    again = PlatformDirectory(taken.path)
    assert again.take(ignore, NEVER)
    again.leave()


def test_what_a_killed_supervisor_left_is_waited_for(taken: PlatformDirectory) -> None:
    taken.write_state(tree(GONE))
    told: list[str] = []

    def free(text: str) -> None:
        told.append(text)
        assert taken.lock_fd is not None
        fcntl.flock(taken.lock_fd, fcntl.LOCK_UN)  # As its last process does by ending.

    other = PlatformDirectory(taken.path)
    assert other.take(free, NEVER)
    assert told == ["The last one here was killed; waiting for its processes to end."]
    other.leave()


def test_what_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.platform.directory._ORPHANS_S", 0.1)
    monkeypatch.setattr("penstock.platform.directory._GLANCE_S", 60)
    first = PlatformDirectory(tmp_path)
    assert first.take(ignore, NEVER)
    assert first.lock_fd is not None
    orphan = start_process(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        tmp_path / "x.log",
        keep_open=[first.lock_fd],
    )
    try:
        identity = identity_of(orphan.pid)
        first.write_state(tree(GONE, identity))
        os.close(first.lock_fd)  # The kernel does so when a supervisor is killed.
        first.lock_fd = None
        monkeypatch.setattr("penstock.platform.directory._GLANCE_S", 0.2)
        second = PlatformDirectory(tmp_path)
        assert second.take(ignore, NEVER)
        assert not is_alive(identity)
        second.leave()
    finally:
        end_processes([orphan], timeout_s=0)


def test_a_stop_ends_the_wait(taken: PlatformDirectory) -> None:
    taken.write_state(tree(GONE))
    stop = threading.Event()
    assert not PlatformDirectory(taken.path).take(lambda _: stop.set(), stop)


def test_a_damaged_state_is_none(taken: PlatformDirectory) -> None:
    (taken.path / "up.json").write_text('{"supervisor":')
    assert taken.state() is None


def test_a_directory_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="cannot be used for the platform"):
        PlatformDirectory(tmp_path / "file" / "below").take(ignore, NEVER)
