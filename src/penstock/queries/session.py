"""One Spark session and its queries: started one after the other, watched, restarted, told.

One thread calls `start`, `look` again and again, and `end`; or `run`, which does just that. Any
thread may add, stop and remove queries meanwhile, and read `statuses`, a picture that is replaced
as a whole. A query that is added shows in the picture at once; it starts in one of the next rounds.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from penstock.errors import PenstockError
from penstock.queries.engine import EngineFailed
from penstock.queries.failure import QueryFailure, failure_of
from penstock.queries.restart import pause_s
from penstock.queries.status import STARTING, STARTING_SPARK, QueryStatus
from penstock.queries.watched import Asked, Watched, failure_at_start, spark_is_gone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.queries.query import NewQuery

LOOK_S = 0.25
_LAG_MS = 1_000
_SPARK_ENDED = QueryFailure("Spark's process ended unexpectedly; it is started again", False)

Report = Callable[[str], None]


class SparkProcess(Protocol):
    """Spark as a session needs it; `engine.Engine` is the real one."""

    @property
    def spark(self) -> "SparkSession": ...
    @property
    def is_alive(self) -> bool: ...
    def stop(self) -> None: ...


class Lags(Protocol):
    """Who knows how far behind a group is; `lag.LagReader` asks a cluster."""

    def lag(self, group: str, topics: Sequence[str]) -> int | None: ...
    def close(self) -> None: ...


class NameTaken(PenstockError):
    """A query of this name is there already and has not ended."""


class UnknownQuery(PenstockError):
    """No query of this name was added, or it was removed."""


def monotonic_ms() -> int:
    """The clock of pauses."""
    return time.monotonic_ns() // 1_000_000


class QuerySession:
    """Spark's process, started again when it dies, and the queries that run in it."""

    def __init__(
        self,
        start_engine: Callable[[threading.Event], SparkProcess],
        *,
        report: Report,
        open_lags: Callable[[], Lags] | None = None,  # None: lags stay unknown.
        now_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        self._start_engine = start_engine
        self._report = report
        self._open_lags = open_lags
        self._now_ms = now_ms
        self._lock = threading.Lock()  # Of the two below, and of what other threads ask.
        self._queries: dict[str, Watched] = {}
        self.statuses: Mapping[str, QueryStatus] = {}
        self._engine: SparkProcess | None = None
        self._engine_failures = 0
        self._engine_due_ms = 0
        self._lags: Lags | None = None
        self._next_lag_ms = 0

    def add(self, new: "NewQuery") -> None:
        """Hand a query over; one of the same name that has ended makes room for it."""
        status = QueryStatus(
            name=new.name,
            output=new.output,
            group=new.group,
            checkpoint=str(new.checkpoint),
            state=STARTING,
        )
        with self._lock:
            there = self._queries.get(new.name)
            if there is not None and not there.status.has_ended:
                raise NameTaken(f"A query {new.name} is there already; remove it first.")
            self._queries[new.name] = Watched(new=new, status=status)
            self._publish()

    def stop(self, name: str) -> None:
        """Stop a query for good; its status stays in the picture."""
        self._ask(name, Asked.STOP)

    def remove(self, name: str) -> None:
        """Stop a query and forget it; when it is out of the picture it runs no more."""
        self._ask(name, Asked.REMOVE)

    @property
    def have_all_ended(self) -> bool:
        """Whether there is nothing to do until another query is added."""
        return all(one.status.has_ended for one in self._all())

    def run(self, stop: threading.Event) -> None:
        """Start Spark, look after the queries until `stop`, and end Spark."""
        try:
            self.start(stop)
            while not stop.wait(LOOK_S):
                self.look(stop)
        finally:
            self.end()

    def start(self, stop: threading.Event) -> None:
        """Start Spark; EngineFailed if it does not. `stop` calls the start off."""
        if self._open_lags is not None:
            self._lags = self._open_lags()
        try:
            self._engine = self._start_engine(stop)
        except EngineFailed:
            if not stop.is_set():
                raise

    def look(self, stop: threading.Event) -> None:
        """One round: do what was asked, keep Spark alive, watch what runs, start what is due."""
        self._obey()
        self._keep_engine(stop)
        for one in self._all():
            if one.handle is not None:
                self._watch(one)
            elif one.is_due(self._now_ms()) and not self._is_settling():
                self._start(one)
        self._ask_lags()
        self._show()

    def end(self) -> None:
        """Stop what runs, then Spark; harmless if nothing was started."""
        left = [one for one in self._all() if not one.status.has_ended]
        if left:
            self._report("Stopping; a batch that is cut off is taken again by the next run.")
        for one in left:
            self._stop(one)
        self._show()
        if self._engine is not None:
            self._engine.stop()
            self._engine = None
        if self._lags is not None:
            self._lags.close()
            self._lags = None

    def _ask(self, name: str, what: Asked) -> None:
        with self._lock:
            if name not in self._queries:
                raise UnknownQuery(f"There is no query {name}.")
            if self._queries[name].asked is not Asked.REMOVE:
                self._queries[name].asked = what

    def _obey(self) -> None:
        for one in self._all():
            if one.asked is None:
                continue
            if not one.status.has_ended:
                self._stop(one)
            with self._lock:
                # One that had ended may have made room for another of its name by now.
                if one.asked is Asked.REMOVE and self._queries[one.new.name] is one:
                    del self._queries[one.new.name]
                one.asked = None
        self._show()

    def _keep_engine(self, stop: threading.Event) -> None:
        """Spark's process has died: what ran in it failed, and it is started again."""
        if self._engine is not None and self._engine.is_alive:
            return
        if self._engine is not None:
            self._lose_engine(self._engine)
        if self.have_all_ended or self._now_ms() < self._engine_due_ms:
            return
        try:
            self._engine = self._start_engine(stop)
            self._engine_failures = 0
        except EngineFailed as error:
            self._engine_failures += 1
            self._engine_due_ms = self._now_ms() + int(pause_s(self._engine_failures) * 1000)
            if not stop.is_set():
                self._report(str(error))

    def _lose_engine(self, dead: SparkProcess) -> None:
        self._engine = None
        dead.stop()
        for one in self._all():
            if one.handle is not None:
                self._fail(one, _SPARK_ENDED)
        self._show()

    def _start(self, one: Watched) -> None:
        if self._engine is None:
            return
        one.progressed = False
        one.set(state=STARTING)
        self._show()
        try:
            one.start(self._engine.spark, now_ms=self._now_ms())
        except Exception as error:  # noqa: BLE001  (whatever the owner's function raises is told)
            alive = self._engine.is_alive
            self._fail(one, failure_at_start(error, one.new) if alive else _SPARK_ENDED)
            return
        self._report(f"{one.new.name} runs: {one.route}.")

    def _watch(self, one: Watched) -> None:
        assert one.handle is not None
        try:
            one.take_progress()
            if one.handle.isActive:
                return
            error = one.handle.exception()
        except spark_is_gone():
            return  # Spark's process is going away; the next round sees it.
        if error is not None:
            self._fail(one, failure_of(str(error), one.new.checkpoint))
            return
        self._report(one.end())
        self._next_lag_ms = 0  # What it leaves is asked for at once: there may be no later.

    def _fail(self, one: Watched, failure: QueryFailure) -> None:
        wall_ms = time.time_ns() // 1_000_000
        self._report(one.fail(failure, now_ms=self._now_ms(), wall_ms=wall_ms))

    def _stop(self, one: Watched) -> None:
        if one.handle is not None and self._engine is not None and self._engine.is_alive:
            try:
                one.handle.stop()
            except Exception as error:  # noqa: BLE001  (it ends either way; say why it was rough)
                self._report(f"{one.new.name} did not stop in good order: {error}")
        one.let_go()

    def _is_settling(self) -> bool:
        """Whether a query still starts, so that the next one has to wait."""
        now_ms = self._now_ms()
        return any(one.settles(now_ms) for one in self._all())

    def _ask_lags(self) -> None:
        if self._lags is None or self._now_ms() < self._next_lag_ms:
            return
        self._next_lag_ms = self._now_ms() + _LAG_MS
        for one in self._all():
            lag = self._lags.lag(one.new.group, one.new.topics)
            one.set(lag=lag)
            if lag is None:
                return  # The cluster is away; asking for the others would only take time.

    def _all(self) -> list[Watched]:
        with self._lock:
            return list(self._queries.values())

    def _show(self) -> None:
        with self._lock:
            self._publish()

    def _publish(self) -> None:
        self.statuses = {name: self._shown(one.status) for name, one in self._queries.items()}

    def _shown(self, status: QueryStatus) -> QueryStatus:
        """How a query is for others, to whom it matters that it waits for Spark."""
        waits = self._engine is None and status.state == STARTING
        return replace(status, state=STARTING_SPARK) if waits else status
