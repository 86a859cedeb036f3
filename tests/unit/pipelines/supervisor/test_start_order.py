"""Sources start one after the other, since Spark gives each one's Python process ten seconds.

The supervisor is the real one. Spark's queries are stood in for by ones that take a while to get
ready, on a clock that only the supervisor's own waiting moves.
"""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.pipelines import Topic, pipeline
from penstock.pipelines.declaration import Pipeline
from penstock.pipelines.state import StateDir
from penstock.pipelines.supervisor import Order, Supervisor
from penstock.queries.engine import Engine

LATE = "Python worker failed to connect back."
READY_S = 3.0
NEVER_S = 1e9


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def monotonic_ns(self) -> int:
        return int(self.now_s * 1e9)

    def time_ns(self) -> int:
        return int(self.now_s * 1e9)


class Rounds(threading.Event):
    """Lets the supervisor look so many times; each of its waits is over at once."""

    def __init__(self, clock: Clock, count: int) -> None:
        super().__init__()
        self._clock = clock
        self._left = count

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.now_s += timeout or 0.0
        self._left -= 1
        if self._left <= 0:
            self.set()
        return self.is_set()


class Source:
    """A query that says what Spark's says while its sources start, and afterwards."""

    id = "0a1b2c3d"
    recentProgress: list[Any] = []  # noqa: N815, RUF012  (PySpark's name; nobody changes it)

    def __init__(self, clock: Clock, *, ready_after_s: float, is_late: bool) -> None:
        self._clock = clock
        self._began_s = clock.now_s
        self._ready_after_s = ready_after_s
        self._is_late = is_late

    @property
    def is_starting(self) -> bool:
        return self._age_s < self._ready_after_s

    @property
    def status(self) -> dict[str, Any]:
        if not self.is_starting:
            return {"message": "Waiting for data to arrive"}
        is_young = self._age_s < self._ready_after_s / 2
        return {"message": "Initializing sources" if is_young else "Getting offsets from penstock"}

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self.is_starting or not self._is_late

    @property
    def _age_s(self) -> float:
        return self._clock.now_s - self._began_s

    def exception(self) -> Exception | None:
        return None if self.isActive else RuntimeError(LATE)

    def stop(self) -> None:
        self._is_late = True


class Started:
    """What was started, in order, and what was still starting at that moment."""

    def __init__(
        self, clock: Clock, first_is_late: bool, ready_after_s: Callable[[str], float]
    ) -> None:
        self.names: list[str] = []
        self.overlaps: list[tuple[str, str]] = []
        self._clock = clock
        self._first_is_late = first_is_late  # Of each query.
        self._ready_after_s = ready_after_s
        self._sources: list[tuple[str, Source]] = []

    def start(self, _spark: object, _declared: Pipeline, query: str, **_: object) -> Source:
        self.overlaps += [(name, query) for name, one in self._sources if one.is_starting]
        is_late = self._first_is_late and query not in self.names
        after_s = self._ready_after_s(query)
        source = Source(self._clock, ready_after_s=after_s, is_late=is_late)
        self.names.append(query)
        self._sources.append((query, source))
        return source


@pipeline(inputs=Topic("a", value="x LONG", dead_letter="a.dlq"), output=Topic("out-a"))
def first(rows: Any) -> Any:
    return rows


@pipeline(
    inputs={"left": Topic("b", value="x LONG"), "right": Topic("c", value="x LONG")},
    output=Topic("out-b"),
)
def second(left: Any, right: Any) -> Any:
    return left.join(right, "x")


@pipeline(inputs=Topic("d", value="x LONG"), output=Topic("out-d"))
def third(rows: Any) -> Any:
    return rows


PIPELINES = [first, second, third]
QUERIES = [query for one in PIPELINES for query in one.queries]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Started]:
    """Let a supervisor look so many times, and tell what it started."""
    clock, where = Clock(), "penstock.pipelines.supervisor"
    engine = SimpleNamespace(is_alive=True, spark=None, stop=lambda: None)
    monkeypatch.setattr(f"{where}.time", clock)
    monkeypatch.setattr("penstock.queries.session.time", clock)
    monkeypatch.setattr(f"{where}.create_missing", lambda *_: [])
    monkeypatch.setattr(f"{where}.LagReader.close", lambda _: None)
    monkeypatch.setattr(f"{where}.LagReader.lag", lambda *_: None)
    monkeypatch.setattr("penstock.client.wire.raw_cluster.cluster_for", lambda _: nullcontext())
    monkeypatch.setattr(Engine, "start", lambda *_, **__: engine)

    def run(
        rounds: int,
        *,
        first_is_late: bool = False,
        ready_after_s: Callable[[str], float] = lambda _: READY_S,
    ) -> Started:
        started = Started(clock, first_is_late, ready_after_s)
        monkeypatch.setattr("penstock.pipelines.queries.start_query", started.start)
        order = Order(
            pipelines=PIPELINES,
            files={},
            state=StateDir(tmp_path),
            settings={"bootstrap.servers": "localhost:1"},
        )
        Supervisor(order, lambda _: None).run(Rounds(clock, rounds))
        return started

    return run


def test_a_source_starts_when_the_one_before_it_is_ready(run: Callable[..., Started]) -> None:
    started = run(200)
    assert started.overlaps == []
    assert started.names == QUERIES


def test_sources_that_came_too_late_start_again_one_after_the_other(
    run: Callable[..., Started],
) -> None:
    started = run(400, first_is_late=True)
    assert started.overlaps == []
    assert sorted(started.names) == sorted(2 * QUERIES)


def test_a_source_that_never_gets_ready_does_not_hold_the_others_up_for_ever(
    run: Callable[..., Started],
) -> None:
    stuck = QUERIES[0]
    started = run(400, ready_after_s=lambda name: NEVER_S if name == stuck else READY_S)
    assert started.names == QUERIES
    assert {before for before, _ in started.overlaps} == {stuck}
