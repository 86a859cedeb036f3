"""Pull queries: what may be asked of a table as it is now, and which keys that takes."""

from dataclasses import dataclass
from typing import Any

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.analysis.logical import LogicalQuery
from penstock.sql.analysis.select import analyse_select
from penstock.sql.analysis.walking import columns_of, conjuncts
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import WINDOW_BOUNDS, WINDOWEND, WINDOWSTART
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.expressions import Binary, ColumnName, Expression, InList, Literal
from penstock.sql.language.queries import Select
from penstock.sql.types.conversions import converter
from penstock.sql.types.failures import RowFailure

SCANS = "ksql.query.pull.table.scan.enabled"
_EARLIEST_MS, _LATEST_MS = -(1 << 62), 1 << 62
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """The first and the last time that are asked for, both included."""

    first_ms: int = _EARLIEST_MS
    last_ms: int = _LATEST_MS

    def within(self, sign: str, time_ms: int) -> "TimeBounds":
        """The bounds once a comparison holds too."""
        first = {"=": time_ms, ">": time_ms + 1, ">=": time_ms}.get(sign, self.first_ms)
        last = {"=": time_ms, "<": time_ms - 1, "<=": time_ms}.get(sign, self.last_ms)
        return TimeBounds(max(self.first_ms, first), min(self.last_ms, last))


@dataclass(frozen=True, slots=True, kw_only=True)
class PullQuery:
    """A question, and the keys that answer it; None: all rows are looked at.

    The condition is applied to what the keys bring, whole as it is.
    """

    logical: LogicalQuery
    keys: tuple[tuple[Any, ...], ...] | None
    starts: TimeBounds = TimeBounds()
    ends: TimeBounds = TimeBounds()


def analyse_pull(select: Select, catalog: Catalog, functions: FunctionTable) -> PullQuery:
    """The question; StatementRefused where ksqlDB would not answer it either."""
    _check_clauses(select)
    logical = analyse_select(select, catalog, functions)
    source = logical.sources[0].relation
    if source.kind == "TABLE" and source.query is None and not source.is_read_only:
        raise StatementRefused(
            f"The {source.name} table isn't queryable. To derive a queryable table, you can do "
            f"'CREATE TABLE QUERYABLE_{source.name} AS SELECT * FROM {source.name}'.",
            place=select.source.at,
        )
    if logical.grouping is not None or logical.exploded:
        raise StatementRefused("Pull queries don't support aggregates and table functions.",
                               place=select.at)  # fmt: skip
    keys = _keys(logical, TypeChecker(functions, catalog.types))
    if keys is None and source.kind == "TABLE" and not _may_scan(catalog):
        names = ", ".join(column.name for column in source.columns.keys)
        raise StatementRefused(
            f"WHERE clause missing or without an equality for each key column ({names}). Table "
            f"scans are switched off: SET '{SCANS}'='true'; allows them.",
            place=select.at,
        )
    starts, ends = _window_bounds(logical)
    return PullQuery(logical=logical, keys=keys, starts=starts, ends=ends)


def _check_clauses(select: Select) -> None:
    refused = {
        "JOIN": bool(select.joins),
        "WINDOW": select.window is not None,
        "GROUP BY": bool(select.group_by),
        "PARTITION BY": bool(select.partition_by),
        "HAVING": select.having is not None,
        "EMIT": select.emit is not None,
    }
    for clause, is_there in refused.items():
        if is_there:
            raise StatementRefused(
                f"Pull queries don't support {clause} clauses. To receive a continuous stream of "
                "results, add EMIT CHANGES.",
                place=select.at,
            )


def _may_scan(catalog: Catalog) -> bool:
    return catalog.properties.get(SCANS, "true").lower() == "true"


def _keys(logical: LogicalQuery, checker: TypeChecker) -> tuple[tuple[Any, ...], ...] | None:
    """The keys that the condition names: an equality or a list for each column of the key."""
    if logical.where is None:
        return None
    found: dict[str, list[Any]] = {}
    for part in conjuncts(logical.where):
        named = _named_values(part)
        if named is not None and named[0] not in found:
            values = _constants(named, logical, checker)
            if values is not None:
                found[named[0]] = values
    made: list[tuple[Any, ...]] = [()]
    for name in logical.sources[0].key_names:
        if name not in found:
            return None
        made = [(*one, value) for one in made for value in found[name]]
    return tuple(dict.fromkeys(made)) if all(_is_hashable(key) for key in made) else tuple(made)


def _is_hashable(key: tuple[Any, ...]) -> bool:
    return not any(isinstance(part, list | dict) for part in key)


def _named_values(part: Expression) -> tuple[str, tuple[Expression, ...]] | None:
    if isinstance(part, Binary) and part.operator == "=":
        for column, other in ((part.left, part.right), (part.right, part.left)):
            if isinstance(column, ColumnName) and not columns_of(other):
                return column.name, (other,)
    if not isinstance(part, InList) or part.is_negated or columns_of(part.choices):
        return None
    return (part.value.name, part.choices) if isinstance(part.value, ColumnName) else None


def _constants(
    named: tuple[str, tuple[Expression, ...]], logical: LogicalQuery, checker: TypeChecker
) -> list[Any] | None:
    """The values in the column's type; None where one is not of it (1.5 is no INTEGER)."""
    kind = logical.row[named[0]]
    values = []
    for expression in named[1]:
        compiled = checker.compiled(expression, {})
        try:
            value = compiled.evaluate({})
            convert = converter(compiled.type, kind)
            made = value if convert is None else convert(value)
        except RowFailure:
            return None
        if made is None or (convert is not None and made != value and type(made) is not str):
            return None
        values.append(made)
    return values


def _window_bounds(logical: LogicalQuery) -> tuple[TimeBounds, TimeBounds]:
    bounds = {WINDOWSTART: TimeBounds(), WINDOWEND: TimeBounds()}
    for part in conjuncts(logical.where) if logical.where is not None else ():
        if not isinstance(part, Binary) or part.operator not in _TURNED:
            continue
        sides = ((part.left, part.right, part.operator),
                 (part.right, part.left, _TURNED[part.operator]))  # fmt: skip
        for column, other, sign in sides:
            if not isinstance(column, ColumnName) or column.name not in WINDOW_BOUNDS:
                continue
            if isinstance(other, Literal) and isinstance(other.value, int):
                bounds[column.name] = bounds[column.name].within(sign, other.value)
    return bounds[WINDOWSTART], bounds[WINDOWEND]
