"""Comparisons. As in ksqlDB a comparison with NULL is false, and IS DISTINCT FROM knows NULL.

Numbers of all types can be compared, a string with a date, time or timestamp as its text, all else
only with its own type; arrays, maps, structs and truth values have no order.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from penstock.sql.types.casts import cast_to
from penstock.sql.types.kinds import (
    BOOLEAN,
    DOUBLE,
    STRING,
    TEMPORAL,
    ArrayOf,
    DataType,
    DecimalOf,
    MapOf,
    StructOf,
    is_number,
    kind_name,
)

Compare: TypeAlias = Callable[[Any, Any], bool]

NAMES: Final[Mapping[str, str]] = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "IS DISTINCT FROM": "IS_DISTINCT_FROM",
    "IS NOT DISTINCT FROM": "IS_NOT_DISTINCT_FROM",
}
_ORDERS: Final[Mapping[str, Compare]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_UNORDERED: Final = frozenset({"=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"})


def comparison(sign: str, left: DataType | None, right: DataType | None) -> Compare | None:
    """The function for two values, of which either may be NULL; None if they cannot be compared."""
    if left is None or right is None or not _is_comparable(sign, left, right):
        return None
    adapt = _adaptation(left, right)
    if sign.startswith("IS"):
        return _distinct(adapt, is_negated=sign == "IS NOT DISTINCT FROM")
    return _ordered(adapt, _ORDERS[sign])


def equality(left: DataType | None, right: DataType | None) -> Compare | None:
    return comparison("=", left, right)


def _is_comparable(sign: str, left: DataType, right: DataType) -> bool:
    if is_number(left) and is_number(right):
        return True
    names = {kind_name(left), kind_name(right)}
    if len(names) == 2:
        return _is_moment_and_text(left, right)
    if left == BOOLEAN or isinstance(left, ArrayOf | MapOf | StructOf):
        return sign in _UNORDERED
    return True


def _is_moment_and_text(left: DataType, right: DataType) -> bool:
    if {left, right} <= {*TEMPORAL, STRING}:
        return STRING in (left, right) or {kind_name(left), kind_name(right)} == {
            "DATE",
            "TIMESTAMP",
        }
    return False


def _adaptation(left: DataType, right: DataType) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Makes two values comparable in Python."""
    if left in TEMPORAL or right in TEMPORAL:
        target = _moment(left, right)
        one, two = cast_to(left, target), cast_to(right, target)
        return lambda a, b: (one(a), two(b))
    if DOUBLE in (left, right) and left != right and _has_decimal(left, right):
        return lambda a, b: (float(a), float(b))
    return lambda a, b: (a, b)


def _moment(left: DataType, right: DataType) -> DataType:
    if "TIMESTAMP" in (kind_name(left), kind_name(right)):
        return left if kind_name(left) == "TIMESTAMP" else right
    return right if left == STRING else left


def _has_decimal(left: DataType, right: DataType) -> bool:
    return isinstance(left, DecimalOf) or isinstance(right, DecimalOf)


def _ordered(adapt: Callable[[Any, Any], tuple[Any, Any]], order: Compare) -> Compare:
    def compare(left: Any, right: Any) -> bool:
        return left is not None and right is not None and order(*adapt(left, right))

    return compare


def _distinct(adapt: Callable[[Any, Any], tuple[Any, Any]], *, is_negated: bool) -> Compare:
    def compare(left: Any, right: Any) -> bool:
        if left is None or right is None:
            differs = (left is None) != (right is None)
        else:
            differs = operator.ne(*adapt(left, right))
        return differs != is_negated

    return compare
