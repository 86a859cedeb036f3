"""The kit brings records again that were not committed, and obeys what a task asks for."""

import pytest

from penstock.connect.errors.kinds import RetriableConnectError
from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import Config, SinkTask
from penstock.connect.plugins.declared import DeclaredSink
from penstock.connect.records import SinkRecord
from penstock.connect.testing import SinkRun

TARGET: list[str] = []


class ShyTask(SinkTask):
    """Takes nothing the first time."""

    def start(self, config: Config) -> None:
        self._is_shy = True

    def put(self, records: list[SinkRecord]) -> None:
        if self._is_shy:
            self._is_shy = False
            raise RetriableConnectError("not yet")
        for record in records:
            if record.value == "bad" and self.context.errant_record_reporter is not None:
                self.context.errant_record_reporter.report(record, ValueError("bad"))
            else:
                TARGET.append(record.value)


class ShySink(DeclaredSink):
    CONFIG = ConfigDef()
    TASK = ShyTask


def test_what_was_not_committed_is_brought_again() -> None:
    TARGET.clear()
    with SinkRun(ShySink, {}) as run:
        run.produce("t", b"a")
        run.produce("t", b"b", partition=1)
        run.deliver()
        run.crash()
        run.deliver()
        run.commit()
        run.crash()
        run.deliver()
        assert (TARGET, run.retries) == (["a", "b"] * 2, 3)
        assert run.committed == {("t", 0): 1, ("t", 1): 1}


def test_a_task_that_never_takes_anything_raises_in_the_end() -> None:
    with SinkRun(ShySink, {}) as run:
        run.produce("t", b"a")
        with pytest.raises(RetriableConnectError):
            run.deliver(timeout_s=0)


def test_records_are_put_aside_only_where_they_are_tolerated() -> None:
    TARGET.clear()
    for tolerance in ("none", "all"):
        with SinkRun(ShySink, {"errors.tolerance": tolerance}) as run:
            run.produce("t", b"bad")
            run.deliver()
            assert len(run.dead) == (tolerance == "all")
    assert TARGET == ["bad"]
