"""The folder of an application: one process at a time, and what it ran last."""

from pathlib import Path

import pytest

from penstock.errors import CommandError
from penstock.queries.status import QueryStatus
from penstock.streams.running.folder import ApplicationFolder
from penstock.streams.running.reset import is_internal


def test_only_one_may_run_it_and_nobody_removes_it_meanwhile(tmp_path: Path) -> None:
    one, other = ApplicationFolder(tmp_path / "app"), ApplicationFolder(tmp_path / "app")
    one.lock()
    with pytest.raises(CommandError, match="app runs already, in process"):
        other.lock()
    with pytest.raises(CommandError, match="runs; stop it first"):
        other.remove()
    one.unlock()
    assert not other.is_running()
    other.remove()
    assert not other.path.exists()


def test_plan_and_status_are_there_again(tmp_path: Path) -> None:
    folder = ApplicationFolder(tmp_path / "app")
    assert folder.plan() is None and folder.statuses() is None and not folder.has_state()
    folder.write_plan({"layout": 1})
    stage = QueryStatus(name="s", output="o", group="g", checkpoint="c", state="running")
    folder.write_statuses("RUNNING", "h:1", [stage])
    assert folder.plan() == {"layout": 1}
    assert (folder.statuses() or {})["stages"] == [stage]
    (folder.checkpoint(0) / "offsets").mkdir(parents=True)
    (folder.checkpoint(0) / "offsets" / "0").touch()
    assert folder.has_state()
    (folder.path / "status.json").write_text("{")
    with pytest.raises(CommandError, match="cannot be read"):
        folder.statuses()


def test_internal_topics_are_told_by_their_names() -> None:
    assert is_internal("app", "app-counts-changelog")
    assert is_internal("app", "app-by-page-repartition")
    foreign = "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000004-topic"
    assert is_internal("app", foreign)
    assert not is_internal("app", "app-orders")
    assert not is_internal("app", "other-counts-changelog")
