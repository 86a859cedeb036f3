"""The kit's own promises to authors: a crash forgets, a commit keeps, faults are told."""

from typing import Any

import pytest

from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import Config, SourceTask
from penstock.connect.plugins.declared import DeclaredSource
from penstock.connect.records import SourceRecord
from penstock.connect.testing import SourceRun
from penstock.connect.values.schema import STRING_SCHEMA


class LetterTask(SourceTask):
    """One letter a poll; every third poll must be made again."""

    bad_offset = False

    def start(self, config: Config) -> None:
        found = self.context.offset_reader.offset({"p": 1})
        self._at, self._polls = (found["at"] if found else 0), 0
        self.told: list[tuple[Any, int | None]] = []

    def poll(self) -> list[SourceRecord]:
        self._polls += 1
        if self._polls % 3 == 0:
            raise RetriableConnectError("later")
        self._at += 1
        offset: Any = {"at": [1]} if self.bad_offset else {"at": self._at}
        letter = "abcdefgh"[self._at - 1]
        return [
            SourceRecord(
                topic="t",
                value_schema=STRING_SCHEMA,
                value=letter,
                source_partition={"p": 1},
                source_offset=offset,
            )
        ]

    def commit_record(
        self, record: SourceRecord, *, partition: int | None, offset: int | None
    ) -> None:
        self.told.append((record.value, offset))


class Letters(DeclaredSource):
    CONFIG = ConfigDef()
    TASK = LetterTask


def test_a_crash_forgets_what_was_polled_and_a_commit_keeps_it() -> None:
    with SourceRun(Letters, {}) as run:
        run.poll()
        run.commit()
        assert run.task.told == [("a", 0)]
        run.poll()
        run.crash()
        assert run.values("t") == ["a"] and run.offsets == [({"p": 1}, {"at": 1})]
        run.run_until(lambda: len(run.values("t")) == 4)
        assert run.values("t") == list("abcd")


def test_an_offset_that_no_worker_could_keep_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LetterTask, "bad_offset", True)
    with SourceRun(Letters, {}) as run:
        run.poll()
        with pytest.raises(ConnectError, match="only texts, numbers"):
            run.commit()


def test_waiting_for_what_never_comes_says_what_came() -> None:
    given_up = pytest.raises(AssertionError, match=r"records so far: \{'t': 2\}")
    with SourceRun(Letters, {}) as run, given_up:
        for _ in range(2):
            run.poll()
        run.commit()
        run.run_until(lambda: False, timeout_s=0)


def test_a_transform_that_drops_a_record_is_told_to_the_task() -> None:
    drop = {"transforms": "d", "transforms.d.type": "org.apache.kafka.connect.transforms.Filter"}
    with SourceRun(Letters, drop) as run:
        run.poll()
        run.commit()
        assert run.task.told == [("a", None)] and run.values("t") == []


def test_there_are_only_as_many_tasks_as_the_connector_has() -> None:
    with pytest.raises(AssertionError, match="no task 1"):
        SourceRun(Letters, {}, task=1, tasks_max=2)
