"""A session of queries on an engine that only pretends: what is added, removed, failed, restarted.

The clock stands still unless a test moves it, and each round is a call, so no test waits.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.waiting import eventually

from penstock.errors import ConfigError
from penstock.queries.engine import EngineFailed
from penstock.queries.query import NewQuery
from penstock.queries.session import NameTaken, QuerySession, UnknownQuery

READY = "Waiting for data to arrive"


@dataclass
class FakeQuery:
    """A query that does what the test says."""

    id: str
    message: str = READY
    isActive: bool = True  # noqa: N815  (PySpark's names)
    recentProgress: list[dict[str, Any]] = field(default_factory=list)  # noqa: N815
    error: Exception | None = None
    stops: int = 0

    @property
    def status(self) -> dict[str, Any]:
        return {"message": self.message}

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.stops += 1
        self.isActive = False

    def fail(self, text: str) -> None:
        self.isActive, self.error = False, RuntimeError(text)

    def finish_batch(self, batch: int, rows: int) -> None:
        document = {"batchId": batch, "timestamp": f"t{batch}", "numInputRows": rows}
        self.recentProgress.append({**document, "durationMs": {"addBatch": 1}})


@dataclass
class FakeEngine:
    is_alive: bool = True
    stops: int = 0

    @property
    def spark(self) -> Any:
        return self

    def stop(self) -> None:
        self.is_alive = False
        self.stops += 1


@dataclass
class FakeLags:
    lags: dict[str, int | None]
    asked: list[str] = field(default_factory=list)
    is_closed: bool = False

    def lag(self, group: str, topics: Sequence[str]) -> int | None:
        self.asked.append(group)
        return self.lags[group]

    def close(self) -> None:
        self.is_closed = True


class Stage:
    """A session with its fakes and its clock, and each start of a query in order."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.said: list[str] = []
        self.engines: list[FakeEngine] = []
        self.refuse_engines = 0
        self.started: list[tuple[str, FakeQuery]] = []
        self.lags = FakeLags({})
        self.stop = threading.Event()
        self.session = QuerySession(
            self._engine,
            report=self.said.append,
            open_lags=lambda: self.lags,
            now_ms=lambda: self.now_ms,
        )

    def _engine(self, stop: threading.Event) -> FakeEngine:
        if self.refuse_engines:
            self.refuse_engines -= 1
            raise EngineFailed("Spark did not start: no memory")
        self.engines.append(FakeEngine())
        return self.engines[-1]

    def query(
        self, name: str, *, message: str = READY, error: Exception | None = None, **more: Any
    ) -> NewQuery:
        self.lags.lags.setdefault(name, 0)

        def start(spark: Any) -> Any:
            assert spark is self.engines[-1]
            if error is not None:
                raise error
            self.started.append((name, FakeQuery(f"id of {name}", message)))
            return self.started[-1][1]

        return NewQuery(
            name=name,
            topics=["orders"],
            output=f"{name}.out",
            group=name,
            checkpoint=Path("nowhere"),
            start=cast("Callable[[Any], Any]", start),
            **more,
        )

    def running(self, name: str) -> FakeQuery:
        """The newest start of a query."""
        return [query for each, query in self.started if each == name][-1]

    def starts(self, name: str) -> int:
        return sum(each == name for each, _ in self.started)

    def state(self, name: str) -> str:
        return self.session.statuses[name].state

    def look(self, *, after_ms: int = 0) -> None:
        self.now_ms += after_ms
        self.session.look(self.stop)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_query_that_is_added_shows_at_once_and_runs_with_the_next_look(stage: Stage) -> None:
    stage.session.add(stage.query("first"))
    assert stage.state("first") == "starting Spark"
    stage.session.start(stage.stop)
    stage.look()
    assert (stage.state("first"), stage.session.statuses["first"].query_id) == (
        "running",
        "id of first",
    )
    assert stage.said == ["first runs: orders → first.out."]


def test_a_query_is_added_while_another_runs_which_is_not_touched(stage: Stage) -> None:
    stage.session.add(stage.query("first"))
    stage.session.start(stage.stop)
    stage.look()
    stage.session.add(stage.query("second"))
    assert stage.state("second") == "starting"
    stage.look()
    assert stage.state("first") == stage.state("second") == "running"
    assert stage.starts("first") == 1 and len(stage.engines) == 1


def test_a_query_that_is_removed_is_stopped_and_gone_and_the_other_goes_on(stage: Stage) -> None:
    stage.session.add(stage.query("first"))
    stage.session.add(stage.query("second"))
    stage.session.start(stage.stop)
    stage.look()
    stage.session.remove("first")
    assert stage.running("first").stops == 0  # By the session's own thread alone.
    stage.look()
    assert stage.running("first").stops == 1
    assert list(stage.session.statuses) == ["second"]
    stage.running("second").finish_batch(0, 7)
    stage.look()
    assert stage.session.statuses["second"].rows == 7


def test_a_query_that_is_stopped_stays_in_the_picture_and_makes_room_for_another(
    stage: Stage,
) -> None:
    stage.session.add(stage.query("first"))
    stage.session.start(stage.stop)
    stage.look()
    with pytest.raises(NameTaken, match="first"):
        stage.session.add(stage.query("first"))
    stage.session.stop("first")
    stage.look()
    assert stage.state("first") == "stopped" and stage.session.have_all_ended
    stage.session.add(stage.query("first"))
    stage.look()
    assert stage.state("first") == "running" and stage.starts("first") == 2


def test_a_query_added_anew_is_not_taken_away_by_a_removal_of_the_one_before_it(
    stage: Stage,
) -> None:
    stage.session.add(stage.query("first"))
    stage.session.start(stage.stop)
    stage.look()
    stage.session.stop("first")
    stage.look()
    stage.session.remove("first")
    stage.session.add(stage.query("first"))
    stage.look()
    assert stage.state("first") == "running"


def test_a_query_that_was_never_added_cannot_be_removed(stage: Stage) -> None:
    with pytest.raises(UnknownQuery, match="nobody"):
        stage.session.remove("nobody")


def test_a_query_removed_before_its_start_is_never_started(stage: Stage) -> None:
    stage.session.start(stage.stop)
    stage.session.add(stage.query("first"))
    stage.session.remove("first")
    stage.look()
    assert stage.started == [] and stage.session.statuses == {}


def test_queries_start_one_after_the_other(stage: Stage) -> None:
    stage.session.add(stage.query("first", message="Initializing sources"))
    stage.session.add(stage.query("second"))
    stage.session.start(stage.stop)
    stage.look()
    stage.look(after_ms=5_000)
    assert stage.starts("second") == 0
    stage.running("first").message = READY
    stage.look()
    assert stage.starts("second") == 1


def test_a_query_that_never_gets_ready_does_not_hold_up_the_others_for_ever(stage: Stage) -> None:
    stage.session.add(stage.query("first", message="Initializing sources"))
    stage.session.add(stage.query("second"))
    stage.session.start(stage.stop)
    stage.look()
    stage.look(after_ms=20_000)
    assert stage.starts("second") == 1


def test_a_failed_query_waits_longer_each_time_until_it_has_progressed(stage: Stage) -> None:
    stage.session.add(stage.query("first"))
    stage.session.start(stage.stop)
    for restarts, pause_ms in enumerate([1_000, 2_000, 4_000], start=1):
        stage.look()
        stage.running("first").fail("no broker")
        stage.look()
        status = stage.session.statuses["first"]
        assert (status.state, status.restarts, status.failure) == ("waiting", restarts, "no broker")
        assert stage.said[-1].endswith(f"It starts again in {pause_ms // 1000} s.")
        stage.look(after_ms=pause_ms - 1)
        assert stage.starts("first") == restarts
        stage.now_ms += 1
    stage.look()
    stage.running("first").finish_batch(0, 1)
    stage.running("first").fail("no broker")
    stage.look()
    assert stage.said[-1].endswith("It starts again in 1 s.")


def test_a_query_is_given_up_after_its_limit_of_failures_in_a_row(stage: Stage) -> None:
    stage.session.add(stage.query("first", restarts_max=1))
    stage.session.start(stage.stop)
    stage.look()
    stage.running("first").fail("no broker")
    stage.look()
    stage.look(after_ms=1_000)
    stage.running("first").fail("no broker")
    stage.look()
    assert (stage.state("first"), stage.session.statuses["first"].restarts) == ("failed", 1)
    assert stage.said[-1] == "first failed: no broker. It is given up."


def test_a_wrong_declaration_is_told_and_not_tried_again(stage: Stage) -> None:
    stage.session.add(stage.query("wrong", error=ConfigError("ConfigError: no such column")))
    stage.session.add(stage.query("right"))
    stage.session.start(stage.stop)
    stage.look()
    assert stage.state("wrong") == "failed" and stage.state("right") == "running"
    assert "no such column" in stage.said[0]


def test_a_query_that_has_read_everything_has_finished(stage: Stage) -> None:
    stage.session.add(stage.query("first", ends=True))
    stage.session.start(stage.stop)
    stage.look()
    stage.running("first").finish_batch(0, 1_200)
    stage.running("first").isActive = False
    stage.look()
    assert stage.session.have_all_ended
    assert stage.said[-1] == "first has finished: 1,200 records read."


def test_progress_is_counted_once_though_spark_shows_it_again(stage: Stage) -> None:
    stage.session.add(stage.query("first"))
    stage.session.start(stage.stop)
    stage.look()
    for batch in range(3):
        stage.running("first").finish_batch(batch, 10)
        stage.look()
        stage.look()
    assert stage.session.statuses["first"].rows == 30
    assert stage.session.statuses["first"].batch == 2


def test_a_dead_spark_is_started_again_and_its_queries_after_it(stage: Stage) -> None:
    stage.session.add(stage.query("first"))
    stage.session.start(stage.stop)
    stage.look()
    stage.engines[0].is_alive = False
    stage.refuse_engines = 1
    stage.look()
    assert stage.state("first") == "waiting" and stage.said[-1] == "Spark did not start: no memory"
    stage.look(after_ms=999)
    assert len(stage.engines) == 1
    stage.look(after_ms=1)
    stage.look()
    assert len(stage.engines) == 2 and stage.state("first") == "running"
    assert stage.engines[0].stops == 1


def test_a_dead_spark_stays_down_while_nothing_is_to_run(stage: Stage) -> None:
    stage.session.start(stage.stop)
    stage.engines[0].is_alive = False
    stage.look()
    assert len(stage.engines) == 1
    stage.session.add(stage.query("first"))
    stage.look()
    assert len(stage.engines) == 2 and stage.state("first") == "running"


def test_lags_are_asked_once_a_second_and_told_with_the_status(stage: Stage) -> None:
    stage.session.add(stage.query("first"))
    stage.lags.lags["first"] = 42
    stage.session.start(stage.stop)
    stage.look()
    stage.look(after_ms=999)
    assert stage.session.statuses["first"].lag == 42 and stage.lags.asked == ["first"]
    stage.look(after_ms=1)
    assert stage.lags.asked == ["first"] * 2


def test_a_cluster_that_is_away_is_asked_for_one_lag_only(stage: Stage) -> None:
    stage.session.add(stage.query("first"))
    stage.session.add(stage.query("second"))
    stage.lags.lags["first"] = None
    stage.session.start(stage.stop)
    stage.look()
    assert stage.lags.asked == ["first"]


def test_the_end_stops_every_query_then_spark(stage: Stage) -> None:
    stage.session.add(stage.query("first"))
    stage.session.add(stage.query("second"))
    stage.session.start(stage.stop)
    stage.look()
    stage.session.end()
    assert [query.stops for _, query in stage.started] == [1, 1]
    assert stage.engines[0].stops == 1 and stage.lags.is_closed
    assert {one.state for one in stage.session.statuses.values()} == {"stopped"}


def test_a_start_that_was_called_off_is_no_failure(stage: Stage) -> None:
    stage.refuse_engines = 2
    with pytest.raises(EngineFailed):
        stage.session.start(stage.stop)
    stage.stop.set()
    stage.session.start(stage.stop)
    stage.session.end()


def test_other_threads_add_and_remove_while_the_session_runs() -> None:
    stage = Stage()
    thread = threading.Thread(target=stage.session.run, args=[stage.stop])
    thread.start()
    try:
        stage.session.add(stage.query("first"))
        eventually(lambda: stage.state("first") == "running", what="the first")
        stage.session.add(stage.query("second"))
        eventually(lambda: stage.state("second") == "running", what="the second")
        stage.session.remove("first")
        eventually(lambda: list(stage.session.statuses) == ["second"], what="the removal")
        assert stage.running("first").stops == 1 and stage.running("second").isActive
    finally:
        stage.stop.set()
        thread.join()
    assert stage.running("second").stops == 1 and stage.engines[0].stops == 1
