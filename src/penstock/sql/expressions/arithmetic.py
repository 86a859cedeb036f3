"""Arithmetic as ksqlDB has it, that is Java's: whole numbers wrap around, division cuts off.

The type of a result is known from the operands' types. A DECIMAL result gets as many digits as the
operation can need, by the rules of SQL Server, which ksqlDB follows.
"""

import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from functools import partial
from typing import Any, Final, TypeAlias

from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import DOUBLE, STRING, DataType, DecimalOf, is_number, kind_name
from penstock.sql.types.numbers import EXACT, exact_of, fitted, wrapped
from penstock.sql.types.shared_type import as_decimal, wider_number

Operation: TypeAlias = Callable[[Any, Any], Any]
_DIVISION_SCALE_MIN: Final = 6


def arithmetic(
    sign: str, left: DataType | None, right: DataType | None
) -> tuple[DataType, Operation]:
    """The type of `left sign right` and the function for two values; raises ValueError."""
    if sign in ("+", "||") and left == STRING and right == STRING:
        return STRING, operator.add
    if sign == "||" or left is None or right is None or not (is_number(left) and is_number(right)):
        raise ValueError(f"Unsupported arithmetic types. {kind_name(left)} {kind_name(right)}")
    kind = wider_number(left, right)
    if kind == DOUBLE:
        return DOUBLE, _DOUBLES[sign]
    if isinstance(kind, DecimalOf):
        result = _decimal_result(sign, as_decimal(left), as_decimal(right))
        return result, partial(_decimals, sign, result)
    return kind, partial(_whole, _WHOLE[sign], kind)


def negated(kind: DataType) -> Callable[[Any], Any]:
    """The function for `-value`."""
    if isinstance(kind, DecimalOf) or kind == DOUBLE:
        return operator.neg
    return lambda value: wrapped(-value, kind)


# Whole numbers


def _whole(operation: Operation, kind: DataType, left: int, right: int) -> int:
    return wrapped(operation(left, right), kind)


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise RowFailure("/ by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _quotient(left, right)


_WHOLE: Final[Mapping[str, Operation]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": _remainder,
}


# Doubles


def _double(operation: Operation, left: Any, right: Any) -> float:
    try:
        return float(operation(float(left), float(right)))
    except OverflowError:
        return math.inf


def _double_quotient(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or left != left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _double_remainder(left: float, right: float) -> float:
    if right == 0 or math.isinf(left) or left != left or right != right:
        return math.nan
    return math.fmod(left, right)


_DOUBLES: Final[Mapping[str, Operation]] = {
    "+": partial(_double, operator.add),
    "-": partial(_double, operator.sub),
    "*": partial(_double, operator.mul),
    "/": partial(_double, _double_quotient),
    "%": partial(_double, _double_remainder),
}


# Decimals


def _decimal_result(sign: str, left: DecimalOf, right: DecimalOf) -> DecimalOf:
    scale = max(left.scale, right.scale)
    whole_left, whole_right = left.precision - left.scale, right.precision - right.scale
    if sign in "+-":
        return DecimalOf(max(whole_left, whole_right) + scale + 1, scale)
    if sign == "*":
        return DecimalOf(left.precision + right.precision + 1, left.scale + right.scale)
    if sign == "%":
        return DecimalOf(max(1, min(whole_left, whole_right) + scale), scale)
    divided = max(_DIVISION_SCALE_MIN, left.scale + right.precision + 1)
    return DecimalOf(whole_left + right.scale + divided, divided)


def _decimals(sign: str, kind: DecimalOf, left: Any, right: Any) -> Decimal:
    one, two = exact_of(left), exact_of(right)
    if sign in "/%" and two == 0:
        raise RowFailure("Division by zero" if sign == "/" else "Division undefined")
    with localcontext(EXACT):
        return fitted(_DECIMALS[sign](one, two), kind)


_DECIMALS: Final[Mapping[str, Operation]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
