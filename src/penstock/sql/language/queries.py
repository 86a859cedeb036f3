"""A SELECT as frozen values: what is selected, from what, in which windows, joined how."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from penstock.sql.language.expressions import Expression, Star
from penstock.sql.language.names import quoted
from penstock.sql.language.place import Place


@dataclass(frozen=True, slots=True)
class Duration:
    """`10 SECONDS`; the unit is in the singular. Months and years differ in length."""

    count: int
    unit: str

    def __str__(self) -> str:
        return f"{self.count} {self.unit}S"


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of one size, one after the other."""

    size: Duration
    retention: Duration | None = None
    grace: Duration | None = None

    def __str__(self) -> str:
        return f"TUMBLING (SIZE {self.size}{_limits(self)})"


@dataclass(frozen=True, slots=True)
class Hopping:
    """Windows of one size that overlap."""

    size: Duration
    advance: Duration
    retention: Duration | None = None
    grace: Duration | None = None

    def __str__(self) -> str:
        return f"HOPPING (SIZE {self.size}, ADVANCE BY {self.advance}{_limits(self)})"


@dataclass(frozen=True, slots=True)
class SessionGap:
    """Windows that a gap ends."""

    gap: Duration
    retention: Duration | None = None
    grace: Duration | None = None

    def __str__(self) -> str:
        return f"SESSION ({self.gap}{_limits(self)})"


SqlWindow: TypeAlias = Tumbling | Hopping | SessionGap


def _limits(window: SqlWindow) -> str:
    retention = "" if window.retention is None else f", RETENTION {window.retention}"
    grace = "" if window.grace is None else f", GRACE PERIOD {window.grace}"
    return retention + grace


@dataclass(frozen=True, slots=True)
class JoinReach:
    """How far apart the records of a stream-stream join may be."""

    before: Duration
    after: Duration
    grace: Duration | None = None

    def __str__(self) -> str:
        is_even = self.before == self.after
        span = str(self.before) if is_even else f"({self.before}, {self.after})"
        return f"WITHIN {span}" + ("" if self.grace is None else f" GRACE PERIOD {self.grace}")


@dataclass(frozen=True, slots=True)
class Source:
    """A stream or table to read from; the alias is its name if it has none."""

    name: str
    alias: str
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return quoted(self.name) + ("" if self.alias == self.name else f" AS {quoted(self.alias)}")


@dataclass(frozen=True, slots=True)
class Join:
    """One more source, to the right of those before it."""

    kind: OneOf["INNER", "LEFT", "RIGHT", "FULL"]
    source: Source
    condition: Expression
    within: JoinReach | None = None

    def __str__(self) -> str:
        kind = self.kind if self.kind == "INNER" else f"{self.kind} OUTER"
        within = "" if self.within is None else f" {self.within}"
        return f"{kind} JOIN {self.source}{within} ON {self.condition}"


@dataclass(frozen=True, slots=True)
class Selected:
    """An expression with the name it gets, if it was given one."""

    value: Expression
    alias: str | None = None

    def __str__(self) -> str:
        return str(self.value) + ("" if self.alias is None else f" AS {quoted(self.alias)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """A push query says what it emits, a pull query does not."""

    items: tuple[Selected | Star, ...]
    source: Source
    joins: tuple[Join, ...] = ()
    window: SqlWindow | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    partition_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    emit: OneOf["CHANGES", "FINAL"] | None = None
    limit: int | None = None
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return "\n".join(self._clauses())

    def _clauses(self) -> Iterable[str]:
        yield f"SELECT {', '.join(str(item) for item in self.items)}"
        yield f"FROM {self.source}"
        yield from (str(join) for join in self.joins)
        if self.window is not None:
            yield f"WINDOW {self.window}"
        if self.where is not None:
            yield f"WHERE {self.where}"
        if self.group_by:
            yield f"GROUP BY {', '.join(str(key) for key in self.group_by)}"
        if self.partition_by:
            yield f"PARTITION BY {', '.join(str(key) for key in self.partition_by)}"
        if self.having is not None:
            yield f"HAVING {self.having}"
        if self.emit is not None:
            yield f"EMIT {self.emit}"
        if self.limit is not None:
            yield f"LIMIT {self.limit}"
