"""Values as text, and text as values: what headers are written as (Connect's `Values`).

Numbers, lists and maps look like JSON; dates, times and timestamps are ISO 8601 in UTC.
"""

import base64
import decimal
from datetime import date, datetime, time
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.java_numbers import decimal_text, real_text
from penstock.connect.values.logical import time_ms_of, timestamp_ms_of, timestamp_of
from penstock.connect.values.schema import Schema, SchemaType
from penstock.connect.values.struct import StructValue


def text_form(schema: Schema | None, value: Any) -> str:
    """A value in words; a text as it is."""
    return value if isinstance(value, str) else _embedded(schema, value)


def _embedded(schema: Schema | None, value: Any) -> str:
    """A value inside another: texts are in quotes."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    return _parts(schema, value) or scalar_text(schema, value)


def _parts(schema: Schema | None, value: Any) -> str | None:
    """A list, a map or a struct; None: it is none of them."""
    if isinstance(value, StructValue):
        shown = (f"{_quoted(one.name)}:{_inner(one.schema, v)}" for one, v in value.items())
        return "{" + ",".join(shown) + "}"
    items = None if schema is None else schema.value_schema
    if isinstance(value, list | tuple):
        return "[" + ",".join(_inner(items, one) for one in value) + "]"
    if isinstance(value, dict):
        keys = None if schema is None else schema.key_schema
        shown = (f"{_inner(keys, k)}:{_inner(items, v)}" for k, v in value.items())
        return "{" + ",".join(shown) + "}"
    return None


def _inner(schema: Schema | None, value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return _quoted(base64.b64encode(value).decode())
    return _embedded(schema, value)


def _quoted(text: str) -> str:
    return _embedded(None, text)


def scalar_text(schema: Schema | None, value: Any) -> str:
    """A number, a date or a time, as Java prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        is_single = schema is not None and schema.type is SchemaType.FLOAT32
        return real_text(value, is_single=is_single)
    if isinstance(value, decimal.Decimal):
        return decimal_text(value)
    if isinstance(value, date | time):
        return instant_text(instant_ms(value))
    raise DataError(f"Failed to serialize unexpected value type {type(value).__name__}: {value}")


def instant_ms(value: date | time) -> int:
    """A date, a time or a timestamp as the java.util.Date that Java would have for it."""
    if isinstance(value, datetime):
        return timestamp_ms_of(value)
    if isinstance(value, time):
        return time_ms_of(value)
    return timestamp_ms_of(datetime(value.year, value.month, value.day))


def instant_text(ms: int) -> str:
    """Java does not know what kind of date it has, and tells by its size."""
    at = timestamp_of(ms)
    clock = f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}Z"
    if ms < 86_400_000:
        return clock
    day = f"{at.year:04d}-{at:%m-%d}"
    return day if ms % 86_400_000 == 0 else f"{day}T{clock}"
