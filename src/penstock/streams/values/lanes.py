"""Lanes: what takes a source's records in columns, whole batches of them, past the steps.

A lane leads to one place of the plan, a sink or what adds up, and gives there what the steps before
it would. Records that it cannot be sure of it leaves to the steps, so that whatever is unusual
about a record has one implementation. Columns are Arrow's, but nothing here knows them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRows:
    """What a lane makes of a batch's records."""

    places: Any  # Of the records that come to its end, in the batch: numbers, ascending.
    left: Any  # Of those that have to go step by step.
    key: Any  # The bytes of their keys.
    columns: Sequence[Any]  # At a sink the bytes of their values, elsewhere what is added up.


class RecordLane(Protocol):
    """Takes batches of records."""

    def taken(self, batch: Any) -> LaneRows:
        """What comes to the lane's end; the batch is of one partition, in order."""


class KeyTotal(NamedTuple):
    """What a batch adds up to for a key, or for a key and a window."""

    key: bytes
    start_ms: int  # Of the window; any number where there are none.
    at_ms: int  # The latest time of the records.
    row: Any


class LaneTally(Protocol):
    """Adds up what comes to a lane's end."""

    def totals(self, pieces: Iterable[Any]) -> list[KeyTotal]:
        """A row for each `key` and `start`, in the order of their last records.

        All records of a key and start are in one piece. The columns are `key`, `start`, `at` (the
        time), `row` (ascending) and `i0`, `i1` and so on.
        """

    def merge(self, key: Any, one: Any, two: Any) -> Any:
        """A key's state with what a batch adds up to."""
