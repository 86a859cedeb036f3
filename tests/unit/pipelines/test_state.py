"""The state directory: status in one piece, locks that die with their process, requests to stop."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.waiting import eventually

from penstock.errors import CommandError
from penstock.pipelines.state import PipelineStatus, StateDir
from penstock.queries.status import QueryStatus

HOLDER = """
import sys, time
from pathlib import Path
from penstock.pipelines.state import StateDir
StateDir(Path(sys.argv[1])).pipeline("copy").lock()
print("held", flush=True)
time.sleep(60)
"""


def status(name: str = "copy") -> PipelineStatus:
    query = QueryStatus(name=name, output="b", group=name, checkpoint="/c", state="running", lag=3)
    return PipelineStatus(
        name=name,
        file="p.py",
        bootstrap="h:1",
        pid=7,
        master="local[2]",
        updated_ms=5,
        queries=[query],
    )


def test_a_status_comes_back_as_it_was_written(tmp_path: Path) -> None:
    state = StateDir(tmp_path).pipeline("copy")
    state.write_status(status())
    assert StateDir(tmp_path).known("copy").status() == status()
    assert [one.name for one in StateDir(tmp_path).pipelines()] == ["copy"]


def test_fields_of_a_newer_version_are_passed_over(tmp_path: Path) -> None:
    state = StateDir(tmp_path).pipeline("copy")
    state.write_status(status())
    file = state.path / "status.json"
    file.write_text(file.read_text().replace('"pid": 7', '"pid": 7, "mood": "fine"'))
    assert state.status() == status()


def test_a_spoiled_status_is_told_with_its_file(tmp_path: Path) -> None:
    state = StateDir(tmp_path).pipeline("copy")
    state.write_status(status())
    (state.path / "status.json").write_text("{")
    with pytest.raises(CommandError, match=r"status\.json cannot be read"):
        state.status()


def test_an_unknown_pipeline_is_told_with_the_known_ones(tmp_path: Path) -> None:
    StateDir(tmp_path).pipeline("copy").write_status(status())
    with pytest.raises(CommandError, match="known are: copy"):
        StateDir(tmp_path).known("cpoy")


def test_a_pipeline_is_locked_by_one_process_and_freed_by_its_death(tmp_path: Path) -> None:
    ours = StateDir(tmp_path).pipeline("copy")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        assert ours.is_running()
        with pytest.raises(CommandError, match=f"runs already, in process {holder.pid}"):
            ours.lock()
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    eventually(lambda: not ours.is_running(), what="the lock of a dead process to be free")
    ours.lock()
    assert StateDir(tmp_path).pipeline("copy").is_running()
    ours.unlock()
    assert not ours.is_running()


def test_an_old_request_to_stop_does_not_stop_the_next_run(tmp_path: Path) -> None:
    state = StateDir(tmp_path).pipeline("copy")
    state.write_status(status())
    state.ask_to_stop()
    assert state.is_asked_to_stop()
    state.lock()
    assert not state.is_asked_to_stop()
    state.unlock()


def test_the_directory_is_the_option_then_the_environment_then_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_STATE", raising=False)
    assert StateDir.chosen(None).path == tmp_path / ".penstock"
    monkeypatch.setenv("PENSTOCK_STATE", str(tmp_path / "env"))
    assert StateDir.chosen(None).path == tmp_path / "env"
    assert StateDir.chosen("~/given").path == tmp_path / "given"
