"""What a compiled expression is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import DataType
from penstock.sql.types.shared_type import Typed

Row: TypeAlias = Mapping[str, Any]
Evaluate: TypeAlias = Callable[[Row], Any]


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """A type, and the function that computes the value from a row.

    `evaluate` raises RowFailure where a row has no value: a number that does not fit, a division by
    zero, a function that fails. The type None is that of the literal NULL.
    """

    type: DataType | None
    evaluate: Evaluate
    is_literal: bool = False
    literal: Any = None  # Its value, if it is one.
    source: object = field(default=None, compare=False, repr=False)  # What was compiled.

    def value_or_null(self, row: Row, failed: Callable[[RowFailure], None]) -> Any:
        """The value; NULL where there is none, and `failed` is told why."""
        try:
            return self.evaluate(row)
        except RowFailure as failure:
            failed(failure)
            return None

    def typed(self) -> Typed:
        """What decides the type of a list that it stands in."""
        text = self.literal if self.is_literal and isinstance(self.literal, str) else None
        is_literal = self.is_literal and self.type is not None
        return Typed(self.type, is_literal, text, self.source)


def literal(value: Any, kind: DataType | None) -> CompiledExpression:
    """An expression that has the same value for every row."""
    return CompiledExpression(kind, lambda _row: value, is_literal=True, literal=value)
