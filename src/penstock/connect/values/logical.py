"""Logical types: dates, times, timestamps and decimals, and the plain values they travel as.

In Java all three of Date, Time and Timestamp are a `java.util.Date`; here they are a `date`, a
`time` and a `datetime` with the time zone UTC, each in whole milliseconds.
"""

import decimal
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.schema import Schema, SchemaType

DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"
DECIMAL = "org.apache.kafka.connect.data.Decimal"
LOGICAL_NAMES = frozenset({DATE, TIME, TIMESTAMP, DECIMAL})
SCALE = "scale"
DAY_MS = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1)
_MS = timedelta(milliseconds=1)

DATE_SCHEMA = Schema(type=SchemaType.INT32, name=DATE, version=1)
TIME_SCHEMA = Schema(type=SchemaType.INT32, name=TIME, version=1)
TIMESTAMP_SCHEMA = Schema(type=SchemaType.INT64, name=TIMESTAMP, version=1)
OPTIONAL_DATE_SCHEMA = DATE_SCHEMA.as_optional()
OPTIONAL_TIME_SCHEMA = TIME_SCHEMA.as_optional()
OPTIONAL_TIMESTAMP_SCHEMA = TIMESTAMP_SCHEMA.as_optional()

# Digits of one value; Python's default of 28 would round what Java keeps.
WIDE = decimal.Context(prec=100_000, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def decimal_schema(scale: int, *, optional: bool = False) -> Schema:
    """The schema of decimals with this many digits behind the point."""
    parameters: Mapping[str, str] = {SCALE: str(scale)}
    return Schema(
        type=SchemaType.BYTES, name=DECIMAL, version=1, parameters=parameters, optional=optional
    )


def is_logical(schema: Schema | None) -> bool:
    """Whether a value of the schema is a date, a time, a timestamp or a decimal."""
    return schema is not None and schema.name in LOGICAL_NAMES


def scale_of(schema: Schema) -> int:
    """The digits behind the point of a decimal."""
    text = schema.parameters.get(SCALE)
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError:
        raise DataError(
            f"Invalid scale parameter found in Decimal schema: {text} is no integer"
        ) from None


def days_of(value: date) -> int:
    """Days since the epoch, as a Date travels."""
    return (value - _EPOCH_DAY).days


def date_of(days: int) -> date:
    """The day that is so many days after the epoch."""
    try:
        return _EPOCH_DAY + timedelta(days=days)
    except OverflowError:
        raise DataError(
            f"the date {days} days from 1970-01-01 is not within years 1 to 9999"
        ) from None


def time_ms_of(value: time) -> int:
    """Milliseconds since midnight, as a Time travels."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def time_of(ms: int) -> time:
    """The time of day so many milliseconds after midnight."""
    if not 0 <= ms < DAY_MS:
        raise DataError(
            "Time values must use number of milliseconds greater than 0 and less than 86400000"
        )
    return (_EPOCH + timedelta(milliseconds=ms)).time()


def timestamp_ms_of(value: datetime) -> int:
    """Milliseconds since the epoch; a datetime without a zone is meant in UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MS


def timestamp_of(ms: int) -> datetime:
    """The instant so many milliseconds after the epoch, in UTC."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise DataError(f"the timestamp {ms} ms is not within years 1 to 9999") from None


def decimal_bytes(value: decimal.Decimal, scale: int) -> bytes:
    """The unscaled number in two's complement, as a Decimal travels."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent != scale:
        raise DataError(
            f"Decimal value has mismatching scale for given Decimal schema. Schema has scale "
            f"{scale}, value has scale {-exponent if isinstance(exponent, int) else exponent}."
        )
    return _integer_bytes(int(value.scaleb(scale, WIDE)))


def decimal_of(data: bytes, scale: int) -> decimal.Decimal:
    """The decimal of an unscaled number in two's complement."""
    if not data:
        raise DataError("a decimal of no bytes is no number")
    unscaled = int.from_bytes(data, "big", signed=True)
    return decimal.Decimal(unscaled).scaleb(-scale, WIDE)


def plain_of(schema: Schema, value: Any) -> Any:
    """What a value of a logical schema travels as; any other is given back."""
    match schema.name:
        case _ if value is None:
            return None
        case "org.apache.kafka.connect.data.Date":
            return days_of(value)
        case "org.apache.kafka.connect.data.Time":
            return time_ms_of(value)
        case "org.apache.kafka.connect.data.Timestamp":
            return timestamp_ms_of(value)
        case "org.apache.kafka.connect.data.Decimal":
            return decimal_bytes(value, scale_of(schema))
    return value


def logical_of(schema: Schema, plain: Any) -> Any:
    """The value of a logical schema from what it travels as; any other is given back."""
    match schema.name:
        case _ if plain is None:
            return None
        case "org.apache.kafka.connect.data.Date":
            return date_of(plain)
        case "org.apache.kafka.connect.data.Time":
            return time_of(plain)
        case "org.apache.kafka.connect.data.Timestamp":
            return timestamp_of(plain)
        case "org.apache.kafka.connect.data.Decimal":
            return decimal_of(plain, scale_of(schema))
    return plain


def _integer_bytes(number: int) -> bytes:
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)
