"""`penstock lake sync` where Spark's Python process comes too late; without Spark."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.cli.tools.pipelines.lake import _land, _Shown
from penstock.errors import PenstockError

LATE = PenstockError("org.apache.spark.SparkException: Python worker failed to connect back.")
OTHER = PenstockError("the value at offset 3 is no JSON")


class EndedQuery:
    """A query that is over."""

    isActive = False  # noqa: N815  (PySpark's name)

    def __init__(self, failure: Exception | None) -> None:
        self._failure = failure

    def exception(self) -> Exception | None:
        return self._failure

    def batches(self, *, after_batch_id: int) -> list[Any]:
        return []

    def stop(self) -> None:
        return


class Impatient(threading.Event):
    """Nobody waits in these tests; what they would have waited is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses_s: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses_s.append(timeout or 0)
        return self.is_set()


def land(failures: Iterator[Exception | None], stop: Impatient) -> Exception | None:
    return _land(lambda: EndedQuery(next(failures)), _Shown("t -> d"), stop)  # type: ignore


def test_a_slow_start_is_tried_again_with_longer_and_longer_pauses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stop = Impatient()
    assert land(iter([LATE, LATE, LATE, None]), stop) is None
    assert stop.pauses_s == [1, 2, 4]
    assert capsys.readouterr().out.count("too busy to start it") == 3


def test_a_start_that_never_comes_in_time_ends_with_sparks_words() -> None:
    stop = Impatient()
    assert land(iter([LATE] * 6), stop) is LATE
    assert stop.pauses_s == [1, 2, 4, 8, 16]


def test_another_failure_is_final() -> None:
    assert land(iter([LATE, OTHER]), Impatient()) is OTHER


def test_a_query_that_does_not_even_start_in_time_is_tried_again() -> None:
    outcomes = iter([RuntimeError("Python worker failed to connect back."), None])

    def begin() -> EndedQuery:
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome
        return EndedQuery(None)

    assert _land(begin, _Shown("t -> d"), Impatient()) is None  # type: ignore


def test_one_that_was_told_to_stop_meanwhile_begins_nothing() -> None:
    stop = Impatient()
    stop.set()
    assert land(iter([]), stop) is None
