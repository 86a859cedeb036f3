"""The bytes of records as columns for a sink: what its converter reads, for all values at once.

Only what is certain to be the same is read here. Whatever else the converter would take, or refuse,
is left to it: then the answer is None, and the rows become single records.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from penstock.connect.columnar.arrow_schemas import arrow_schema_of
from penstock.connect.columnar.contract import SchemaAndColumn
from penstock.connect.columnar.text_lines import joined_lines
from penstock.connect.converters.json import JsonConverter
from penstock.connect.converters.numbers import ByteArrayConverter
from penstock.connect.converters.text import StringConverter
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.contract import Converter
from penstock.connect.values.logical import is_logical
from penstock.connect.values.schema import (
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    SchemaType,
)

_WHOLE = (SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64)
_PLAIN = (*_WHOLE, SchemaType.FLOAT64, SchemaType.BOOLEAN, SchemaType.STRING)
_BLOCK_BYTES_MIN = 1 << 20


class ColumnDecoder:
    """The converter of a sink's values, for columns."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter

    def decode(self, topic: str, values: Any) -> SchemaAndColumn | None:
        """The values of a binary array; None: they have to be read one by one."""
        converter = self._converter
        if values.null_count or not len(values):
            return None
        if type(converter) is ByteArrayConverter:
            return SchemaAndColumn(OPTIONAL_BYTES_SCHEMA, values)
        texts = _texts(values)
        if texts is None:
            return None
        if type(converter) is StringConverter and converter.is_utf8:
            return SchemaAndColumn(OPTIONAL_STRING_SCHEMA, texts)
        if type(converter) is JsonConverter:
            return _enveloped(converter, topic, values, texts)
        return None


def _texts(values: Any) -> Any | None:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return None  # Not UTF-8.


def _enveloped(
    converter: JsonConverter, topic: str, values: Any, texts: Any
) -> SchemaAndColumn | None:
    """Structs of documents that all begin with the same schema."""
    try:
        head = converter.head_of(topic, values[0].as_py())
    except DataError:
        return None
    if head is None or head.schema is None or not _is_plain(head.schema):
        return None
    if not pc.all(pc.starts_with(texts, f"{head.text}{{")).as_py():
        return None
    if not pc.all(pc.ends_with(texts, "}}")).as_py():
        return None
    payloads = pc.binary_slice(values, len(head.text.encode()), -1)
    found = _structs(head.schema, payloads)
    return None if found is None else SchemaAndColumn(head.schema, found)


def _is_plain(schema: Schema) -> bool:
    """Whether a struct has fields of plain types alone, with different names."""
    if schema.type is not SchemaType.STRUCT or not schema.fields:
        return False
    names = {one.name for one in schema.fields}
    return len(names) == len(schema.fields) and all(
        one.schema.type in _PLAIN and not is_logical(one.schema) for one in schema.fields
    )


def _structs(schema: Schema, payloads: Any) -> Any | None:
    """A struct array; None where the payloads are not objects that fit the schema strictly.

    Each begins with { and ends with }. So there are as many objects as payloads only where each
    payload is one: a text cannot go on behind a line feed.
    """
    lines = joined_lines(payloads)
    columns = arrow_schema_of(schema)
    nullable = pa.schema([one.with_nullable(True) for one in columns])
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(pa.py_buffer(lines)),
            read_options=pyarrow.json.ReadOptions(
                use_threads=False, block_size=max(_BLOCK_BYTES_MIN, len(lines) + 1)
            ),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=nullable, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowException:
        return None
    if table.num_rows != len(payloads) or table.num_columns != len(columns):
        return None
    arrays = [one.combine_chunks() for one in table.columns]
    if not all(
        _fits(one.schema, column) for one, column in zip(schema.fields, arrays, strict=True)
    ):
        return None
    return pa.StructArray.from_arrays(arrays, fields=list(columns))


def _fits(schema: Schema, column: Any) -> bool:
    """Whether a column has nothing in it that the converter reads in a way of its own."""
    if column.null_count and (not schema.optional or schema.default is not None):
        return False
    if schema.type is SchemaType.FLOAT64:
        return bool(np.isfinite(np.asarray(column.drop_null())).all())
    return True
