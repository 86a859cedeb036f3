"""Joins: which side each part of a condition belongs to, and what may be joined with what."""

from dataclasses import dataclass, replace
from typing import Any

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.analysis.durations import join_span
from penstock.sql.analysis.logical import JOIN_KEY, JoinShape, JoinStep, SourceRead
from penstock.sql.analysis.scope import SourceScope
from penstock.sql.analysis.walking import columns_of
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.language.expressions import Binary, ColumnName, Expression
from penstock.sql.language.queries import Join
from penstock.sql.language.statements import Kind


@dataclass(frozen=True, slots=True)
class _Left:
    """What stands on the left of the next join."""

    kind: Kind
    sources: tuple[SourceRead, ...]
    key_columns: tuple[str, ...]  # Where its key's value lies; several names of one value.
    is_one_column: bool  # Its key has one column.
    is_windowed: bool
    partitions: int | None
    last_name: str


def analysed_joins(
    joins: tuple[Join, ...], scope: SourceScope, checker: TypeChecker
) -> tuple[tuple[JoinStep, ...], Kind, tuple[str, ...]]:
    """The steps, the kind of the result and the columns that its key lies in."""
    left = _first(scope.sources[0])
    steps = []
    for number, join in enumerate(joins, 1):
        right = scope.sources[number]
        step = _step(join, left, right, scope, checker)
        steps.append(step)
        left = _after(left, step)
    return tuple(steps), left.kind, left.key_columns


def _first(source: SourceRead) -> _Left:
    return _Left(
        kind=source.relation.kind,
        sources=(source,),
        key_columns=source.key_names,
        is_one_column=len(source.key_names) == 1,
        is_windowed=source.relation.key_window is not None,
        partitions=source.relation.partitions,
        last_name=source.relation.name,
    )


def _after(left: _Left, step: JoinStep) -> _Left:
    return replace(
        left,
        sources=(*left.sources, step.right),
        key_columns=step.key_columns,
        is_one_column=len(step.key_columns) > 0
        if step.shape != "FOREIGN-KEY"
        else left.is_one_column,
        partitions=None if step.rekeys_left else left.partitions,
    )


def _step(
    join: Join, left: _Left, right: SourceRead, scope: SourceScope, checker: TypeChecker
) -> JoinStep:
    _check_sources(join, left, right)
    left_key, right_key = _sides(join, left, right, scope)
    types = [checker.type_of(side, scope.row, "JOIN") for side in (left_key, right_key)]
    if types[0] != types[1]:
        raise StatementRefused(
            f"Invalid join condition: types don't match. Got {_shown(left_key)}{{{types[0]}}} = "
            f"{_shown(right_key)}{{{types[1]}}}.",
            place=join.source.at,
        )
    shape = _shape(join, left, right, left_key, right_key)
    rekeys_left = shape != "FOREIGN-KEY" and not _is_key(
        left_key, left.key_columns, left.is_one_column
    )
    rekeys_right = not _is_key(right_key, right.key_names, len(right.key_names) == 1)
    _check_windows(join, left, right, rekeys_left or rekeys_right)
    if not rekeys_left and not rekeys_right and shape != "FOREIGN-KEY":
        _check_partitions(left, right, join)
    return JoinStep(
        kind=join.kind,
        shape=shape,
        right=right,
        left_key=left_key,
        right_key=right_key,
        rekeys_left=rekeys_left,
        rekeys_right=rekeys_right,
        within=None if join.within is None else join_span(join.within),
        key_columns=_key_columns(join, shape, left, left_key, right_key),
        key_type=types[0],
    )


def _check_sources(join: Join, left: _Left, right: SourceRead) -> None:
    if any(source.relation.name == right.relation.name for source in left.sources):
        name = right.relation.name
        reason = f"Can not join '{name}' to '{name}': self joins are not yet supported."
        raise StatementRefused(reason, place=join.source.at)
    kinds = (left.kind, right.relation.kind)
    if kinds == ("TABLE", "STREAM"):
        raise StatementRefused(
            f"Invalid join order: table-stream joins are not supported; only stream-table joins. "
            f"Got {left.last_name} {join.kind} JOIN {right.relation.name}: name the stream first.",
            place=join.source.at,
        )
    if kinds == ("STREAM", "STREAM"):
        if join.within is None:
            raise StatementRefused("Stream-Stream joins must have a WITHIN clause specified. None "
                                   "was provided.", place=join.source.at)  # fmt: skip
    elif join.within is not None:
        words = "Stream-Table" if kinds[0] == "STREAM" else "Table-Table"
        raise StatementRefused(
            f"A window definition was provided for a {words} join. These joins are not windowed. "
            f"Please remove the window definition (ie, the WITHIN clause) and try to execute your "
            f"{words} join again.",
            place=join.source.at,
        )
    if kinds == ("STREAM", "TABLE") and join.kind in ("FULL", "RIGHT"):
        raise StatementRefused(
            f"{join.kind} OUTER JOIN of a stream and a table is not supported: a table's row does "
            "not wait for records. Use INNER or LEFT JOIN.",
            place=join.source.at,
        )


def _sides(
    join: Join, left: _Left, right: SourceRead, scope: SourceScope
) -> tuple[Expression, Expression]:
    """The two expressions of the condition, that of the left side first."""
    condition = join.condition
    if not isinstance(condition, Binary) or condition.operator != "=":
        raise StatementRefused(
            f"Unsupported join expression: {condition}. A join condition is one '=' between the "
            "two sides.",
            place=getattr(condition, "at", None) or join.source.at,
        )
    seen = SourceScope((*left.sources, right), {})
    sides = [seen.resolved(side, "JOIN ON") for side in (condition.left, condition.right)]
    owners = [_owners(side, seen) for side in sides]
    lefts = {source.alias for source in left.sources}
    if all(len(owner) == 1 for owner in owners) and owners[0] != owners[1]:
        if owners[0] <= lefts and owners[1] == {right.alias}:
            return sides[0], sides[1]
        if owners[1] <= lefts and owners[0] == {right.alias}:
            return sides[1], sides[0]
    raise StatementRefused(
        f"Invalid comparison expression '{condition}' in join: each side of the join comparison "
        "must contain references from exactly one source, and the two must be the new source and "
        "one before it.",
        place=getattr(condition, "at", None) or join.source.at,
    )


def _owners(expression: Any, scope: SourceScope) -> set[str]:
    found = (scope.owner(column.name) for column in columns_of(expression))
    return {source.alias for source in found if source is not None}


def _shape(
    join: Join, left: _Left, right: SourceRead, left_key: Expression, right_key: Expression
) -> JoinShape:
    kinds = (left.kind, right.relation.kind)
    if kinds == ("STREAM", "STREAM"):
        return "STREAM-STREAM"
    on_key = _is_key(right_key, right.key_names, len(right.key_names) == 1)
    if not on_key:
        words = "stream-table" if kinds[0] == "STREAM" else "table-table"
        raise StatementRefused(
            f"Invalid join condition: {words} joins require to join on the primary key of the "
            f"right input table. Got {_shown(left_key)} = {_shown(right_key)}.",
            place=join.source.at,
        )
    if kinds[0] == "STREAM":
        return "STREAM-TABLE"
    if _is_key(left_key, left.key_columns, left.is_one_column):
        return "TABLE-TABLE"
    if join.kind in ("FULL", "RIGHT"):
        raise StatementRefused(
            f"Invalid join type: {join.kind} OUTER JOIN is not supported for foreign-key joins. "
            f"Got {_shown(left_key)} = {_shown(right_key)}.",
            place=join.source.at,
        )
    if left.is_windowed or right.relation.key_window is not None:
        raise StatementRefused("Foreign-key joins of windowed tables are not supported.",
                               place=join.source.at)  # fmt: skip
    return "FOREIGN-KEY"


def _is_key(expression: Expression, key_columns: tuple[str, ...], is_one_column: bool) -> bool:
    is_column = isinstance(expression, ColumnName)
    return is_column and is_one_column and expression.name in key_columns  # type: ignore[union-attr]


def _check_windows(join: Join, left: _Left, right: SourceRead, rekeys: bool) -> None:
    right_windowed = right.relation.key_window is not None
    if left.is_windowed != right_windowed:
        raise StatementRefused(
            "Can not join windowed source to non-windowed source: "
            f"{left.last_name} {'is' if left.is_windowed else 'is not'} windowed, "
            f"{right.relation.name} {'is' if right_windowed else 'is not'}.",
            place=join.source.at,
        )
    if left.is_windowed and rekeys:
        raise StatementRefused(
            "Windowed sources can only be joined on their keys: another key would lose the window.",
            place=join.source.at,
        )


def _check_partitions(left: _Left, right: SourceRead, join: Join) -> None:
    mine, its = left.partitions, right.relation.partitions
    if mine is not None and its is not None and mine != its:
        name, other = left.last_name, right.relation.name
        raise StatementRefused(
            f"Can't join {name} with {other} since the number of partitions don't match. {name} "
            f"partitions = {mine}; {other} partitions = {its}. Please repartition either one so "
            "that the number of partitions match.",
            place=join.source.at,
        )


def _key_columns(
    join: Join, shape: JoinShape, left: _Left, left_key: Expression, right_key: Expression
) -> tuple[str, ...]:
    if shape == "FOREIGN-KEY":
        return left.key_columns
    if join.kind == "FULL":
        return (JOIN_KEY,)
    if join.kind == "RIGHT":
        sides: tuple[Expression, ...] = (right_key,)
    else:
        sides = (left_key, right_key) if join.kind == "INNER" else (left_key,)
    named = tuple(side.name for side in sides if isinstance(side, ColumnName))
    if join.kind != "RIGHT" and _is_key(left_key, left.key_columns, left.is_one_column):
        named = tuple(dict.fromkeys((*left.key_columns, *named)))  # Joined on what it was joined.
    return named or (JOIN_KEY,)


def _shown(expression: Expression) -> str:
    return str(expression).replace("`", "")
