"""Declared aggregates: what is added up, said as data, so that a host may add up whole batches.

`aggregate(count=Count(), total=Sum(col("cents")))` gives rows of such columns. A row goes on from
what it shows; where that is not enough, as for an average or a number that JSON has not, it has the
rest under `_parts`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.streams.columns.expression import Column
from penstock.streams.columns.in_python import Compute, computing
from penstock.streams.columns.operations import LONG_MAX, LONG_MIN, STRICT
from penstock.streams.columns.resolve import RecordType, TypedColumn, resolved
from penstock.streams.values.column_types import (
    DOUBLE,
    LONG,
    ColumnType,
    ColumnTypeError,
    list_of,
    struct_of,
)
from penstock.streams.values.records import StreamRecord

PARTS = "_parts"
Kind = Literal["count", "sum", "min", "max", "avg", "first", "last", "collect"]
RETRACTABLE = ("count", "sum", "avg")  # A row can be taken out again.
ORDERED = ("first", "last", "collect")  # The order of the records matters.
COLLECT_MAX = 1_000
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """One column of the result."""

    kind: Kind
    column: Column | None = None
    limit: int = COLLECT_MAX


def Count(column: Column | None = None) -> AggregateColumn:  # noqa: N802
    """How many records there are; of a column, how often it is not null."""
    return AggregateColumn("count", column)


def Sum(column: Column) -> AggregateColumn:  # noqa: N802
    """The sum, 0 at first; null while it is too large for a long."""
    return AggregateColumn("sum", column)


def Min(column: Column) -> AggregateColumn:  # noqa: N802
    """The least."""
    return AggregateColumn("min", column)


def Max(column: Column) -> AggregateColumn:  # noqa: N802
    """The greatest."""
    return AggregateColumn("max", column)


def Avg(column: Column) -> AggregateColumn:  # noqa: N802
    """The mean, as a double."""
    return AggregateColumn("avg", column)


def First(column: Column) -> AggregateColumn:  # noqa: N802
    """The first to arrive that is not null."""
    return AggregateColumn("first", column)


def Last(column: Column) -> AggregateColumn:  # noqa: N802
    """The last to arrive that is not null."""
    return AggregateColumn("last", column)


def Collect(column: Column, *, limit: int = COLLECT_MAX) -> AggregateColumn:  # noqa: N802
    """The first `limit` that are not null, in the order of their arrival."""
    if not 1 <= limit <= COLLECT_MAX:
        raise ColumnTypeError(f"a limit of {limit}: it is between 1 and {COLLECT_MAX}")
    return AggregateColumn("collect", column, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedAggregate:
    """A column of the result, with its type."""

    name: str
    kind: Kind
    column: TypedColumn | None
    limit: int
    type: ColumnType
    compute: Compute | None

    def start(self) -> Any:
        """What it is before the first record."""
        match self.kind:
            case "count":
                return 0
            case "sum":
                return 0 if self.type == LONG else 0.0
            case "avg":
                return [0, 0]
            case "collect":
                return []
        return None

    def added(self, part: Any, record: StreamRecord) -> Any:
        """What it is with one record more."""
        value = True if self.compute is None else self.compute(record)
        return part if value is None else self.merged(part, self.single(value))

    def taken_out(self, part: Any, record: StreamRecord) -> Any:
        """What it is without a record that was in."""
        value = True if self.compute is None else self.compute(record)
        if value is None:
            return part
        if self.kind == "avg":
            return [part[0] - value, part[1] - 1]
        return part - self.single(value)

    def single(self, value: Any) -> Any:
        """What it is of one value alone."""
        match self.kind:
            case "count":
                return 1
            case "avg":
                return [value, 1]
            case "collect":
                return [value]
        return value

    def merged(self, one: Any, two: Any) -> Any:
        """Of two that follow each other, what they are together."""
        match self.kind:
            case "count" | "sum":
                return one + two
            case "avg":
                return [one[0] + two[0], one[1] + two[1]]
            case "collect":
                return [*one, *two][: self.limit]
            case "last":
                return one if two is None else two
            case "first":
                return two if one is None else one
        if one is None or two is None:
            return two if one is None else one
        is_less = STRICT["<"](two, one)
        return two if is_less == (self.kind == "min") and two != one else one

    def result(self, part: Any) -> Any:
        """What it shows."""
        if self.kind == "avg":
            return _mean(*part)
        if self.kind == "sum" and self.type == LONG and not LONG_MIN <= part <= LONG_MAX:
            return None
        return part


def _has_no_json(part: Any) -> bool:
    """Whether JSON would lose a number of it, as infinity."""
    if isinstance(part, list):
        return any(map(_has_no_json, part))
    return isinstance(part, float) and not math.isfinite(part)


def _as_json(part: Any) -> Any:
    """A part as JSON keeps it: numbers that it has not as texts."""
    if isinstance(part, list):
        return [_as_json(one) for one in part]
    return str(part) if _has_no_json(part) else part


def _from_json(kept: Any) -> Any:
    """The part again; a text among what is kept can only be a number."""
    if isinstance(kept, list):
        return [_from_json(one) for one in kept]
    return float(kept) if isinstance(kept, str) else kept


def _mean(total: Any, count: int) -> float | None:
    return None if count == 0 else total / count


@dataclass(frozen=True, slots=True)
class ColumnTally:
    """All columns of a result: rows are dicts."""

    columns: tuple[TypedAggregate, ...]

    @property
    def type(self) -> ColumnType:
        """Of the rows."""
        return struct_of({one.name: one.type for one in self.columns})

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the records matters."""
        return any(one.kind in ORDERED for one in self.columns)

    def start(self) -> Row:
        """The row before the first record."""
        return self.row([one.start() for one in self.columns])

    def add(self, key: Any, value: Any, row: Row) -> Row:
        """The row with one record more."""
        record = StreamRecord(key=key, value=value, timestamp_ms=-1)
        parts = self.parts(row)
        return self.row([c.added(p, record) for c, p in zip(self.columns, parts, strict=True)])

    def take_out(self, key: Any, value: Any, row: Row) -> Row:
        """The row without a record that was in it."""
        record = StreamRecord(key=key, value=value, timestamp_ms=-1)
        parts = self.parts(row)
        return self.row([c.taken_out(p, record) for c, p in zip(self.columns, parts, strict=True)])

    def merge(self, key: Any, one: Row, two: Row) -> Row:
        """Two rows as one."""
        pairs = zip(self.columns, self.parts(one), self.parts(two), strict=True)
        return self.row([column.merged(first, second) for column, first, second in pairs])

    def row(self, parts: list[Any]) -> Row:
        """The row that shows such parts, and keeps those that it does not show."""
        shown = {c.name: c.result(part) for c, part in zip(self.columns, parts, strict=True)}
        hidden = {
            c.name: _as_json(part)
            for c, part in zip(self.columns, parts, strict=True)
            if c.kind == "avg" or shown[c.name] is None is not part or _has_no_json(part)
        }
        return {**shown, PARTS: hidden} if hidden else shown

    def parts(self, row: Row) -> list[Any]:
        """What a row was made from."""
        hidden = row.get(PARTS) or {}
        return [
            _from_json(hidden[one.name]) if one.name in hidden else row.get(one.name)
            for one in self.columns
        ]


@dataclass(frozen=True, slots=True)
class CountTally:
    """Counts: rows are numbers."""

    is_ordered = False
    columns: tuple[TypedAggregate, ...] = ()

    def start(self) -> int:
        """Nothing yet."""
        return 0

    def add(self, key: Any, value: Any, total: int) -> int:
        """One more."""
        return total + 1

    def merge(self, key: Any, one: int, two: int) -> int:
        """Both together."""
        return one + two


AnyTally = ColumnTally | CountTally


def tally_of(columns: dict[str, AggregateColumn], record: RecordType) -> ColumnTally:
    """The aggregates with their types; ColumnTypeError tells what does not fit."""
    if not columns:
        raise ColumnTypeError("aggregate needs a column at least")
    if PARTS in columns:
        raise ColumnTypeError(f"{PARTS} is the name of what averages keep")
    return ColumnTally(tuple(_typed(name, one, record) for name, one in columns.items()))


def _typed(name: str, declared: AggregateColumn, record: RecordType) -> TypedAggregate:
    column = None if declared.column is None else resolved(declared.column, record)
    return TypedAggregate(
        name=name,
        kind=declared.kind,
        column=column,
        limit=declared.limit,
        type=_type(name, declared.kind, column),
        compute=None if column is None else computing(column),
    )


def _type(name: str, kind: Kind, column: TypedColumn | None) -> ColumnType:
    if column is None or kind == "count":
        return LONG
    given = column.type
    wanted: Callable[[ColumnType], bool] = {
        "sum": lambda one: one in (LONG, DOUBLE),
        "avg": lambda one: one in (LONG, DOUBLE),
        "min": lambda one: one.name not in ("list", "struct", "bytes"),
        "max": lambda one: one.name not in ("list", "struct", "bytes"),
    }.get(kind, lambda one: one.name not in ("list", "struct", "bytes"))
    if not wanted(given):
        raise ColumnTypeError(f"{name}: {kind} of a {given} cannot be")
    if kind == "avg":
        return DOUBLE
    return list_of(given) if kind == "collect" else given
