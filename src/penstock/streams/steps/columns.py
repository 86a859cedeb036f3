"""Steps of column expressions: a host may run them itself, or compute what the expression says."""

from dataclasses import dataclass

from penstock.streams.columns.in_python import Compute, computing
from penstock.streams.columns.resolve import TypedColumn
from penstock.streams.steps.contract import NOTHING, Arrival, RecordStep, Yielded
from penstock.streams.values.records import StreamRecord


@dataclass(frozen=True, slots=True)
class FilterColumns(RecordStep):
    """Forwards where the expression is true, or where it is false; null is neither."""

    column: TypedColumn
    inverted: bool
    compute: Compute

    @classmethod
    def of(cls, column: TypedColumn, *, inverted: bool) -> "FilterColumns":
        """With the function that computes it."""
        return cls(column, inverted, computing(column))

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        found = self.compute(arrival.record)
        passes = found is not None and found != self.inverted
        return Yielded(records=(arrival.record,)) if passes else NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class MapColumns(RecordStep):
    """Computes a new key, a new value, or both; None: that part stays."""

    key: TypedColumn | None = None
    value: TypedColumn | None = None
    key_of: Compute | None = None
    value_of: Compute | None = None

    @classmethod
    def of(cls, key: TypedColumn | None, value: TypedColumn | None) -> "MapColumns":
        """With the functions that compute them."""
        return cls(
            key=key,
            value=value,
            key_of=computing(key) if key else None,
            value_of=computing(value) if value else None,
        )

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        old = record = arrival.record
        if self.key_of is not None:
            record = record.with_key(self.key_of(old))
        if self.value_of is not None:
            record = record.with_value(self.value_of(old))
        return Yielded(records=(record,))


class NoTopic(ValueError):
    """A record for which the expression of a sink names no topic."""


@dataclass(frozen=True, slots=True)
class TopicColumn:
    """The topic of a record, as an expression says it."""

    column: TypedColumn
    compute: Compute

    @classmethod
    def of(cls, column: TypedColumn) -> "TopicColumn":
        """With the function that computes it."""
        return cls(column, computing(column))

    def __call__(self, record: StreamRecord) -> str:
        topic = self.compute(record)
        if not topic:
            raise NoTopic(f"the record of key {record.key!r} has no topic to go to")
        return str(topic)
