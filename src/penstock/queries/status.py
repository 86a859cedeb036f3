"""How a query is doing, as a value that can be shown and written to a file."""

from dataclasses import dataclass

STARTING_SPARK = "starting Spark"
STARTING, RUNNING, WAITING = "starting", "running", "waiting"
FAILED, STOPPED, FINISHED = "failed", "stopped", "finished"
ENDED = (FAILED, STOPPED, FINISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatus:
    """How one query is doing."""

    name: str
    output: str
    group: str
    checkpoint: str
    # starting Spark, starting, running, waiting (to be restarted), failed, stopped, finished
    state: str
    query_id: str | None = None
    batch: int | None = None
    input_rows_per_s: float | None = None
    processed_rows_per_s: float | None = None
    rows: int = 0  # Since it was handed over.
    batch_ms: int | None = None
    late_rows: int = 0
    lag: int | None = None  # None: the cluster could not be asked.
    restarts: int = 0
    failure: str | None = None
    failed_ms: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in ENDED
