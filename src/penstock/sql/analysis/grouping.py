"""GROUP BY: aggregates and group keys take the places of the expressions they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.analysis.logical import (
    AGGREGATE_PREFIX,
    GROUP_PREFIX,
    AggregateCall,
    Grouping,
    KeyPart,
    WindowSpan,
)
from penstock.sql.analysis.walking import calls_of, columns_of, rewritten
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import WINDOW_BOUNDS
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.expressions import ColumnName, Expression, FunctionCall
from penstock.sql.language.statements import Kind
from penstock.sql.types.kinds import BIGINT, DataType, MapOf, parts


def aggregate_calls(expression: Any, functions: FunctionTable) -> list[FunctionCall]:
    """The aggregate functions that an expression calls."""
    return [call for call in calls_of(expression) if functions.is_aggregate(call.function)]


@dataclass(slots=True)
class GroupedRows:
    """A GROUP BY while the clauses behind it are read."""

    checker: TypeChecker
    row: Mapping[str, DataType]
    keys: tuple[KeyPart, ...]
    window: WindowSpan | None
    source_kind: Kind
    aggregates: dict[FunctionCall, AggregateCall] = field(default_factory=dict)

    def rewritten(self, expression: Expression, clause: str) -> Expression:
        """The expression over the rows of the groups; StatementRefused if it reads other rows."""
        made: Expression = rewritten(expression, self._replaced)
        known = self.final_row()
        loose = [column for column in columns_of(made) if column.name not in known]
        if loose:
            raise StatementRefused(
                f"Non-aggregate {clause} expression(s) not part of GROUP BY: {expression}\nEither "
                f"add the column(s) to the GROUP BY or remove them from the {clause}.",
                place=loose[0].at,
            )
        return made

    def final_row(self) -> dict[str, DataType]:
        """What lies in a row of the groups."""
        found = {key.name: key.type for key in self.keys}
        found |= {one.name: one.type for one in self.aggregates.values()}
        bounds = {} if self.window is None else dict.fromkeys(WINDOW_BOUNDS, BIGINT)
        return found | bounds

    def finished(self, having: Expression | None, *, rekeys: bool) -> Grouping:
        """The grouping, once all clauses are read."""
        if not self.aggregates:
            raise StatementRefused(
                "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."
            )
        return Grouping(
            keys=self.keys,
            aggregates=tuple(self.aggregates.values()),
            window=self.window,
            having=having,
            rekeys=rekeys,
            row=self.final_row(),
        )

    def _replaced(self, node: Any) -> Any:
        for key in self.keys:
            if node == key.expression:
                return ColumnName(key.name, at=getattr(node, "at", None))
        if isinstance(node, ColumnName) and self.window is not None and node.name in WINDOW_BOUNDS:
            return node
        is_call = isinstance(node, FunctionCall)
        if is_call and self.checker.functions.is_aggregate(node.function):
            return ColumnName(self._aggregate(node).name, at=node.at)
        return None

    def _aggregate(self, call: FunctionCall) -> AggregateCall:
        if call not in self.aggregates:
            self._check(call)
            compiled = self.checker.aggregate(call, self.row)
            if self.source_kind == "TABLE" and compiled.aggregator.undo is None:
                raise StatementRefused(
                    f"The aggregation function(s) ({call.function}) cannot be applied to a table "
                    "source, only to a stream source.",
                    place=call.at,
                )
            assert compiled.type is not None
            name = f"{AGGREGATE_PREFIX}{len(self.aggregates)}"
            self.aggregates[call] = AggregateCall(name=name, call=call, type=compiled.type)
        return self.aggregates[call]

    def _check(self, call: FunctionCall) -> None:
        functions = self.checker.functions
        for argument in call.arguments:
            if aggregate_calls(argument, functions):
                raise StatementRefused(
                    f"Aggregate functions can not be nested: {call}", place=call.at
                )
            inner = [c for c in calls_of(argument) if functions.is_table(c.function)]
            if inner:
                reason = f"Table functions cannot be used inside aggregate functions: {call}"
                raise StatementRefused(reason, place=call.at)


def group_keys(
    expressions: Sequence[Expression], row: Mapping[str, DataType], checker: TypeChecker
) -> tuple[KeyPart, ...]:
    """The expressions of GROUP BY as parts of a key."""
    made = []
    for number, expression in enumerate(expressions):
        if aggregate_calls(expression, checker.functions):
            raise StatementRefused(
                f"GROUP BY does not support aggregate functions: {expression} is an aggregate "
                "function.",
                place=getattr(expression, "at", None),
            )
        made.append(key_part(f"{GROUP_PREFIX}{number}", expression, row, checker, "GROUP BY"))
    return tuple(made)


def key_part(
    name: str,
    expression: Expression,
    row: Mapping[str, DataType],
    checker: TypeChecker,
    clause: str,
) -> KeyPart:
    """An expression as a part of a key; maps cannot be keys."""
    for call in calls_of(expression):
        if checker.functions.is_table(call.function):
            raise StatementRefused(
                f"{clause} expressions do not support table functions: {expression}", place=call.at
            )
    kind = checker.type_of(expression, row, clause)
    if any(isinstance(part, MapOf) for part in parts(kind)):
        raise StatementRefused(
            f"{clause} on an expression that is or contains a map is not supported, as it may lead "
            f"to unexpected behavior due to inconsistent serialization: {expression}",
            place=getattr(expression, "at", None),
        )
    return KeyPart(name, expression, kind)
