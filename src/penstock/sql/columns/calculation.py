"""Arithmetic of columns: whole numbers wrap around, division cuts off, as in Java."""

import math
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.columns.cells import Cells, Evaluation, NotInColumns, RowFrame, either
from penstock.sql.types.kinds import DOUBLE, INTEGER, STRING, DataType

_PLAIN: Final = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_HALF, _LOW, _LEAST = 1 << 31, (1 << 32) - 1, -(1 << 63)


def calculated(sign: str, kind: DataType | None, left: Evaluation, right: Evaluation) -> Evaluation:
    """`left sign right`, both of the result's type already."""
    if kind == STRING:
        return _of_both(lambda one, two: pc.binary_join_element_wise(one, two, ""), left, right)
    if sign in _PLAIN:
        plain = _PLAIN[sign]  # Of 64 bits, where Arrow wraps around by itself.
        return _of_both(lambda one, two: wrapped(plain(one, two), kind), left, right)
    if kind == DOUBLE and sign == "/":
        return _of_both(_quotient, left, right)
    if kind != DOUBLE:
        return _divided(left, right, kind, is_remainder=sign == "%")
    raise NotInColumns


def negated(kind: DataType | None) -> Callable[[Any], Any]:
    """`-value`."""
    return lambda values: wrapped(pc.negate(values), kind)


def wrapped(values: Any, kind: DataType | None) -> Any:
    """What is left of whole numbers in 32 bits."""
    if kind != INTEGER:
        return values
    shifted = pc.bit_wise_and(pc.add(values, pa.scalar(_HALF)), pa.scalar(_LOW))
    return pc.subtract(shifted, pa.scalar(_HALF))


def _quotient(one: Any, two: Any) -> Any:
    """Doubles divided; what is no number because of a division by 0 has no sign."""
    found = pc.divide(one, two)
    if not pc.any(pc.is_nan(found)).as_py():
        return found
    unsigned = pc.and_kleene(pc.is_nan(found), pc.equal(two, 0.0))
    return pc.if_else(unsigned, pa.scalar(math.nan), found)


def _of_both(combine: Callable[[Any, Any], Any], left: Evaluation, right: Evaluation) -> Evaluation:
    def evaluate(frame: RowFrame) -> Cells:
        one, two = left(frame), right(frame)
        return Cells(combine(one.values, two.values), either(one.doubts, two.doubts))

    return evaluate


def _divided(
    left: Evaluation, right: Evaluation, kind: DataType | None, *, is_remainder: bool
) -> Evaluation:
    """A division by 0 fails, and that of the least number by -1 has no 64 bits: both in doubt."""

    def evaluate(frame: RowFrame) -> Cells:
        one, two = left(frame), right(frame)
        dividends, divisors = one.array(frame.size), two.array(frame.size)
        doubts = either(one.doubts, two.doubts)
        least = pc.and_(pc.equal(dividends, _LEAST), pc.equal(divisors, -1))
        unusual = pc.or_kleene(pc.equal(divisors, 0), least).fill_null(False)
        if pc.any(unusual).as_py():
            doubts = either(doubts, unusual.to_numpy(zero_copy_only=False))
            divisors = pc.if_else(unusual, pa.scalar(1, pa.int64()), divisors)
        found = pc.divide(dividends, divisors)
        if is_remainder:
            found = pc.subtract(dividends, pc.multiply(found, divisors))
        return Cells(wrapped(found, kind), doubts)

    return evaluate
