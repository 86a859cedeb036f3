"""A SELECT against the catalog: clause by clause, in the order in which they act."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.analysis.durations import window_span
from penstock.sql.analysis.grouping import GroupedRows, aggregate_calls, group_keys, key_part
from penstock.sql.analysis.joins import analysed_joins
from penstock.sql.analysis.logical import (
    EXPLODED_PREFIX,
    JOIN_KEY,
    Exploded,
    JoinStep,
    KeyPart,
    LogicalQuery,
    Output,
    WindowSpan,
)
from penstock.sql.analysis.projecting import Item, items_of
from penstock.sql.analysis.scope import SourceScope, scope_of
from penstock.sql.analysis.walking import calls_of, rewritten
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import WINDOW_BOUNDS, KeyWindow
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.expressions import ColumnName, Expression, FunctionCall, Literal
from penstock.sql.language.queries import Select
from penstock.sql.language.statements import Kind
from penstock.sql.types.kinds import BIGINT, DataType


@dataclass(frozen=True, slots=True)
class _From:
    """What the FROM clause gives: rows, their kind, and where their key lies."""

    scope: SourceScope
    joins: tuple[JoinStep, ...]
    kind: Kind
    key_columns: tuple[str, ...]
    key_types: tuple[DataType, ...]
    key_window: KeyWindow | None

    def part_of(self, expression: Expression) -> int | None:
        """The place in the key that a column stands for."""
        if not isinstance(expression, ColumnName) or expression.name not in self.key_columns:
            return None
        if self.joins and self.joins[-1].shape != "FOREIGN-KEY":
            return 0
        return self.key_columns.index(expression.name)


def analyse_select(
    select: Select, catalog: Catalog, functions: FunctionTable, *, is_persistent: bool = False
) -> LogicalQuery:
    """The query with types; StatementRefused says what is wrong and where."""
    checker = TypeChecker(functions, catalog.types)
    read = _read(select, catalog, checker)
    row = read.scope.row
    _check_clauses(select, read, functions)
    where = None if select.where is None else _where(select.where, read.scope, checker)
    partition_by = _partition_by(select, read, checker)
    late = _late_scope(select, read.scope)
    items = items_of(
        select, late, checker,
        is_persistent=is_persistent,
        partition_by=[part.expression for part in partition_by or ()],
    )  # fmt: skip
    exploded, items = _explode(items, row, checker)
    row = {**row, **{one.name: one.type for one in exploded}}
    window = None if select.window is None else window_span(select.window)
    if select.group_by or select.having or _has_aggregates(items, functions):
        return _grouped(select, read, row, where, items, window, checker, exploded)
    outputs = _outputs(items, row, checker, read, partition_by)
    return LogicalQuery(
        sources=read.scope.sources,
        joins=read.joins,
        where=where,
        exploded=exploded,
        partitioning=partition_by,
        outputs=outputs,
        kind=read.kind,
        key_types=read.key_types
        if partition_by is None
        else tuple(part.type for part in partition_by),
        key_window=read.key_window if partition_by is None else None,
        emit=select.emit,
        limit=select.limit,
        row=row,
    )


def _read(select: Select, catalog: Catalog, checker: TypeChecker) -> _From:
    scope = scope_of(select, catalog)
    first = scope.sources[0]
    joins, kind, key_columns = analysed_joins(select.joins, scope, checker)
    types = tuple(column.type for column in first.relation.columns.keys)
    for join in joins:
        if join.shape != "FOREIGN-KEY":
            assert join.key_type is not None
            types = (join.key_type,)
    if key_columns == (JOIN_KEY,):
        scope = SourceScope(scope.sources, {JOIN_KEY: types[0]})
    return _From(scope, joins, kind, key_columns, types, first.relation.key_window)


def _check_clauses(select: Select, read: _From, functions: FunctionTable) -> None:
    if select.window is not None and not select.group_by:
        raise StatementRefused("WINDOW clause requires a GROUP BY clause.", place=select.at)
    if select.window is not None and read.kind == "TABLE":
        raise StatementRefused(
            "WINDOW clause is only supported for streams: a table has rows, not moments.",
            place=select.at,
        )
    if select.partition_by and read.kind == "TABLE":
        raise StatementRefused(
            "PARTITION BY clause is only supported for streams.", place=select.at
        )
    if select.partition_by and select.group_by:
        raise StatementRefused(
            "Only one of PARTITION BY and GROUP BY can be used.", place=select.at
        )
    if select.group_by and read.kind == "TABLE" and read.key_window is not None:
        raise StatementRefused(
            "Table aggregation is not supported on windowed tables.", place=select.at
        )
    if select.emit == "FINAL" and (select.window is None or not select.group_by):
        raise StatementRefused(
            "EMIT FINAL is only supported for windowed aggregations.", place=select.at
        )
    if select.where is not None and aggregate_calls(select.where, functions):
        raise StatementRefused(
            "Aggregate functions are not allowed in WHERE: use HAVING.",
            place=getattr(select.where, "at", None),
        )


def _where(condition: Expression, scope: SourceScope, checker: TypeChecker) -> Expression:
    resolved: Expression = scope.resolved(condition, "WHERE")
    for call in calls_of(resolved):
        if checker.functions.is_table(call.function):
            raise StatementRefused(
                f"Table functions in WHERE clause are not supported: {condition}", place=call.at
            )
    checker.check_truth(resolved, scope.row, "WHERE")
    return resolved


def _partition_by(select: Select, read: _From, checker: TypeChecker) -> tuple[KeyPart, ...] | None:
    if not select.partition_by:
        return None
    if len(select.partition_by) == 1 and select.partition_by[0] == Literal(None):
        return ()
    parts = []
    for expression in select.partition_by:
        resolved = read.scope.resolved(expression, "PARTITION BY")
        if aggregate_calls(resolved, checker.functions):
            reason = f"PARTITION BY does not support aggregate functions: {expression}"
            raise StatementRefused(reason, place=getattr(expression, "at", None))
        parts.append(key_part(str(expression), resolved, read.scope.row, checker, "PARTITION BY"))
    return tuple(parts)


def _has_aggregates(items: Sequence[Item], functions: FunctionTable) -> bool:
    return any(aggregate_calls(item.expression, functions) for item in items)


def _explode(
    items: Sequence[Item], row: Mapping[str, DataType], checker: TypeChecker
) -> tuple[tuple[Exploded, ...], list[Item]]:
    """Table functions taken out of the items; what they give lies in the row."""
    found: dict[FunctionCall, Exploded] = {}

    def change(node: Any) -> Any:
        if not isinstance(node, FunctionCall) or not checker.functions.is_table(node.function):
            return None
        for argument in node.arguments:
            if any(checker.functions.is_table(c.function) for c in calls_of(argument)):
                raise StatementRefused(f"Table functions can not be nested: {node}", place=node.at)
        if node not in found:
            kind = checker.rows(node, row).type
            if kind is None:
                raise StatementRefused(f"{node} gives rows without a type.", place=node.at)
            found[node] = Exploded(f"{EXPLODED_PREFIX}{len(found)}", node, kind)
        return ColumnName(found[node].name, at=node.at)

    changed = [Item(one.name, rewritten(one.expression, change), one.at) for one in items]
    return tuple(found.values()), changed


def _outputs(
    items: Sequence[Item],
    row: Mapping[str, DataType],
    checker: TypeChecker,
    read: _From,
    partition_by: tuple[KeyPart, ...] | None,
) -> tuple[Output, ...]:
    made = []
    for item in items:
        kind = checker.type_of(item.expression, row, "SELECT")
        made.append(Output(item.name, item.expression, kind, _part(item, read, partition_by)))
    return _keys_once(made, items, is_join=bool(read.joins))


def _part(item: Item, read: _From, partition_by: tuple[KeyPart, ...] | None) -> int | None:
    if partition_by is None:
        return read.part_of(item.expression)
    for number, part in enumerate(partition_by):
        if item.expression == part.expression:
            return number
    return None


def _keys_once(
    outputs: Sequence[Output], items: Sequence[Item], *, is_join: bool
) -> tuple[Output, ...]:
    """Of columns that a join made equal the first is the key; one column twice is refused."""
    seen: dict[int, Output] = {}
    made = []
    for output, item in zip(outputs, items, strict=True):
        part = output.key_part
        if part is None or part not in seen:
            made.append(output)
            if part is not None:
                seen[part] = output
            continue
        if seen[part].expression == output.expression:
            raise StatementRefused(
                f"The projection contains a key column (`{seen[part].name}`) more than once, "
                f"aliased as: `{seen[part].name}` and `{output.name}`.\nEach key column must "
                "only be in the projection once. If you intended to copy the key into the value, "
                "then consider using the AS_VALUE function to indicate which key reference should "
                "be copied.",
                place=item.at,
            )
        made.append(Output(output.name, output.expression, output.type))
    return tuple(made)


def _grouped(
    select: Select,
    read: _From,
    row: Mapping[str, DataType],
    where: Expression | None,
    items: Sequence[Item],
    window: WindowSpan | None,
    checker: TypeChecker,
    exploded: tuple[Exploded, ...],
) -> LogicalQuery:
    if exploded:
        raise StatementRefused(
            "Table functions cannot be used with aggregations.", place=exploded[0].call.at
        )
    _check_grouped(select, items, checker)
    keys = group_keys(
        [read.scope.resolved(key, "GROUP BY") for key in select.group_by], read.scope.row, checker
    )
    groups = GroupedRows(checker, row, keys, window, read.kind)
    rewritten_items = [_group_item(item, groups) for item in items]
    having = None
    if select.having is not None:
        late = _late_scope(select, read.scope)
        having = groups.rewritten(late.resolved(select.having, "HAVING"), "HAVING")
    final = groups.final_row()
    if having is not None:
        checker.check_truth(having, final, "HAVING")
    outputs = [
        Output(
            item.name,
            item.expression,
            checker.type_of(item.expression, final, "SELECT"),
            _group_part(item.expression, keys),
        )
        for item in rewritten_items
    ]
    return LogicalQuery(
        sources=read.scope.sources,
        joins=read.joins,
        where=where,
        grouping=groups.finished(having, rekeys=_rekeys(keys, read)),
        outputs=_keys_once(outputs, items, is_join=False),
        kind="TABLE",
        key_types=tuple(key.type for key in keys),
        key_window=None if window is None else window.key_window,
        emit=select.emit,
        limit=select.limit,
        row=row,
    )


def _check_grouped(select: Select, items: Sequence[Item], checker: TypeChecker) -> None:
    if select.group_by:
        return
    if select.having is not None:
        raise StatementRefused("HAVING requires a GROUP BY clause.",
                               place=getattr(select.having, "at", None))  # fmt: skip
    calls = [call for item in items for call in aggregate_calls(item.expression, checker.functions)]
    names = ", ".join(dict.fromkeys(call.function for call in calls))
    raise StatementRefused(
        "Use of aggregate functions requires a GROUP BY clause. Aggregate function(s): " + names,
        place=calls[0].at,
    )


def _group_item(item: Item, groups: GroupedRows) -> Item:
    return Item(item.name, groups.rewritten(item.expression, "SELECT"), item.at)


def _late_scope(select: Select, scope: SourceScope) -> SourceScope:
    """What SELECT and HAVING may name: the bounds of windows too."""
    if select.window is None:
        return scope
    return SourceScope(scope.sources, {**scope.added, **dict.fromkeys(WINDOW_BOUNDS, BIGINT)})


def _group_part(expression: Expression, keys: Sequence[KeyPart]) -> int | None:
    names = [key.name for key in keys]
    if isinstance(expression, ColumnName) and expression.name in names:
        return names.index(expression.name)
    return None


def _rekeys(keys: Sequence[KeyPart], read: _From) -> bool:
    """Whether the rows have to move: they lie by another key, or in windows."""
    if read.key_window is not None or read.kind == "TABLE":
        return True
    parts = [read.part_of(key.expression) for key in keys]
    return parts != list(range(len(read.key_types)))
