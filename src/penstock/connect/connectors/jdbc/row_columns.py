"""Rows of an answer as one Arrow array of structs, where every value has an exact place in it."""

from collections.abc import Sequence
from datetime import datetime, time
from typing import Any

import pyarrow as pa

from penstock.connect.columnar.arrow_schemas import arrow_schema_of
from penstock.connect.connectors.jdbc.row_types import FieldCodec
from penstock.connect.errors.kinds import DataError
from penstock.connect.values.schema import Schema

_MS_MICROS = 1000
_ODD = (ArithmeticError, TypeError, ValueError, DataError, pa.ArrowException)


def struct_column(schema: Schema, codecs: Sequence[FieldCodec], rows: Sequence[Any]) -> Any | None:
    """A struct array; None where a value cannot be read, or would not come back as it was."""
    try:
        fields = list(arrow_schema_of(schema))
        arrays = [
            _column(codec, field.type, values)
            for codec, field, values in zip(codecs, fields, zip(*rows, strict=True), strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=fields)
    except _ODD:
        return None


def _column(codec: FieldCodec, kind: Any, values: Sequence[Any]) -> Any:
    read = codec.read
    found = [None if value is None else read(value) for value in values]
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        _check_milliseconds(found)
    return pa.array(found, kind)


def _check_milliseconds(values: Sequence[datetime | time | None]) -> None:
    """Arrow's columns have milliseconds, as Connect's schemas; Python's values may have more."""
    if any(one is not None and one.microsecond % _MS_MICROS for one in values):
        raise ValueError("a time has parts of a millisecond")
