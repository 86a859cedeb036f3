"""The one type that several expressions have together, in lists such as ARRAY[...], IN and CASE.

A literal takes more than other expressions do: '10' stands for a number where numbers are
expected, and any literal for a string where strings are. The first expression that is not NULL
decides which it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final

from penstock.sql.types.kinds import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    NUMBER_ORDER,
    STRING,
    ArrayOf,
    DataType,
    DecimalOf,
    MapOf,
    StructOf,
    is_number,
    kind_name,
    shown,
)
from penstock.sql.types.numbers import BIGINT_MAX, INTEGER_MAX, decimal_type

_TRUTHS: Final = {
    word[:length]: value
    for word, value in (("true", True), ("false", False), ("yes", True), ("no", False))
    for length in range(1, len(word) + 1)
}
_WHOLE_AS_DECIMAL: Final = {"INTEGER": DecimalOf(10, 0), "BIGINT": DecimalOf(19, 0)}


class NoSharedType(ValueError):
    """The expressions have no type together."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The type of an expression; `text` is the value of a string literal, None for all others."""

    type: DataType | None
    is_literal: bool = False
    text: str | None = None
    source: object = field(default=None, compare=False)  # What errors show.


def shared_type(members: Sequence[Typed]) -> DataType | None:
    """The type that all of them can become; raises NoSharedType."""
    found: DataType | None = None
    for member in members:
        found = member.type if found is None else _widened(found, member)
    return found


def _widened(found: DataType, member: Typed) -> DataType:
    kind = member.type
    if kind is None or kind == found:
        return found
    if member.is_literal and (taken := _of_literal(found, member)) is not None:
        return taken
    try:
        return wider(found, kind)
    except NoSharedType:
        raise NoSharedType(
            f"operator does not exist: {shown(found)} = {shown(kind)} ({member.source})"
            "\nHint: You might need to add explicit type casts."
        ) from None


def _of_literal(found: DataType, member: Typed) -> DataType | None:
    """What a literal makes of the type found so far, beyond what its own type would."""
    if found == STRING:
        return STRING
    if member.text is None:
        return None
    if is_number(found) and (number := number_type(member.text)) is not None:
        return wider(found, number)
    if found == BOOLEAN and truth_of(member.text) is not None:
        return BOOLEAN
    if is_number(found) or found == BOOLEAN:
        reason = f'invalid input syntax for type {kind_name(found)}: "{member.text[:80]}".'
        raise NoSharedType(reason)
    return None


def wider(left: DataType, right: DataType) -> DataType:
    """The type of two that takes the values of both; raises NoSharedType."""
    if left == right:
        return left
    if is_number(left) and is_number(right):
        return wider_number(left, right)
    match left, right:
        case ArrayOf(), ArrayOf():
            return ArrayOf(_either(left.item, right.item))
        case MapOf(), MapOf():
            return MapOf(_either(left.key, right.key), _either(left.value, right.value))
        case StructOf(), StructOf():
            return _superset(left, right)
    raise NoSharedType(f"expected {shown(left)}, got {shown(right)}")


def _either(left: DataType | None, right: DataType | None) -> DataType | None:
    if left is None or right is None:
        return left if right is None else right
    return wider(left, right)


def _superset(left: StructOf, right: StructOf) -> StructOf:
    fields = dict(left.fields)
    for name, kind in right.fields:
        fields[name] = _either(fields.get(name), kind)
    return StructOf(tuple(fields.items()))


def wider_number(left: DataType, right: DataType) -> DataType:
    """The number type that holds both."""
    names = (kind_name(left), kind_name(right))
    widest = max(names, key=NUMBER_ORDER.index)
    if widest != "DECIMAL":
        return {"INTEGER": INTEGER, "BIGINT": BIGINT, "DOUBLE": DOUBLE}[widest]
    one, two = as_decimal(left), as_decimal(right)
    scale = max(one.scale, two.scale)
    whole = max(one.precision - one.scale, two.precision - two.scale)
    return DecimalOf(whole + scale, scale)


def as_decimal(kind: DataType) -> DecimalOf:
    """The DECIMAL that holds all numbers of a type."""
    return kind if isinstance(kind, DecimalOf) else _WHOLE_AS_DECIMAL[kind_name(kind)]


def number_type(text: str) -> DataType | None:
    """The type of the number that a string literal is; None if it is none."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or abs(value.adjusted()) > 400:
        return None
    if "e" in text.lower():
        return DOUBLE
    if "." in text:
        return decimal_type(value)
    return whole_type(int(value))


def whole_type(value: int) -> DataType:
    """INTEGER, BIGINT, or a DECIMAL where neither is wide enough."""
    if -INTEGER_MAX - 1 <= value <= INTEGER_MAX:
        return INTEGER
    return BIGINT if -BIGINT_MAX - 1 <= value <= BIGINT_MAX else decimal_type(Decimal(value))


def truth_of(text: str) -> bool | None:
    """The truth value that a string literal is: `true`, `false`, `yes`, `no` or how they begin."""
    return _TRUTHS.get(text.lower())
