"""A query as its owner hands it over, and as it can be asked while it runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Query(Protocol):
    """What is asked of a running query; PySpark's own and that of a lake table."""

    @property
    def id(self) -> str: ...
    @property
    def isActive(self) -> bool: ...  # noqa: N802  (PySpark's names)
    @property
    def recentProgress(self) -> list[Any]: ...  # noqa: N802
    @property
    def status(self) -> dict[str, Any]: ...
    def exception(self) -> Exception | None: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQuery:
    """A query to run: how to start it, and what must be known of it from outside."""

    name: str  # Unique in its session.
    topics: Sequence[str]  # What it reads as a stream; each costs a Python process at the start.
    output: str  # Where its rows go, in a word.
    group: str  # The consumer group that shows how far it is.
    checkpoint: Path
    # Called at every start, always in the session's thread: a thread in which no session is active
    # cannot write to our format.
    start: "Callable[[SparkSession], Query]"
    rows_are_sums: bool = False  # Its source sends what records add up to, not records.
    ends: bool = False  # It is to end by itself when it has read everything.
    restarts_max: int | None = None  # In a row; None: no limit (if it `ends`: a few).
