"""A query once it is understood: every name has a place in a row, every expression a type.

A row is a dict. A lone source's columns lie there under their names, those of a join under
`ALIAS.NAME`; what an operation adds has a name of its own (`KSQL_AGG_0`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from typing import Literal as OneOf

from penstock.sql.catalog.relations import (
    PSEUDO_COLUMNS,
    ROWPARTITION,
    WINDOW_BOUNDS,
    KeyWindow,
    Relation,
    RelationColumn,
)
from penstock.sql.language.expressions import Expression, FunctionCall
from penstock.sql.language.statements import Kind
from penstock.sql.types.kinds import BIGINT, INTEGER, DataType

JOIN_KEY: Final = "ROWKEY"  # The key of a join that no column has.
GROUP_PREFIX: Final = "KSQL_GROUP_"
AGGREGATE_PREFIX: Final = "KSQL_AGG_"
EXPLODED_PREFIX: Final = "KSQL_EXPLODED_"

JoinShape = OneOf["STREAM-STREAM", "STREAM-TABLE", "TABLE-TABLE", "FOREIGN-KEY"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead:
    """A stream or table in a FROM clause."""

    alias: str
    relation: Relation
    prefix: str = ""  # Of its columns' names in a row.

    @property
    def key_names(self) -> tuple[str, ...]:
        """Where the columns of its key lie in a row."""
        return tuple(self.prefix + column.name for column in self.relation.columns.keys)

    def system_columns(self) -> Iterator[tuple[str, DataType]]:
        """The columns that every record has, and the bounds of windows."""
        for name in PSEUDO_COLUMNS:
            yield name, INTEGER if name == ROWPARTITION else BIGINT
        if self.relation.key_window is not None:
            yield from ((name, BIGINT) for name in WINDOW_BOUNDS)

    def row(self) -> dict[str, DataType]:
        """What it puts into a row."""
        columns = {column.name: column.type for column in self.relation.columns.all}
        return {
            self.prefix + name: kind
            for name, kind in (columns | dict(self.system_columns())).items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSpan:
    """How far before and after a left record a right one may lie; None: the usual grace."""

    before_ms: int
    after_ms: int
    grace_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStep:
    """What is on the left so far, and one more source."""

    kind: OneOf["INNER", "LEFT", "RIGHT", "FULL"]
    shape: JoinShape
    right: SourceRead
    left_key: Expression
    right_key: Expression
    rekeys_left: bool  # The left side's key is another expression before the join.
    rekeys_right: bool
    within: JoinSpan | None = None
    key_columns: tuple[str, ...] = ()  # Where the key's value also lies in a row.
    key_type: DataType | None = None

    @property
    def has_join_key(self) -> bool:
        """Whether the key is in no column, and so under a name of its own."""
        return self.key_columns == (JOIN_KEY,)


@dataclass(frozen=True, slots=True)
class KeyPart:
    """An expression that becomes a column of the key."""

    name: str
    expression: Expression
    type: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCall:
    """An aggregate function, called with expressions over rows."""

    name: str  # Where its result lies in a row.
    call: FunctionCall
    type: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSpan:
    """The windows of an aggregation; None: the usual grace."""

    kind: OneOf["TUMBLING", "HOPPING", "SESSION"]
    size_ms: int  # Of sessions: the gap.
    advance_ms: int
    grace_ms: int | None = None
    retention_ms: int | None = None

    @property
    def key_window(self) -> KeyWindow:
        """What the keys of the results carry."""
        return KeyWindow(self.kind, None if self.kind == "SESSION" else self.size_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """GROUP BY with its aggregates."""

    keys: tuple[KeyPart, ...]
    aggregates: tuple[AggregateCall, ...]
    window: WindowSpan | None
    having: Expression | None
    rekeys: bool  # The rows do not lie by this key yet.
    row: Mapping[str, DataType]  # What HAVING and the outputs read.


@dataclass(frozen=True, slots=True)
class Exploded:
    """A table function; its values lie in the row under the name."""

    name: str
    call: FunctionCall
    type: DataType


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result; `key_part` is its place in the key, None if it is not of the key."""

    name: str
    expression: Expression
    type: DataType
    key_part: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalQuery:
    """A SELECT with types. Its parts act in the order of the fields."""

    sources: tuple[SourceRead, ...]
    joins: tuple[JoinStep, ...] = ()
    where: Expression | None = None
    exploded: tuple[Exploded, ...] = ()
    grouping: Grouping | None = None
    partitioning: tuple[KeyPart, ...] | None = None  # Empty: no key any more. None: as it was.
    outputs: tuple[Output, ...]
    kind: Kind  # Of the result.
    key_types: tuple[DataType, ...]
    key_window: KeyWindow | None = None
    emit: OneOf["CHANGES", "FINAL"] | None = None
    limit: int | None = None
    row: Mapping[str, DataType]  # Before grouping.

    @property
    def final_row(self) -> Mapping[str, DataType]:
        """What the outputs read."""
        return self.row if self.grouping is None else self.grouping.row

    @property
    def source_names(self) -> frozenset[str]:
        """The streams and tables that are read."""
        return frozenset(source.relation.name for source in self.sources)

    @property
    def keys(self) -> tuple[RelationColumn, ...]:
        """The columns of the key, in the order of the key."""
        found = {one.key_part: one for one in self.outputs if one.key_part is not None}
        return tuple(RelationColumn(found[at].name, found[at].type, "KEY") for at in sorted(found))

    @property
    def values(self) -> tuple[Output, ...]:
        """The outputs that are columns of the value."""
        return tuple(one for one in self.outputs if one.key_part is None)
