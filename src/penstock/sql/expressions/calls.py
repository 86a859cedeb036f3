"""Calls of functions: the variant is chosen by the arguments' types, lambdas are typed by it.

A lambda's parameters get the types that the other arguments gave; then its body is compiled like
any expression, and its type fills the last blanks. At run time a lambda is a plain function.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.sql.expressions.compiled import CompiledExpression, Evaluate, Row, literal
from penstock.sql.expressions.errors import SqlTypeError
from penstock.sql.functions.aggregates.aggregate import SqlAggregator
from penstock.sql.functions.overloads import FunctionRefused, Overload, choose
from penstock.sql.functions.patterns import Exact, Filled, LambdaPattern, LambdaShape, Pattern
from penstock.sql.language import expressions as x
from penstock.sql.language.words import UNITS
from penstock.sql.types.conversions import converter
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import INTERVAL_UNIT, ArrayOf, DataType, shown

if TYPE_CHECKING:
    from penstock.sql.expressions.compile import ExpressionCompiler

# What a function may raise about the values it was given; a MemoryError is none of them.
FAILURES = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError)


class CallCompiler:
    """Compiles the calls in one compiler's expressions."""

    def __init__(self, compiler: "ExpressionCompiler") -> None:
        self._compiler = compiler

    def compile(self, call: x.FunctionCall) -> CompiledExpression:
        """A call of a scalar function; raises SqlTypeError."""
        try:
            function = self._compiler.functions.scalar(call.function)
            return self._variant(call, function.overloads)
        except FunctionRefused as error:
            raise SqlTypeError(str(error), call.at) from None

    def compile_rows(self, call: x.FunctionCall) -> CompiledExpression:
        """A call of a table function: its type is that of a row, its value the list of rows."""
        try:
            function = self._compiler.functions.table(call.function)
            compiled = self._variant(call, function.overloads)
        except FunctionRefused as error:
            raise SqlTypeError(str(error), call.at) from None
        kind = compiled.type.item if isinstance(compiled.type, ArrayOf) else None
        return CompiledExpression(kind, lambda row: compiled.evaluate(row) or [])

    def _variant(self, call: x.FunctionCall, overloads: Sequence[Overload]) -> CompiledExpression:
        takes_unit = any(Exact(INTERVAL_UNIT) in o.signature.parameters for o in overloads)
        compiled = [
            None if isinstance(a, x.Lambda) else _unit(a) if takes_unit and _is_unit(a) else
            self._argument(a, call) for a in call.arguments
        ]  # fmt: skip
        types = [
            LambdaShape(len(argument.parameters)) if isinstance(argument, x.Lambda)
            else one.type if one else None
            for argument, one in zip(call.arguments, compiled, strict=True)
        ]  # fmt: skip
        overload, filled = choose(call.function, overloads, types)
        patterns = overload.signature.patterns_for(len(types)) or ()
        evaluates = [
            self._filled(argument, one, pattern, filled)
            for argument, one, pattern in zip(call.arguments, compiled, patterns, strict=True)
        ]
        kind = filled.type_of(overload.signature.result)
        if overload.result_type is not None:
            kind = overload.result_type(*types)
        return CompiledExpression(kind, _call(call.function, overload, evaluates))

    def _argument(self, argument: Any, call: x.FunctionCall) -> CompiledExpression:
        if isinstance(argument, x.Star):
            raise SqlTypeError("* stands for columns only in SELECT and in COUNT(*)", call.at)
        return self._compiler.compile(argument)

    def _filled(
        self, argument: Any, one: CompiledExpression | None, pattern: Pattern, filled: Filled
    ) -> Evaluate:
        if one is None:
            assert isinstance(pattern, LambdaPattern)
            return self._lambda(argument, pattern, filled)
        convert = converter(one.type, filled.type_of(pattern))
        if convert is None:
            return one.evaluate
        evaluate = one.evaluate
        return lambda row: convert(evaluate(row))

    def _lambda(self, written: x.Lambda, pattern: LambdaPattern, filled: Filled) -> Evaluate:
        if len(set(written.parameters)) < len(written.parameters):
            raise SqlTypeError(f"Duplicate lambda arguments: {written}", written.at)
        kinds = [filled.type_of(one) for one in pattern.inputs]
        schema = self._compiler.schema.with_columns(
            dict(zip(written.parameters, kinds, strict=True))
        )
        body = self._compiler.over(schema).compile(written.body)
        if not filled.takes(pattern.result, body.type):
            wanted = filled.type_of(pattern.result)
            reason = (
                f"the lambda must give {shown(wanted)}, and gives {shown(body.type)}: {written}"
            )
            raise SqlTypeError(reason, written.at)
        return _closure(written.parameters, _converted(body, filled.type_of(pattern.result)))


def _is_unit(argument: Any) -> bool:
    """Whether a word stands for a unit of time, as DAYS or DAY in DATEADD(DAYS, 1, day)."""
    is_word = isinstance(argument, x.ColumnName) and argument.source is None
    return is_word and argument.name.removesuffix("S") in UNITS


def _unit(argument: Any) -> CompiledExpression:
    return literal(argument.name.removesuffix("S"), INTERVAL_UNIT)


def _converted(body: CompiledExpression, kind: DataType | None) -> Evaluate:
    convert, evaluate = converter(body.type, kind), body.evaluate
    return evaluate if convert is None else lambda row: convert(evaluate(row))


def _closure(names: Sequence[str], body: Evaluate) -> Evaluate:
    """For a row, the function that the lambda is there."""

    def evaluate(row: Row) -> Callable[..., Any]:
        return lambda *values: body({**row, **dict(zip(names, values, strict=True))})

    return evaluate


def _call(name: str, overload: Overload, arguments: Sequence[Evaluate]) -> Evaluate:
    """As in ksqlDB an argument that fails is NULL; it is told unless the function has a value."""
    function, takes_nulls = overload.call, overload.takes_nulls

    def evaluate(row: Row) -> Any:
        values, failure = [], None
        for argument in arguments:
            try:
                values.append(argument(row))
            except RowFailure as error:
                values.append(None)
                failure = failure or error
        found = None
        if takes_nulls or None not in values:
            try:
                found = function(*values)
            except FAILURES as error:
                raise RowFailure(f"{name}: {error}") from error
        if found is None and failure is not None:
            raise failure
        return found

    return evaluate


class CompiledAggregate:
    """A call of an aggregate function: what to add for a row, and the machine it is added to."""

    def __init__(self, aggregator: SqlAggregator, arguments: Sequence[CompiledExpression]) -> None:
        self.type = aggregator.type
        self.aggregator = aggregator
        self.arguments = tuple(arguments)

    def values(self, row: Row) -> tuple[Any, ...]:
        """The values of a row that `add` and `undo` take after the state; raises RowFailure."""
        return tuple(argument.evaluate(row) for argument in self.arguments)


def compile_aggregate(call: x.FunctionCall, compiler: "ExpressionCompiler") -> CompiledAggregate:
    """A call of an aggregate function, its constants taken; raises SqlTypeError."""
    arguments = [a for a in call.arguments if not isinstance(a, x.Star)]
    compiled = [compiler.compile(argument) for argument in arguments]
    try:
        function = compiler.functions.aggregate(call.function)
        overload, filled = function.choose([one.type for one in compiled])
        count = len(compiled) - overload.constants
        constants = [_constant(one, call) for one in compiled[count:]]
        aggregator = function.aggregator([one.type for one in compiled], constants)
    except FunctionRefused as error:
        raise SqlTypeError(str(error), call.at) from None
    patterns = (overload.signature.patterns_for(len(compiled)) or ())[:count]
    kinds = [filled.type_of(pattern) for pattern in patterns]
    values = [_as(one, kind) for one, kind in zip(compiled, kinds, strict=False)]
    return CompiledAggregate(aggregator, values)


def _constant(argument: CompiledExpression, call: x.FunctionCall) -> Any:
    if not argument.is_literal:
        reason = f"Parameter of function {call.function} must be a constant: {call}"
        raise SqlTypeError(reason, call.at)
    return argument.literal


def _as(argument: CompiledExpression, kind: DataType | None) -> CompiledExpression:
    """The argument as what the variant takes: an INTEGER for a BIGINT."""
    return replace(argument, type=kind or argument.type, evaluate=_converted(argument, kind))
