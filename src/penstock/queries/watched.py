"""One query under supervision: its handle while it runs, its status, and its attempts.

A session decides when a query is started, looked at or stopped; here stands what each of these
makes of the query's status. Nothing here waits, and time comes in as `now_ms`.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, cast

from penstock.errors import PenstockError
from penstock.queries.failure import QueryFailure, failure_of
from penstock.queries.progress import progress_of
from penstock.queries.restart import Attempts, restarts_max
from penstock.queries.status import FAILED, FINISHED, RUNNING, STARTING, STOPPED, WAITING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.queries.query import NewQuery, Query
    from penstock.queries.status import QueryStatus

_SETTLE_MS = 20_000  # For each topic; Spark starts a Python process for each, one after the other.
_SETTLING = ("Initializing", "Getting offsets")


class Asked(Enum):
    """What another thread wants done with a query."""

    STOP = "stop"
    REMOVE = "remove"


@dataclass(slots=True)
class Watched:
    """One query: what it is, and how it is doing."""

    new: "NewQuery"
    status: "QueryStatus"
    handle: "Query | None" = None
    attempts: Attempts = field(default_factory=Attempts)
    progressed: bool = False  # A batch was committed since its last start.
    seen: set[tuple[int, str]] = field(default_factory=set)  # Of the progress Spark still shows.
    settles_until_ms: int = 0  # Until then others wait for it, if it is not ready before.
    asked: Asked | None = None

    def set(self, **changes: object) -> None:
        """Change some fields of the status."""
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]

    def is_due(self, now_ms: int) -> bool:
        """Whether it is to be started, for the first time or again."""
        resume_ms = self.attempts.resume_ms
        is_over = self.status.state == WAITING and resume_ms is not None and now_ms >= resume_ms
        return self.asked is None and (self.status.state == STARTING or is_over)

    def start(self, spark: "SparkSession", *, now_ms: int) -> None:
        """Start it; whatever its owner's function raises is raised."""
        self.handle = self.new.start(spark)
        self.settles_until_ms = now_ms + _SETTLE_MS * max(1, len(self.new.topics))
        self.set(state=RUNNING, query_id=str(self.handle.id))

    def settles(self, now_ms: int) -> bool:
        """Whether it still starts its own Python process.

        Spark gives such a process ten seconds; many at once on few cores would all miss them.
        """
        if self.handle is None or self.progressed or now_ms >= self.settles_until_ms:
            return False
        try:
            return str(self.handle.status["message"]).startswith(_SETTLING)
        except spark_is_gone():
            return False  # Spark's process is going away; the next round sees it.

    def take_progress(self) -> None:
        """Add up what Spark reported since the last look."""
        assert self.handle is not None
        shown = {
            (int(one["batchId"]), str(one["timestamp"])): one for one in self.handle.recentProgress
        }
        for key, document in shown.items():
            if key in self.seen:
                continue
            if "addBatch" not in (document.get("durationMs") or {}):
                self.set(input_rows_per_s=0.0, processed_rows_per_s=0.0)
                continue  # Nothing was there to do.
            self.progressed = True
            progress = progress_of(document, rows_are_sums=self.new.rows_are_sums)
            self.set(
                batch=progress.batch,
                rows=self.status.rows + progress.rows,
                input_rows_per_s=progress.input_rows_per_s,
                processed_rows_per_s=progress.processed_rows_per_s,
                batch_ms=progress.batch_ms,
                late_rows=self.status.late_rows + progress.late_rows,
            )
        self.seen = set(shown)

    def fail(self, failure: QueryFailure, *, now_ms: int, wall_ms: int) -> str:
        """After a failure: it waits for its next attempt, or is given up. The sentence to tell."""
        self.handle = None
        limit = restarts_max(failure, self.new.restarts_max, ends=self.new.ends)
        if failure.is_permanent:
            self.attempts = self.attempts.given_up()
        else:
            self.attempts = self.attempts.failed(
                now_ms=now_ms, progressed=self.progressed, in_a_row_max=limit
            )
        resume_ms = self.attempts.resume_ms
        self.set(
            state=FAILED if resume_ms is None else WAITING,
            failure=failure.sentence,
            failed_ms=wall_ms,
            restarts=self.attempts.total - (resume_ms is None),
            input_rows_per_s=None,
            processed_rows_per_s=None,
        )
        then = "It is given up."
        if resume_ms is not None:
            then = f"It starts again in {(resume_ms - now_ms) / 1000:.0f} s."
        return f"{self.new.name} failed: {failure.sentence.rstrip('.')}. {then}"

    def end(self) -> str:
        """It ended by itself and without an error. The sentence to tell."""
        self.handle = None
        self.set(state=FINISHED if self.new.ends else STOPPED)
        return f"{self.new.name} has {self.status.state}: {self.status.rows:,} records read."

    def let_go(self) -> None:
        """It was stopped, or was not running when it was to be stopped."""
        self.handle = None
        self.set(state=STOPPED, input_rows_per_s=None, processed_rows_per_s=None)

    @property
    def route(self) -> str:
        return f"{', '.join(self.new.topics)} → {self.new.output}"


def failure_at_start(error: Exception, new: "NewQuery") -> QueryFailure:
    """A function or an option that is wrong stays wrong; a broker may come back."""
    found = failure_of(f"{type(error).__name__}: {error}", new.checkpoint)
    if found.is_slow_start:
        return found
    ours = isinstance(error, PenstockError)
    text = str(error) if ours else found.sentence
    return QueryFailure(
        text, found.is_permanent or not (ours or "Exception" in type(error).__name__)
    )


def spark_is_gone() -> tuple[type[Exception], ...]:
    """What a call into Spark raises while its process dies, and when it is dead."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    return cast(type[Exception], Py4JError), ConnectionError
