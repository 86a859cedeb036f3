"""Expressions to functions of a row. What has no meaning is refused here, before any row comes.

One method for each kind of expression: it compiles the operands, decides the type and returns a
closure. AND, OR and NOT know three truth values; a comparison with NULL is false, as in ksqlDB.
CASE, AND and OR look at no more operands than they need.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final, NoReturn

from penstock.sql.expressions.access import field_of, item_of
from penstock.sql.expressions.arithmetic import arithmetic, negated
from penstock.sql.expressions.calls import CallCompiler
from penstock.sql.expressions.comparison import NAMES, comparison, equality
from penstock.sql.expressions.compiled import CompiledExpression, Evaluate, Row, literal
from penstock.sql.expressions.construct import array_of, converted, map_of, struct_of
from penstock.sql.expressions.errors import SqlTypeError
from penstock.sql.expressions.like import is_like
from penstock.sql.expressions.schema import ColumnMissing, RowSchema
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language import expressions as x
from penstock.sql.types.casts import CastRefused, cast_to
from penstock.sql.types.kinds import BOOLEAN, DOUBLE, STRING, DataType, is_number, shown
from penstock.sql.types.numbers import decimal_type
from penstock.sql.types.reading import UnknownType, data_type
from penstock.sql.types.shared_type import NoSharedType, shared_type, whole_type

_NO_TYPES: Final[Mapping[str, DataType]] = {}


def compile_expression(
    expression: x.Expression,
    schema: RowSchema,
    functions: FunctionTable,
    user_types: Mapping[str, DataType] = _NO_TYPES,
) -> CompiledExpression:
    """The type of an expression and the function for its value; raises SqlTypeError."""
    return ExpressionCompiler(schema, functions, user_types).compile(expression)


class ExpressionCompiler:
    """Compiles expressions over the columns of one schema."""

    def __init__(
        self,
        schema: RowSchema,
        functions: FunctionTable,
        user_types: Mapping[str, DataType] = _NO_TYPES,
    ) -> None:
        self.schema, self.functions = schema, functions
        self._user_types = user_types

    def over(self, schema: RowSchema) -> "ExpressionCompiler":
        """The same over other columns: the body of a lambda sees its parameters too."""
        return ExpressionCompiler(schema, self.functions, self._user_types)

    def compile(self, expression: Any) -> CompiledExpression:
        """Any expression; raises SqlTypeError."""
        return replace(self._compile(expression), source=expression)

    def _compile(self, expression: Any) -> CompiledExpression:
        match expression:
            case x.Literal():
                return self._literal(expression)
            case x.ColumnName():
                return self._column(expression)
            case x.Binary():
                return self._binary(expression)
            case x.Unary():
                return self._unary(expression)
            case x.FunctionCall():
                return CallCompiler(self).compile(expression)
            case x.Case():
                return self._case(expression)
            case x.Cast():
                return self._cast(expression)
        return self._predicate(expression)

    def _predicate(self, expression: Any) -> CompiledExpression:
        match expression:
            case x.IsNull():
                return self._is_null(expression)
            case x.Between():
                return self._between(expression)
            case x.InList():
                return self._in_list(expression)
            case x.Like():
                return self._like(expression)
            case x.FieldOf():
                return field_of(self.compile(expression.record), expression)
            case x.ItemOf():
                container, index = expression.container, expression.index
                return item_of(self.compile(container), self.compile(index), expression)
        return self._constructor(expression)

    def _constructor(self, expression: Any) -> CompiledExpression:
        match expression:
            case x.NewArray():
                return array_of(self.compile_all(expression.items), expression.at)
            case x.NewMap():
                keys = self.compile_all([key for key, _ in expression.entries])
                values = self.compile_all([value for _, value in expression.entries])
                return map_of(keys, values, expression.at)
            case x.NewStruct():
                names = [name for name, _ in expression.fields]
                values = self.compile_all([value for _, value in expression.fields])
                return struct_of(names, values, expression.at)
        raise SqlTypeError(f"{expression} cannot stand here", getattr(expression, "at", None))

    def compile_all(self, expressions: Sequence[Any]) -> list[CompiledExpression]:
        """Several expressions."""
        return [self.compile(one) for one in expressions]

    # Names, literals, casts

    def _literal(self, expression: x.Literal) -> CompiledExpression:
        value = expression.value
        match value:
            case None:
                return literal(None, None)
            case bool():
                return literal(value, BOOLEAN)
            case int():
                return literal(value, whole_type(value))
            case Decimal():
                return literal(value, decimal_type(value))
            case float():
                return literal(value, DOUBLE)
        return literal(value, STRING)

    def _column(self, expression: x.ColumnName) -> CompiledExpression:
        try:
            key = self.schema.key_of(expression.name, expression.source)
        except ColumnMissing as error:
            raise SqlTypeError(str(error), expression.at) from None
        return CompiledExpression(self.schema[key], lambda row: row.get(key))

    def _cast(self, expression: x.Cast) -> CompiledExpression:
        inner = self.compile(expression.value)
        try:
            target = data_type(expression.type, self._user_types)
            cast = cast_to(inner.type, target)
        except (CastRefused, UnknownType) as error:
            raise SqlTypeError(str(error), expression.at) from None
        evaluate = inner.evaluate
        return CompiledExpression(target, lambda row: cast(evaluate(row)))

    # Operators

    def _unary(self, expression: x.Unary) -> CompiledExpression:
        if expression.operator == "NOT":
            return _not(self._truth(expression.operand, "NOT"))
        inner = self.compile(expression.operand)
        if inner.type is None or not is_number(inner.type):
            reason = f"'{expression.operator}' takes a number, not {shown(inner.type)}"
            raise SqlTypeError(reason, expression.at)
        if expression.operator == "+":
            return inner
        if inner.is_literal:  # So -2147483648 is an INTEGER.
            return self._literal(x.Literal(-inner.literal))
        return CompiledExpression(inner.type, _unless_null(negated(inner.type), inner.evaluate))

    def _binary(self, expression: x.Binary) -> CompiledExpression:
        sign = expression.operator
        if sign in ("AND", "OR"):
            left, right = self._truth(expression.left, sign), self._truth(expression.right, sign)
            return _logic(sign, left, right)
        left, right = self.compile(expression.left), self.compile(expression.right)
        if sign in NAMES:
            return self._comparison(expression, left, right)
        try:
            kind, operation = arithmetic(sign, left.type, right.type)
        except ValueError as error:
            raise SqlTypeError(str(error), expression.at) from None
        return CompiledExpression(kind, _of_both(operation, left.evaluate, right.evaluate))

    def _comparison(
        self, expression: x.Binary, left: CompiledExpression, right: CompiledExpression
    ) -> CompiledExpression:
        if left.type is None or right.type is None:
            reason = f"Comparison with NULL not supported: {expression}"
            raise SqlTypeError(reason, expression.at)
        compare = comparison(expression.operator, left.type, right.type)
        if compare is None:
            _refuse_comparison(expression, expression.operator, left, right)
        return CompiledExpression(BOOLEAN, _compared(compare, left.evaluate, right.evaluate))

    def _truth(self, expression: Any, word: str) -> CompiledExpression:
        inner = self.compile(expression)
        if inner.type not in (BOOLEAN, None):
            reason = f"{word} takes truth values, and {expression} is {shown(inner.type)}"
            raise SqlTypeError(reason, expression.at)
        return inner

    # Predicates

    def _is_null(self, expression: x.IsNull) -> CompiledExpression:
        value, is_negated = self.compile(expression.value).evaluate, expression.is_negated
        return CompiledExpression(BOOLEAN, lambda row: (value(row) is None) != is_negated)

    def _between(self, expression: x.Between) -> CompiledExpression:
        low = self._binary(x.Binary(">=", expression.value, expression.low, expression.at))
        high = self._binary(x.Binary("<=", expression.value, expression.high, expression.at))
        both = _logic("AND", low, high)
        return _not(both) if expression.is_negated else both

    def _in_list(self, expression: x.InList) -> CompiledExpression:
        value, *choices = self.compile_all([expression.value, *expression.choices])
        try:
            kind = shared_type([value.typed(), *(choice.typed() for choice in choices)])
        except NoSharedType as error:
            raise SqlTypeError(f"Invalid Predicate: {error}", expression.at) from None
        compare = equality(kind, kind)
        if compare is None or kind is None:
            raise SqlTypeError(f"IN has no value to compare: {expression}", expression.at)
        return _is_among(compare, converted(value, kind), [converted(c, kind) for c in choices],
                         expression.is_negated)  # fmt: skip

    def _like(self, expression: x.Like) -> CompiledExpression:
        value, pattern = self.compile(expression.value), self.compile(expression.pattern)
        for one in (value, pattern):
            if one.type not in (STRING, None):
                reason = f"LIKE takes strings, not {shown(one.type)}"
                raise SqlTypeError(reason, expression.at)
        escape = expression.escape

        def matches(text: str, form: str) -> bool:
            return is_like(text, form, escape) != expression.is_negated

        return CompiledExpression(BOOLEAN, _of_both(matches, value.evaluate, pattern.evaluate))

    def _case(self, expression: x.Case) -> CompiledExpression:
        conditions = [self._condition(expression, when) for when, _ in expression.branches]
        results = self.compile_all([then for _, then in expression.branches])
        if expression.otherwise is not None:
            results.append(self.compile(expression.otherwise))
        kind = _case_type(results, expression)
        results = [converted(result, kind) for result in results]
        return CompiledExpression(kind, _first_true(conditions, [r.evaluate for r in results]))

    def _condition(self, expression: x.Case, when: x.Expression) -> Evaluate:
        if expression.operand is not None:
            return self._binary(x.Binary("=", expression.operand, when, when.at)).evaluate
        compiled = self.compile(when)
        if compiled.type != BOOLEAN:
            reason = (
                f"WHEN operand type should be boolean. Type for '{when}' is {shown(compiled.type)}"
            )
            raise SqlTypeError(reason, when.at)
        return compiled.evaluate


def _refuse_comparison(
    expression: x.Binary, sign: str, left: CompiledExpression, right: CompiledExpression
) -> NoReturn:
    raise SqlTypeError(
        f"Cannot compare {expression.left} ({shown(left.type)}) to {expression.right}"
        f" ({shown(right.type)}) with {NAMES[sign]}.",
        expression.at,
    )


def _case_type(results: Sequence[CompiledExpression], expression: x.Case) -> DataType:
    try:
        kind = shared_type([result.typed() for result in results])
    except NoSharedType as error:
        reason = f"Invalid Case expression. Type for all 'THEN' clauses should be the same: {error}"
        raise SqlTypeError(reason, expression.at) from None
    if kind is None:
        reason = "Invalid Case expression. All case branches have NULL type"
        raise SqlTypeError(reason, expression.at)
    return kind


# Closures


def _unless_null(operation: Callable[[Any], Any], inner: Evaluate) -> Evaluate:
    def evaluate(row: Row) -> Any:
        value = inner(row)
        return None if value is None else operation(value)

    return evaluate


def _of_both(operation: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(row: Row) -> Any:
        one = left(row)
        if one is None:
            return None
        two = right(row)
        return None if two is None else operation(one, two)

    return evaluate


def _compared(compare: Callable[[Any, Any], bool], left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda row: compare(left(row), right(row))


def _not(inner: CompiledExpression) -> CompiledExpression:
    return CompiledExpression(BOOLEAN, _unless_null(lambda value: not value, inner.evaluate))


def _logic(word: str, left: CompiledExpression, right: CompiledExpression) -> CompiledExpression:
    """The first operand that decides ends it; otherwise NULL wins over the other value."""
    decisive, one, two = word == "OR", left.evaluate, right.evaluate

    def evaluate(row: Row) -> Any:
        first = one(row)
        if first is decisive:
            return decisive
        second = two(row)
        if second is decisive:
            return decisive
        return None if first is None or second is None else not decisive

    return CompiledExpression(BOOLEAN, evaluate)


def _is_among(
    compare: Callable[[Any, Any], bool],
    value: CompiledExpression,
    choices: Sequence[CompiledExpression],
    is_negated: bool,
) -> CompiledExpression:
    wanted, others = value.evaluate, [choice.evaluate for choice in choices]

    def evaluate(row: Row) -> bool:
        found = wanted(row)
        return any(compare(found, other(row)) for other in others) != is_negated

    return CompiledExpression(BOOLEAN, evaluate)


def _first_true(conditions: Sequence[Evaluate], results: Sequence[Evaluate]) -> Evaluate:
    branches = list(zip(conditions, results, strict=False))
    otherwise = results[len(conditions)] if len(results) > len(conditions) else None

    def evaluate(row: Row) -> Any:
        for condition, result in branches:
            if condition(row):
                return result(row)
        return None if otherwise is None else otherwise(row)

    return evaluate
