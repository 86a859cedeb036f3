"""penstock status: what it prints of a tree, and how it ends."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.platform.child import identity_of
from penstock.platform.directory import PlatformDirectory
from penstock.platform.state import DoorState, ProcessIdentity, ProcessState, TreeState


def write_tree(directory: PlatformDirectory, *, identity: ProcessIdentity | None) -> None:
    """A tree of which we are every process."""
    door = DoorState(service="registry", address="http://127.0.0.1:8081", is_ready=True)
    process = ProcessState(
        name="services",
        identity=identity,
        started_ms=1_790_000_000_000,
        restarts=3,
        log="",
        last_end="was ended by signal 9 (SIGKILL)",
        doors=(door,),
    )
    directory.write_state(
        TreeState(
            supervisor=identity_of(os.getpid()),
            started_ms=1_790_000_000_000,
            is_up=True,
            processes=(process,),
        )
    )


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[PlatformDirectory]:
    """Taken by us."""
    taken = PlatformDirectory(tmp_path)
    assert taken.take(lambda _: None, threading.Event())
    yield taken
    taken.leave()


def test_a_line_for_each_address_and_one_for_all(
    directory: PlatformDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tree(directory, identity=identity_of(os.getpid()))
    assert main(["status", "--dir", str(directory.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = lines[1].split()
    assert cells[:3] == ["registry", "http://127.0.0.1:8081", "up"]
    assert cells[5:7] == ["3", str(os.getpid())]
    assert [line.split()[0] for line in lines] == ["service", "registry", "supervisor", "together"]


def test_something_that_is_down_is_told_and_is_code_1(
    directory: PlatformDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tree(directory, identity=None)
    assert main(["status", "--dir", str(directory.path)]) == 1
    assert "services is down: it was ended by signal 9 (SIGKILL)" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["status", "down"])
def test_where_nothing_runs_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    file = tmp_path / "up.properties"
    file.write_text(f"directory={tmp_path / 'of-the-file'}\n")
    assert main([command, str(file)]) == 1
    assert capsys.readouterr().err == f"Nothing runs in {tmp_path / 'of-the-file'}.\n"
