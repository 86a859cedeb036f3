"""Decimals as Debezium's `decimal.handling.mode` wants them: exact, as a double, or as a text."""

from collections.abc import Callable
from decimal import Decimal
from enum import StrEnum
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import WIDE, decimal_bytes
from penstock.connect.values.schema import (
    BYTES_SCHEMA,
    FLOAT64_SCHEMA,
    INT32_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaType,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

Reader = Callable[[Any], Any]
VARIABLE_SCALE = struct_schema(
    {"scale": INT32_SCHEMA, "value": BYTES_SCHEMA},
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
)


class DecimalMode(StrEnum):
    """What becomes of a decimal."""

    PRECISE = "precise"
    DOUBLE = "double"
    STRING = "string"


def decimal_codec(
    mode: DecimalMode, precision: int | None, scale: int | None
) -> tuple[Schema, Reader]:
    """Schema and reader of a column; without a scale, each value has its own."""
    if mode is DecimalMode.DOUBLE:
        return FLOAT64_SCHEMA, float
    if mode is DecimalMode.STRING:
        return STRING_SCHEMA, str
    if scale is None or precision is None:
        return VARIABLE_SCALE, _variable
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    schema = Schema(
        type=SchemaType.BYTES,
        name="org.apache.kafka.connect.data.Decimal",
        version=1,
        parameters=parameters,
    )
    one = Decimal(1).scaleb(-scale)
    return schema, lambda text: _finite(text).quantize(one, context=WIDE)


def _variable(text: str) -> StructValue:
    number = _finite(text)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    exact = number.quantize(Decimal(1).scaleb(-scale), context=WIDE)
    return StructValue(VARIABLE_SCALE, (scale, decimal_bytes(exact, scale)))


def _finite(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise DataError(
            f"{text} is no decimal; decimal.handling.mode=double or string can carry it"
        )
    return number
