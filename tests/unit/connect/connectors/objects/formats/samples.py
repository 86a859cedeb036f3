"""A schema with one of everything, and values of it."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from penstock.connect.values.logical import (
    DATE_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    decimal_schema,
)
from penstock.connect.values.schema import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    array_schema,
    map_schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

INNER = struct_schema({"x": INT32_SCHEMA, "y": OPTIONAL_STRING_SCHEMA}, name="Inner", optional=True)
EVERYTHING = struct_schema(
    {
        "i8": INT8_SCHEMA,
        "i16": INT16_SCHEMA,
        "i32": INT32_SCHEMA,
        "i64": INT64_SCHEMA,
        "f32": FLOAT32_SCHEMA,
        "f64": FLOAT64_SCHEMA,
        "flag": BOOLEAN_SCHEMA,
        "text": STRING_SCHEMA,
        "maybe": OPTIONAL_STRING_SCHEMA,
        "raw": BYTES_SCHEMA,
        "day": DATE_SCHEMA,
        "clock": TIME_SCHEMA,
        "at": TIMESTAMP_SCHEMA,
        "price": decimal_schema(2),
        "words": array_schema(STRING_SCHEMA),
        "counts": map_schema(STRING_SCHEMA, INT64_SCHEMA),
        "inner": INNER,
    },
    name="Everything",
)


def everything(number: int) -> StructValue:
    """A value; every third has no inner struct and no text that may be missing."""
    has_all = number % 3 != 0
    inner = StructValue(INNER, (number, "y" if has_all else None)) if has_all else None
    values: dict[str, Any] = {
        "i8": number % 100,
        "i16": -number,
        "i32": number * 1000,
        "i64": number * 10**12,
        "f32": number / 2,
        "f64": number / 3,
        "flag": has_all,
        "text": f"Zeile {number} ä€😀",
        "maybe": f"{number}" if has_all else None,
        "raw": bytes([number % 256, 0, 10]),
        "day": date(2024, 2, 29),
        "clock": time(23, 59, 58, 999_000),
        "at": datetime(2024, 2, 29, 12, 0, 0, 1000, tzinfo=UTC),
        "price": Decimal(f"-{number}.05"),
        "words": ["a", f"{number}"],
        "counts": {"one": 1, "n": number},
        "inner": inner,
    }
    return StructValue.of(EVERYTHING, values)
