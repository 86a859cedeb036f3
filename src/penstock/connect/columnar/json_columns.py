"""Arrow columns as JSON, byte for byte what the JSON converter writes for each value.

Whole numbers, texts, booleans, dates and structs of them are put together by Arrow. What is rarer
(decimals, bytes, lists) is written value by value, within its column alone.
"""

from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connect.columnar.arrow_schemas import connect_value_of
from penstock.connect.converters.json import JsonWriter
from penstock.connect.values.logical import DATE, TIME, TIMESTAMP, is_logical
from penstock.connect.values.schema import Schema, SchemaType

_WHOLE = (SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64)
_COUNTED = {DATE: pa.int32(), TIME: pa.int32(), TIMESTAMP: pa.int64()}  # As JSON counts them.
_SPACE, _QUOTE, _BACKSLASH = 0x20, 0x22, 0x5C
_PIECE_BYTES = 1 << 16  # What is looked at together stays in the processor's cache.


def json_texts(writer: JsonWriter, schema: Schema, values: Any) -> Any:
    """A string array with each value's JSON; DataError for a null where none may be."""
    if schema.type is SchemaType.STRUCT and _is_joinable(schema) and not values.null_count:
        return _structs(writer, schema, values)
    make = _fast(schema)
    texts = _by_value(writer, schema, values) if make is None else make(values)
    if make is not None and values.null_count:
        null = writer.text(writer.node(schema, None))  # Its default, null, or an error.
        texts = pc.fill_null(texts, null)
    return texts


def json_within(writer: JsonWriter, schema: Schema, values: Any, around: tuple[str, str]) -> Any:
    """The same with a text before and behind each value."""
    head, tail = around
    if schema.type is SchemaType.STRING and not is_logical(schema) and _is_plain(values):
        return pc.binary_join_element_wise(f'{head}"', values, f'"{tail}', "")
    texts = json_texts(writer, schema, values)
    return pc.binary_join_element_wise(head, texts, tail, "") if head or tail else texts


def _is_plain(values: Any) -> bool:
    return not values.null_count and not _needs_escapes(values)


def _is_joinable(schema: Schema) -> bool:
    """Whether fields have different names: of two with one name JSON keeps the last."""
    names = [one.name for one in schema.fields]
    return bool(names) and len(set(names)) == len(names)


def _structs(writer: JsonWriter, schema: Schema, values: Any) -> Any:
    parts: list[Any] = []
    for number, (one, column) in enumerate(zip(schema.fields, values.flatten(), strict=True)):
        lead = "," if number else "{"
        parts.append(pa.scalar(f"{lead}{encode_basestring(one.name)}:"))
        parts.append(json_texts(writer, one.schema, column))
    return pc.binary_join_element_wise(*parts, "}", "")


def _fast(schema: Schema) -> Callable[[Any], Any] | None:
    """What makes texts of values that are not null; None: they are written one by one."""
    if schema.name in _COUNTED:
        kind = _COUNTED[schema.name]
        return lambda values: values.cast(kind).cast(pa.string())
    if is_logical(schema):
        return None
    if schema.type in _WHOLE:
        return lambda values: values.cast(pa.string())
    if schema.type is SchemaType.BOOLEAN:
        return lambda values: pc.if_else(values, "true", "false")
    return {SchemaType.STRING: _quoted, SchemaType.FLOAT64: _reals}.get(schema.type)


def _quoted(values: Any) -> Any:
    if _needs_escapes(values):
        found = [None if one is None else encode_basestring(one) for one in values.to_pylist()]
        return pa.array(found, pa.string())
    return pc.binary_join_element_wise('"', values, '"', "")


def _needs_escapes(values: Any) -> bool:
    held = values.buffers()[2]
    if held is None or not len(values):
        return False
    ends = np.frombuffer(values.buffers()[1], np.int32)
    first, last = ends[values.offset], ends[values.offset + len(values)]
    octets = np.frombuffer(held, np.uint8)[first:last]
    if octets.min(initial=_SPACE) < _SPACE:
        return True
    pieces = (octets[at : at + _PIECE_BYTES] for at in range(0, octets.size, _PIECE_BYTES))
    return any(((one == _QUOTE) | (one == _BACKSLASH)).any() for one in pieces)


def _reals(values: Any) -> Any:
    """As Python writes them; what JSON has no number for is a text, as Java has it."""
    return pa.array([_real(one) for one in values.to_pylist()], pa.string())


_ODD = {"inf": '"Infinity"', "-inf": '"-Infinity"', "nan": '"NaN"'}


def _real(value: float | None) -> str | None:
    if value is None:
        return None
    text = repr(value)
    return _ODD.get(text, text)


def _by_value(writer: JsonWriter, schema: Schema, values: Any) -> Any:
    found = (connect_value_of(schema, one) for one in values.to_pylist())
    return pa.array([writer.text(writer.node(schema, one)) for one in found], pa.string())
