"""Numbers as Java has them: wrapped to a width, rounded to a float, printed and parsed."""

import decimal
import math
import re
import struct

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.schema import SchemaType

BITS = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
_INTEGER = re.compile(r"[+-]?\d{1,40}")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?")
_DIGITS_MAX = 100_000
_FLOAT = re.compile(
    r"[\x00-\x20]*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)[\x00-\x20]*"
)


def wrapped(number: int, bits: int) -> int:
    """The lowest bits of a number, as a cast to a narrower type leaves them."""
    half = 1 << (bits - 1)
    return ((number + half) & ((1 << bits) - 1)) - half


def whole_of(real: float, bits: int) -> int:
    """A float cut to a whole number: bounded to 32 or 64 bits first, then wrapped."""
    wide = 64 if bits == 64 else 32
    if math.isnan(real):
        return 0
    bound = 1 << (wide - 1)
    number = -bound if real <= -bound else bound - 1 if real >= bound - 1 else int(real)
    return wrapped(number, bits)


def low_bits(number: decimal.Decimal, bits: int) -> int:
    """A decimal cut to a whole number and wrapped, as BigDecimal.longValue does."""
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= 64:
        return 0  # So many tens have 64 twos in them, and none of the digits is left.
    return wrapped(int(number), bits)


def single(real: float) -> float:
    """A number rounded to 32 bits; beyond their range it is infinite."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", real))[0])
    except OverflowError:
        return math.copysign(math.inf, real)


def parse_whole(text: str, bits: int) -> int:
    """An integer in words, within its width; ValueError otherwise."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    number = int(text)
    if wrapped(number, bits) != number:
        raise ValueError(text)
    return number


def parse_real(text: str) -> float:
    """A double in words, as Java takes them; ValueError otherwise."""
    if not _FLOAT.fullmatch(text):
        raise ValueError(text)
    plain = text.strip("".join(map(chr, range(33))))
    return float(
        plain.replace("Infinity", "inf").rstrip("fFdD")
        if "n" not in plain
        else plain.replace("Infinity", "inf")
    )


def parse_decimal(text: str) -> decimal.Decimal:
    """A decimal in words, as `new BigDecimal` takes them; ValueError otherwise."""
    if len(text) > _DIGITS_MAX or not _DECIMAL.fullmatch(text):
        raise ValueError(text)
    return decimal.Decimal(text)


def real_text(real: float, *, is_single: bool = False) -> str:
    """A float as Java prints it."""
    if math.isnan(real):
        return "NaN"
    if math.isinf(real):
        return "Infinity" if real > 0 else "-Infinity"
    if real == 0:
        return "-0.0" if math.copysign(1, real) < 0 else "0.0"
    digits, exponent = _shortest(abs(real), is_single=is_single)
    sign = "-" if real < 0 else ""
    if -3 <= exponent < 7:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def decimal_text(number: decimal.Decimal) -> str:
    """A decimal as BigDecimal.toString prints it."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise DataError(f"{number} is no decimal")
    text = "".join(map(str, digits))
    adjusted = exponent + len(text) - 1
    lead = "-" if sign else ""
    if exponent <= 0 and adjusted >= -6:
        if exponent == 0:
            return lead + text
        padded = text.rjust(1 - exponent, "0")
        return f"{lead}{padded[:exponent]}.{padded[exponent:]}"
    mantissa = text if len(text) == 1 else f"{text[0]}.{text[1:]}"
    return f"{lead}{mantissa}E{adjusted:+d}" if adjusted else lead + mantissa


def plain_decimal_text(number: decimal.Decimal) -> str:
    """A decimal without an exponent."""
    return format(number, "f")


def _shortest(real: float, *, is_single: bool) -> tuple[str, int]:
    """The fewest digits that name this float and no other, and the exponent of the first."""
    if not is_single:
        return _split(repr(real))
    for places in range(1, 10):
        text = f"{real:.{places - 1}e}"
        if single(float(text)) == real:
            return _split(text)
    return _split(repr(real))


def _split(text: str) -> tuple[str, int]:
    number = decimal.Decimal(text)
    digits = "".join(map(str, number.as_tuple().digits)).lstrip("0")
    return digits.rstrip("0") or "0", number.adjusted()


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"
