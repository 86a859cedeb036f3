"""Numbers: rounding, powers, logarithms, angles, distances."""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from typing import Any

from penstock.sql.functions.catalogue import Catalogue
from penstock.sql.types.kinds import BIGINT, INTEGER, DataType, DecimalOf
from penstock.sql.types.numbers import EXACT, truncated, wrapped

catalogue = Catalogue("MATHEMATICAL")
_EARTH_RADIUS = {"KM": 6371.0, "MILES": 3959.0}
_MILES = frozenset({"MI", "MILE", "MILES"})
_KILOMETRES = frozenset({"KM", "KILOMETER", "KILOMETERS", "KILOMETRE", "KILOMETRES"})


@catalogue.scalar("ABS", "(INTEGER) -> INTEGER", about="The number without its sign.")
def abs_integer(value: int) -> int:
    return wrapped(abs(value), INTEGER)


@catalogue.scalar("ABS", "(BIGINT) -> BIGINT")
def abs_bigint(value: int) -> int:
    return wrapped(abs(value), BIGINT)


@catalogue.scalar("ABS", "(DOUBLE) -> DOUBLE", "(DECIMAL) -> DECIMAL")
def absolute(value: Any) -> Any:
    return abs(value)


@catalogue.scalar(
    "SIGN",
    "(INTEGER) -> INTEGER",
    "(BIGINT) -> INTEGER",
    "(DOUBLE) -> INTEGER",
    "(DECIMAL) -> INTEGER",
    about="-1, 0 or 1: what sign the number has.",
)
def sign(value: Any) -> int:
    return int(value > 0) - int(value < 0)


def _whole(value: int) -> int:
    return value


for _name, _about in (
    ("CEIL", "The smallest whole number that is not below the number."),
    ("FLOOR", "The largest whole number that is not above the number."),
):
    catalogue.scalar(_name, "(INTEGER) -> INTEGER", "(BIGINT) -> BIGINT", about=_about)(_whole)


@catalogue.scalar("CEIL", "(DOUBLE) -> DOUBLE")
def ceil_double(value: float) -> float:
    return float(math.ceil(value)) if math.isfinite(value) else value


@catalogue.scalar("FLOOR", "(DOUBLE) -> DOUBLE")
def floor_double(value: float) -> float:
    return float(math.floor(value)) if math.isfinite(value) else value


@catalogue.scalar("CEIL", "(DECIMAL) -> DECIMAL")
def ceil_decimal(value: Decimal) -> Decimal:
    return _to_whole(value, ROUND_CEILING)


@catalogue.scalar("FLOOR", "(DECIMAL) -> DECIMAL")
def floor_decimal(value: Decimal) -> Decimal:
    return _to_whole(value, ROUND_FLOOR)


def _to_whole(value: Decimal, rounding: str) -> Decimal:
    """A decimal keeps its scale."""
    return value.to_integral_value(rounding=rounding).quantize(value, context=EXACT)


@catalogue.scalar(
    "ROUND",
    "(INTEGER) -> INTEGER",
    "(BIGINT) -> BIGINT",
    about="The number rounded to so many places; halves go up.",
)
def round_whole(value: int) -> int:
    return value


@catalogue.scalar("ROUND", "(DOUBLE) -> BIGINT")
def round_double(value: float) -> int:
    return truncated(math.floor(value + 0.5) if math.isfinite(value) else value, BIGINT)


@catalogue.scalar("ROUND", "(DOUBLE, INTEGER) -> DOUBLE")
def round_places(value: float, places: int) -> float:
    if not math.isfinite(value):
        return value
    return float(_half_up(Decimal(repr(value)), places))


def _without_places(kind: DataType | None) -> DataType:
    if not isinstance(kind, DecimalOf):
        return BIGINT
    return DecimalOf(max(1, kind.precision - kind.scale), 0)


@catalogue.scalar("ROUND", "(DECIMAL) -> DECIMAL", result_type=_without_places)
def round_decimal(value: Decimal) -> Decimal:
    return _half_up(value, 0)


@catalogue.scalar("ROUND", "(DECIMAL, INTEGER) -> DECIMAL")
def round_decimal_places(value: Decimal, places: int) -> Decimal:
    return _half_up(value, places).quantize(value, context=EXACT)


@catalogue.scalar("ROUND", "(INTEGER, INTEGER) -> INTEGER")
def round_integer_places(value: int, places: int) -> int:
    return wrapped(_round_whole(value, places), INTEGER)


@catalogue.scalar("ROUND", "(BIGINT, INTEGER) -> BIGINT")
def round_bigint_places(value: int, places: int) -> int:
    return wrapped(_round_whole(value, places), BIGINT)


def _round_whole(value: int, places: int) -> int:
    return int(_half_up(Decimal(value), places)) if places < 0 else value


@catalogue.scalar(
    "TRUNC",
    "(INTEGER) -> INTEGER",
    "(BIGINT) -> BIGINT",
    about="The number cut off after so many places.",
)
def cut_whole(value: int) -> int:
    return value


@catalogue.scalar("TRUNC", "(DOUBLE) -> BIGINT")
def cut_double(value: float) -> int:
    return truncated(value, BIGINT)


@catalogue.scalar("TRUNC", "(DOUBLE, INTEGER) -> DOUBLE")
def cut_places(value: float, places: int) -> float:
    return float(_cut(Decimal(repr(value)), places)) if math.isfinite(value) else value


@catalogue.scalar("TRUNC", "(DECIMAL) -> DECIMAL", "(DECIMAL, INTEGER) -> DECIMAL")
def cut_decimal(value: Decimal, places: int = 0) -> Decimal:
    return _cut(value, places).quantize(value, context=EXACT)


def _cut(value: Decimal, places: int) -> Decimal:
    step = _step(places)
    return (value / step).to_integral_value(ROUND_DOWN) * step


def _step(places: int) -> Decimal:
    if abs(places) > 400:
        raise ValueError(f"{places} places are too many")
    return Decimal(1).scaleb(-places)


def _half_up(value: Decimal, places: int) -> Decimal:
    """Halves go up in the positive direction, so -1.5 becomes -1."""
    step = _step(places)
    return (value / step + Decimal("0.5")).to_integral_value(ROUND_FLOOR) * step


@catalogue.scalar("SQRT", "(DOUBLE) -> DOUBLE", about="The square root; NaN of a negative number.")
def square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


@catalogue.scalar("CBRT", "(DOUBLE) -> DOUBLE", about="The cube root.")
def cube_root(value: float) -> float:
    found = math.cbrt(value)
    # Some C libraries miss whole roots by the last bit, and Java does not.
    near = float(round(found)) if abs(found) < 1e15 else found
    return near if near**3 == value else found


@catalogue.scalar("EXP", "(DOUBLE) -> DOUBLE", about="e to the power of the number.")
def exponential(exponent: float) -> float:
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


@catalogue.scalar("LN", "(DOUBLE) -> DOUBLE", about="The natural logarithm.")
def natural_logarithm(value: float) -> float:
    return _logarithm(math.log, value)


@catalogue.scalar("LOG", "(DOUBLE) -> DOUBLE", about="The logarithm to the base of 10, or of base.")
def logarithm(value: float) -> float:
    return _logarithm(math.log10, value)


@catalogue.scalar("LOG", "(DOUBLE, DOUBLE) -> DOUBLE")
def logarithm_of_base(base: float, value: float) -> float:
    if base <= 0 or base == 1:
        return math.nan
    if value == 0:
        return -math.inf
    return _logarithm(math.log, value) / math.log(base)


def _logarithm(function: Callable[[float], float], value: float) -> float:
    if value == 0:
        return -math.inf
    return function(value) if value > 0 else math.nan


@catalogue.scalar("POWER", "(DOUBLE, DOUBLE) -> DOUBLE", about="The base to a power.")
def power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        return math.inf
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent == int(exponent) and int(exponent) % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return math.nan


@catalogue.scalar("PI", "() -> DOUBLE", about="The number pi.")
def pi() -> float:
    return math.pi


def _angle(function: Callable[[float], float]) -> Callable[[float], float]:
    def of(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return math.copysign(math.inf, value) if function is math.sinh else math.inf
        except ValueError:
            return math.nan

    return of


def _cotangent(value: float) -> float:
    return 1 / math.tan(value) if value else math.copysign(math.inf, value)


for _name, _function, _about in (
    ("SIN", math.sin, "The sine of an angle in radians."),
    ("COS", math.cos, "The cosine of an angle in radians."),
    ("TAN", math.tan, "The tangent of an angle in radians."),
    ("COT", _cotangent, "The cotangent of an angle in radians."),
    ("SINH", math.sinh, "The hyperbolic sine."),
    ("COSH", math.cosh, "The hyperbolic cosine."),
    ("TANH", math.tanh, "The hyperbolic tangent."),
    ("ASIN", math.asin, "The angle in radians that has this sine."),
    ("ACOS", math.acos, "The angle in radians that has this cosine."),
    ("ATAN", math.atan, "The angle in radians that has this tangent."),
    ("DEGREES", math.degrees, "An angle in degrees, from radians."),
    ("RADIANS", math.radians, "An angle in radians, from degrees."),
):
    catalogue.scalar(_name, "(DOUBLE) -> DOUBLE", about=_about)(_angle(_function))


@catalogue.scalar("ATAN2", "(DOUBLE, DOUBLE) -> DOUBLE", about="The angle of the point (x, y).")
def angle_of(y: float, x: float) -> float:
    return math.atan2(y, x)


@catalogue.scalar(
    "GREATEST",
    "(T...) -> T",
    takes_nulls=True,
    about="The largest of the values; NULLs do not count.",
)
def greatest(*values: Any) -> Any:
    return max((value for value in values if value is not None), default=None)


@catalogue.scalar(
    "LEAST",
    "(T...) -> T",
    takes_nulls=True,
    about="The smallest of the values; NULLs do not count.",
)
def least(*values: Any) -> Any:
    return min((value for value in values if value is not None), default=None)


@catalogue.scalar("INT_FROM_BOOLEAN", "(BOOLEAN) -> INTEGER", about="1 for true and 0 for false.")
def int_from_boolean(value: bool) -> int:
    return int(value)


@catalogue.scalar(
    "GEO_DISTANCE",
    "(DOUBLE, DOUBLE, DOUBLE, DOUBLE) -> DOUBLE",
    "(DOUBLE, DOUBLE, DOUBLE, DOUBLE, STRING) -> DOUBLE",
    about="The distance along the earth between two points, in KM or MILES.",
)
def geo_distance(lat1: float, lon1: float, lat2: float, lon2: float, unit: str = "KM") -> float:
    _check_point(lat1, lon1)
    _check_point(lat2, lon2)
    one, two = math.radians(lat1), math.radians(lat2)
    height = math.sin((two - one) / 2) ** 2
    width = math.sin(math.radians(lon2 - lon1) / 2) ** 2
    chord = height + width * math.cos(one) * math.cos(two)
    return 2 * _radius(unit) * math.asin(min(1.0, math.sqrt(chord)))


def _check_point(latitude: float, longitude: float) -> None:
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise ValueError("latitude must be in (-90, 90) and longitude in (-180, 180) degrees")


def _radius(unit: str) -> float:
    word = unit.upper()
    if word in _MILES:
        return _EARTH_RADIUS["MILES"]
    if word in _KILOMETRES:
        return _EARTH_RADIUS["KM"]
    raise ValueError(f"unit must be KM or MILES, not {unit}")
