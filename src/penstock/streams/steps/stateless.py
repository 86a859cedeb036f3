"""Steps that know only the record before them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.streams.steps.contract import NOTHING, Arrival, RecordStep, Yielded
from penstock.streams.values.records import StreamRecord, TableChange


@dataclass(frozen=True, slots=True)
class PassOn(RecordStep):
    """Forwards what it gets: merges, and the windowed sides of a join."""


@dataclass(frozen=True, slots=True)
class FilterRecords(RecordStep):
    """Forwards what the predicate takes."""

    predicate: Callable[[Any, Any], bool]
    inverted: bool = False

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        record = arrival.record
        passes = bool(self.predicate(record.key, record.value)) != self.inverted
        return Yielded(records=(record,)) if passes else NOTHING


@dataclass(frozen=True, slots=True)
class KeepKeyed(RecordStep):
    """Forwards records that have a key: others have no place in a topic that is read by key."""

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        return NOTHING if arrival.record.key is None else Yielded(records=(arrival.record,))


@dataclass(frozen=True, slots=True)
class MapRecords(RecordStep):
    """One record becomes any number of others, at the same time."""

    mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        record = arrival.record
        pairs = self.mapper(record.key, record.value)
        return Yielded(records=tuple(record.with_key(k).with_value(v) for k, v in pairs))


@dataclass(frozen=True, slots=True)
class RestampRecords(RecordStep):
    """Forwards each record at a time of its own making."""

    time_of: Callable[[Any, Any], int | None]

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        record = arrival.record
        time_ms = self.time_of(record.key, record.value)
        return Yielded(records=(record if time_ms is None else record.at(time_ms),))


@dataclass(frozen=True, slots=True)
class PeekRecords(RecordStep):
    """Shows each record to a function; passes it on unless it is the end of the line."""

    action: Callable[[Any, Any], object]
    ends: bool = False

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        self.action(arrival.record.key, arrival.record.value)
        return NOTHING if self.ends else Yielded(records=(arrival.record,))


@dataclass(frozen=True, slots=True)
class BranchRecords(RecordStep):
    """Names the first branch whose predicate takes the record; the host forwards to that child."""

    predicates: tuple[Callable[[Any, Any], bool], ...]

    def branch(self, record: StreamRecord) -> int | None:
        """The number of the branch; None drops the record."""
        for number, predicate in enumerate(self.predicates):
            if predicate(record.key, record.value):
                return number
        return None


@dataclass(frozen=True, slots=True)
class ToStream(RecordStep):
    """A table's changes as a stream of new values, tombstones among them."""

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one change."""
        record = arrival.record
        return Yielded(records=(record.with_value(record.value.new),))


@dataclass(frozen=True, slots=True)
class RegroupRows(RecordStep):
    """A changed row leaves its old group and enters its new one; in one group it does both."""

    mapper: Callable[[Any, Any], tuple[Any, Any]]

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one change."""
        record, change = arrival.record, arrival.record.value
        new, old = self._pair(record.key, change.new), self._pair(record.key, change.old)
        if old is not None and new is not None and old[0] == new[0]:
            moves: Sequence[tuple[Any, TableChange]] = [(old[0], TableChange(new[1], old[1]))]
        else:
            gone = [] if old is None else [(old[0], TableChange(None, old[1]))]
            moves = gone + ([] if new is None else [(new[0], TableChange(new[1], None))])
        return Yielded(records=tuple(record.with_key(k).with_value(c) for k, c in moves))

    def _pair(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        pair = None if value is None else self.mapper(key, value)
        return None if pair is None or pair[0] is None or pair[1] is None else pair
