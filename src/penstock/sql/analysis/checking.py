"""Types of expressions, asked while a statement is analysed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.expressions.calls import CallCompiler, CompiledAggregate, compile_aggregate
from penstock.sql.expressions.compile import ExpressionCompiler
from penstock.sql.expressions.compiled import CompiledExpression
from penstock.sql.expressions.errors import SqlTypeError
from penstock.sql.expressions.schema import RowSchema
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.expressions import Expression, FunctionCall
from penstock.sql.types.kinds import BOOLEAN, DataType, shown

R = TypeVar("R")
Row = Mapping[str, DataType]


@dataclass(frozen=True, slots=True)
class TypeChecker:
    """The functions and types that expressions may use."""

    functions: FunctionTable
    user_types: Mapping[str, DataType]

    def compiled(self, expression: Expression, row: Row) -> CompiledExpression:
        """The expression over rows; StatementRefused if it has no meaning."""
        return _refusing(lambda: self._compiler(row).compile(expression))

    def rows(self, call: FunctionCall, row: Row) -> CompiledExpression:
        """A table function over rows: its type is that of one of the rows it gives."""
        return _refusing(lambda: CallCompiler(self._compiler(row)).compile_rows(call))

    def aggregate(self, call: FunctionCall, row: Row) -> CompiledAggregate:
        """An aggregate function over rows."""
        return _refusing(lambda: compile_aggregate(call, self._compiler(row)))

    def type_of(self, expression: Expression, row: Row, clause: str) -> DataType:
        """The type of an expression; one that is always NULL has none."""
        found = self.compiled(expression, row).type
        if found is None:
            raise StatementRefused(
                f"{clause} expression {expression} is always NULL and so has no type: CAST gives "
                "it one.",
                place=_place(expression),
            )
        return found

    def check_truth(self, expression: Expression, row: Row, clause: str) -> None:
        """A condition has a truth value."""
        found = self.compiled(expression, row).type
        if found != BOOLEAN:
            raise StatementRefused(
                f"Type error in {clause} expression: Should evaluate to boolean but is "
                f"{expression} ({shown(found)}) instead.",
                place=_place(expression),
            )

    def _compiler(self, row: Row) -> ExpressionCompiler:
        return ExpressionCompiler(RowSchema(row), self.functions, self.user_types)


def _refusing(make: Callable[[], R]) -> R:
    try:
        return make()
    except SqlTypeError as error:
        raise StatementRefused(error.reason, place=error.place) from None


def _place(expression: Any) -> Any:
    return getattr(expression, "at", None)
