"""Steps of tables: a topic as rows, rows that are filtered or mapped, rows that meet other rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.streams.steps.contract import NOTHING, Arrival, RecordStep, Yielded, kept
from penstock.streams.values.records import Stamped, StreamRecord, TableChange

JoinKind = Literal["inner", "left", "outer"]


def stamped(value: Any, timestamp_ms: int) -> Stamped | None:
    """A row; a null value is no row."""
    return None if value is None else Stamped(value, timestamp_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRows(RecordStep):
    """A stream of records read as a table: the newest arrival is the row, late or not."""

    has_state: bool
    sends_old: bool

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        record, before = arrival.record, arrival.state
        if record.key is None:
            return kept(arrival)
        old = before.value if before is not None and self.sends_old else None
        state = stamped(record.value, record.timestamp_ms) if self.has_state else None
        change = record.with_value(TableChange(record.value, old))
        return Yielded(records=(change,), state=state, clock=arrival.clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRows(RecordStep):
    """Filters or maps a table's rows: the function's None is no row."""

    function: Callable[[Any, Any], Any]
    has_state: bool
    sends_old: bool
    filters: bool  # A filter does not speak of rows that were not there and still are not.

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one change."""
        record, change = arrival.record, arrival.record.value
        new = self._apply(record.key, change.new)
        old = self._old(arrival) if self.sends_old else None
        if self.filters and self.sends_old and new is None and old is None:
            return kept(arrival)
        state = stamped(new, record.timestamp_ms) if self.has_state else None
        records = (record.with_value(TableChange(new, old)),)
        return Yielded(records=records, state=state, clock=arrival.clock)

    def derive(self, key: Any, rows: tuple[Stamped | None, ...]) -> Stamped | None:
        """The mapped row of the parent's row."""
        row = rows[0]
        return None if row is None else stamped(self._apply(key, row.value), row.timestamp_ms)

    def _old(self, arrival: Arrival) -> Any:
        if self.has_state:
            return None if arrival.state is None else arrival.state.value
        return self._apply(arrival.record.key, arrival.record.value.old)

    def _apply(self, key: Any, value: Any) -> Any:
        return None if value is None else self.function(key, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp(RecordStep):
    """A stream's record meets the row its key has now."""

    key_of: Callable[[Any, Any], Any]
    joiner: Callable[[Any, Any, Any], Any]  # key, left, right
    left: bool

    def lookup_key(self, record: StreamRecord) -> Any:
        """The key of the row; a record without a value is not joined at all."""
        return None if record.value is None else self.key_of(record.key, record.value)

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        record, row = arrival.record, arrival.found
        if record.value is None or (self.lookup_key(record) is None and not self.left):
            return NOTHING
        if row is None and not self.left:
            return NOTHING
        value = None if row is None else row.value
        joined = self.joiner(record.key, record.value, value)
        return Yielded(records=(record.with_value(joined),))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRows(RecordStep):
    """One side of a table-table join: a changed row meets the other table's row of its key."""

    kind: JoinKind
    is_left: bool
    joiner: Callable[[Any, Any], Any]
    sends_old: bool

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one change."""
        record, change, row = arrival.record, arrival.record.value, arrival.found
        if record.key is None:
            return NOTHING
        if row is None and (self._needs_other or (change.new is None and change.old is None)):
            return NOTHING
        other = None if row is None else row.value
        new = self._join(change.new, other)
        old = self._join(change.old, other) if self.sends_old else None
        at_ms = record.timestamp_ms if row is None else max(record.timestamp_ms, row.timestamp_ms)
        return Yielded(records=(record.with_value(TableChange(new, old)).at(at_ms),))

    @property
    def _needs_other(self) -> bool:
        return self.kind == "inner" or (self.kind == "left" and not self.is_left)

    def _join(self, mine: Any, other: Any) -> Any:
        pair = (mine, other) if self.is_left else (other, mine)
        return joined_value(self.kind, self.joiner, *pair)


def joined_value(kind: JoinKind, joiner: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """The joined row; None where the kind of join has none."""
    if left is None and (kind != "outer" or right is None):
        return None
    if right is None and kind == "inner":
        return None
    return joiner(left, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRows(RecordStep):
    """Where the two sides of a table-table join come together, with a store if one was named."""

    kind: JoinKind
    joiner: Callable[[Any, Any], Any]
    has_state: bool
    sends_old: bool

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one change."""
        record, change = arrival.record, arrival.record.value
        state = stamped(change.new, record.timestamp_ms) if self.has_state else None
        sent = change if self.sends_old else TableChange(change.new, None)
        return Yielded(records=(record.with_value(sent),), state=state, clock=arrival.clock)

    def derive(self, key: Any, rows: tuple[Stamped | None, ...]) -> Stamped | None:
        """The joined row of both tables' rows."""
        left, right = rows
        at_ms = max(row.timestamp_ms for row in (left, right, Stamped(None, -1)) if row)
        values = [None if row is None else row.value for row in (left, right)]
        return stamped(joined_value(self.kind, self.joiner, *values), at_ms)
