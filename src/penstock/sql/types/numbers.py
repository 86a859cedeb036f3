"""Numbers as Java has them: 32 and 64 bits that wrap around, exact decimals with a bound."""

from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Final

from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import BIGINT, INTEGER, DataType, DecimalOf

_WIDTH: Final = {INTEGER: 1 << 32, BIGINT: 1 << 64}
INTEGER_MAX: Final = (1 << 31) - 1
BIGINT_MAX: Final = (1 << 63) - 1
# Of all digits that a computation may need before it is rounded; a literal has at most 100.
EXACT: Final = Context(prec=1000, rounding=ROUND_HALF_UP)


def wrapped(value: int, kind: DataType | None) -> int:
    """What is left of a number in as many bits as its type has."""
    width = _WIDTH[kind]  # type: ignore[index]
    half = width >> 1
    return (value + half) % width - half


def is_within(value: int, kind: DataType | None) -> bool:
    return wrapped(value, kind) == value


def truncated(value: float, kind: DataType | None) -> int:
    """A double without its fraction; what is too large is the largest there is, NaN is 0."""
    half = _WIDTH[kind] >> 1  # type: ignore[index]
    if value != value:
        return 0
    if value in (float("inf"), float("-inf")):
        return half - 1 if value > 0 else -half
    return max(-half, min(half - 1, int(value)))


def fitted(value: Decimal, kind: DecimalOf) -> Decimal:
    """The number rounded half up to the scale; raises RowFailure if it has too many digits."""
    if not value.is_finite():
        raise RowFailure(f"{value} is not a number that {kind} holds")
    if value.adjusted() > kind.precision - kind.scale and value:
        raise _overflow(value, kind)
    rounded = value.quantize(Decimal(1).scaleb(-kind.scale), context=EXACT)
    if rounded and rounded.adjusted() >= kind.precision - kind.scale:
        raise _overflow(value, kind)
    return rounded


def _overflow(value: Decimal, kind: DecimalOf) -> RowFailure:
    return RowFailure(
        f"Numeric field overflow: A field with precision {kind.precision} and scale {kind.scale}"
        f" must round to an absolute value less than 10^{kind.precision - kind.scale}."
        f" Got {value:f}"
    )


def decimal_type(value: Decimal) -> DecimalOf:
    """The type of a literal: as many digits as are written."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    return DecimalOf(max(len(digits) + max(0, int(exponent)), scale, 1), scale)


def exact_of(value: int | float | Decimal) -> Decimal:
    """A number as a decimal; a double by its shortest text, as Java's BigDecimal.valueOf does."""
    with localcontext(EXACT):
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
