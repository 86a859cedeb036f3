"""A source's columns as the bytes of records: what its converter gives, for all values at once.

A converter that is not known here, or a value that columns have no short way for, goes through the
converter one by one: the bytes are the same.
"""

from typing import Any

import pyarrow as pa

from penstock.connect.columnar.arrow_schemas import connect_value_of
from penstock.connect.columnar.json_columns import json_within
from penstock.connect.converters.json import JsonConverter
from penstock.connect.converters.numbers import ByteArrayConverter
from penstock.connect.converters.text import StringConverter
from penstock.connect.plugins.contract import Converter
from penstock.connect.values.logical import is_logical
from penstock.connect.values.schema import Schema, SchemaType


class ColumnEncoder:
    """The converter of a source's values, for columns."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter

    def encode(self, topic: str, schema: Schema | None, values: Any) -> Any:
        """A binary array; DataError for a value that the converter does not take."""
        converter = self._converter
        if isinstance(values, list):
            return self._encoded(topic, schema, values)
        if schema is not None and not values.null_count:
            # Subclasses may do something else: only the classes themselves are known.
            if type(converter) is StringConverter and _is(schema, SchemaType.STRING):
                if converter.is_utf8:
                    return values.cast(pa.binary())
            elif type(converter) is ByteArrayConverter and _is(schema, SchemaType.BYTES):
                return values.cast(pa.binary())
            elif type(converter) is JsonConverter:
                return _enveloped(converter, schema, values)
        return self._one_by_one(topic, schema, values)

    def _one_by_one(self, topic: str, schema: Schema | None, values: Any) -> Any:
        found = values.to_pylist()
        if schema is not None and schema.type not in (SchemaType.STRING, SchemaType.BYTES):
            found = [connect_value_of(schema, one) for one in found]
        return self._encoded(topic, schema, found)

    def _encoded(self, topic: str, schema: Schema | None, values: list[Any]) -> Any:
        convert = self._converter.from_connect
        return pa.array([convert(topic, schema, one) for one in values], pa.binary())


def _is(schema: Schema, kind: SchemaType) -> bool:
    return schema.type is kind and not is_logical(schema)


def _enveloped(converter: JsonConverter, schema: Schema, values: Any) -> Any:
    head, tail = converter.around(schema)
    around = (head.decode(), tail.decode())
    return json_within(converter.writer, schema, values, around).cast(pa.binary())
