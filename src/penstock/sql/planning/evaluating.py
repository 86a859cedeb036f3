"""Compiled expressions for rows that come: what fails for one row is NULL, and is told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.analysis.logical import AggregateCall, Exploded, KeyPart
from penstock.sql.functions.aggregates.aggregate import SqlAggregator
from penstock.sql.language.expressions import Expression
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import DataType
from penstock.streams.tasks.failures import tell

RowValue = Mapping[str, Any]
Evaluator = Callable[[RowValue], Any]
Failed = Callable[[str], None]  # Is told what went wrong.


@dataclass(frozen=True, slots=True)
class RowCompiler:
    """Makes functions of rows."""

    checker: TypeChecker
    row: Mapping[str, DataType]
    failed: Failed = tell

    def value(self, expression: Expression) -> Evaluator:
        """The value of an expression, NULL where it fails."""
        return _safe(
            self.checker.compiled(expression, self.row).evaluate, str(expression), self.failed
        )

    def truth(self, expression: Expression) -> Callable[[RowValue], bool]:
        """Whether a condition holds; NULL and failures are no."""
        value = self.value(expression)
        return lambda row: value(row) is True

    def key(self, parts: Sequence[Expression]) -> Callable[[RowValue], tuple[Any, ...] | None]:
        """A key of expressions; one column that is NULL is no key."""
        values = [self.value(part) for part in parts]

        def made(row: RowValue) -> tuple[Any, ...] | None:
            key = tuple(value(row) for value in values)
            return None if len(key) == 0 or key == (None,) else key

        return made

    def group_key(self, keys: Sequence[KeyPart]) -> Callable[[RowValue], tuple[Any, ...] | None]:
        """The key of a group; a row with a NULL in it is in no group."""
        made = self.key([key.expression for key in keys])

        def whole(row: RowValue) -> tuple[Any, ...] | None:
            key = made(row)
            return None if key is None or None in key else key

        return whole

    def exploded(self, parts: Sequence[Exploded]) -> Callable[[RowValue], list[dict[str, Any]]]:
        """The rows that table functions make of one: side by side, NULL where one has fewer."""
        made = [
            (
                part.name,
                _safe(self.checker.rows(part.call, self.row).evaluate, str(part.call), self.failed),
            )
            for part in parts
        ]

        def spread(row: RowValue) -> list[dict[str, Any]]:
            columns = {name: list(rows(row) or ()) for name, rows in made}
            longest = max(len(values) for values in columns.values())
            return [
                {**row, **{n: v[at] if at < len(v) else None for n, v in columns.items()}}
                for at in range(longest)
            ]

        return spread

    def aggregates(self, calls: Sequence[AggregateCall]) -> "RowAggregates":
        """All aggregates of a group together."""
        parts = []
        for one in calls:
            compiled = self.checker.aggregate(one.call, self.row)
            arguments = tuple(
                _safe(argument.evaluate, str(one.call), self.failed)
                for argument in compiled.arguments
            )
            parts.append(
                AggregatePart(
                    name=one.name,
                    text=str(one.call),
                    aggregator=compiled.aggregator,
                    arguments=arguments,
                    failed=self.failed,
                )
            )
        return RowAggregates(tuple(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatePart:
    """One aggregate of a group. A row that it fails for leaves its state as it was."""

    name: str
    text: str
    aggregator: SqlAggregator
    arguments: tuple[Evaluator, ...]
    failed: Failed

    def add(self, state: Any, row: RowValue) -> Any:
        """The state with a row."""
        values = [argument(row) for argument in self.arguments]
        return self._tried(state, self.aggregator.add, state, *values)

    def undo(self, state: Any, row: RowValue) -> Any:
        """The state without a row that was added."""
        assert self.aggregator.undo is not None  # Else the statement was refused.
        values = [argument(row) for argument in self.arguments]
        return self._tried(state, self.aggregator.undo, state, *values)

    def merge(self, one: Any, other: Any) -> Any:
        """The state of two sessions that meet; the first one's where it fails."""
        return self._tried(one, self.aggregator.merge, one, other)

    def result(self, state: Any) -> Any:
        """What the state shows; NULL where it fails."""
        return self._tried(None, self.aggregator.result, state)

    def _tried(self, otherwise: Any, act: Callable[..., Any], *values: Any) -> Any:
        try:
            return act(*values)
        except Exception as error:  # noqa: BLE001  (a query must not stop at a row)
            self.failed(f"Error computing aggregate {self.text}: {_reason(error)}")
            return otherwise


@dataclass(frozen=True, slots=True)
class RowAggregates:
    """The aggregates of a group; their states are one list."""

    parts: tuple[AggregatePart, ...]

    def initial(self) -> list[Any]:
        """The states of a group without rows."""
        return [part.aggregator.initialize() for part in self.parts]

    def add(self, _key: Any, row: RowValue, states: list[Any]) -> list[Any]:
        """The states with a row."""
        return [part.add(state, row) for state, part in zip(states, self.parts, strict=True)]

    def undo(self, _key: Any, row: RowValue, states: list[Any]) -> list[Any]:
        """The states without a row that was added."""
        return [part.undo(state, row) for state, part in zip(states, self.parts, strict=True)]

    def merge(self, _key: Any, one: list[Any], other: list[Any]) -> list[Any]:
        """The states of two sessions that meet."""
        return [
            part.merge(first, second)
            for first, second, part in zip(one, other, self.parts, strict=True)
        ]

    def results(self, states: list[Any]) -> dict[str, Any]:
        """What the states show, by name."""
        return {
            part.name: part.result(state) for state, part in zip(states, self.parts, strict=True)
        }


def _safe(evaluate: Evaluator, text: str, failed: Failed) -> Evaluator:
    def value(row: RowValue) -> Any:
        try:
            return evaluate(row)
        except Exception as error:  # noqa: BLE001  (a query must not stop at a row)
            failed(f"Error computing expression {text}: {_reason(error)}")
            return None

    return value


def _reason(error: Exception) -> str:
    if isinstance(error, RowFailure):
        return error.reason
    return f"{type(error).__name__}: {error}"
