"""Columns as the bytes of keys and values, the same as the codecs write them."""

from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.catalog.relations import DataFormat, RelationColumn
from penstock.sql.columns.cells import ARROW, NotInColumns, text_bytes
from penstock.sql.formats.codec import FormatCodec
from penstock.sql.formats.json_format import json_text
from penstock.sql.types.kinds import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    WHOLE,
    DataType,
)

_FORMS: Final = {INTEGER: ">i4", BIGINT: ">i8", DOUBLE: ">f8"}
_JSON: Final = frozenset({BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING})
_QUOTE, _BACKSLASH, _FIRST_PLAIN = ord('"'), ord("\\"), 0x20

BytesWriter = Callable[[Sequence[Any], int], Any]  # Of arrays, and how many rows there are.


def writer_of(
    chosen: DataFormat, columns: Sequence[RelationColumn], codec: FormatCodec
) -> BytesWriter:
    """What writes the columns of a format; NotInColumns if their types or the format are others."""
    kinds = [column.type for column in columns]
    if any(kind not in ARROW for kind in kinds):
        raise NotInColumns
    match chosen.name:
        case "KAFKA" | "NONE":
            if not columns:
                return lambda arrays, size: pa.nulls(size, pa.binary())
            return _bare_writer(kinds[0])
        case "JSON" if columns and (chosen.is_wrapped or len(kinds) != 1):
            if _JSON.issuperset(kinds):
                return _json_writer([column.name for column in columns], kinds)
            return _codec_writer(codec)
        case "JSON" | "DELIMITED" if columns:
            return _codec_writer(codec)
    raise NotInColumns


def _bare_writer(kind: DataType | None) -> BytesWriter:
    if kind in (STRING, BYTES):
        return lambda arrays, size: arrays[0].cast(pa.binary())
    if kind not in _FORMS:
        raise NotInColumns
    return lambda arrays, size: _numbers(arrays[0], _FORMS[kind])


def _numbers(column: Any, form: str) -> Any:
    """Numbers of a width as bytes, which lie one after the other."""
    wide = np.dtype(form).itemsize
    cells = column.fill_null(0).to_numpy(zero_copy_only=False).astype(form)
    if cells.dtype.kind == "f":
        cells[np.isnan(cells)] = np.nan  # One NaN, whatever its sign was.
    edges = np.arange(0, (len(cells) + 1) * wide, wide, dtype=np.int32)
    made = pa.Array.from_buffers(
        pa.binary(),
        len(cells),
        [None, pa.py_buffer(edges.tobytes()), pa.py_buffer(cells.tobytes())],
    )
    if column.null_count == 0:
        return made
    return pc.if_else(column.is_valid(), made, pa.scalar(None, pa.binary()))


def _codec_writer(codec: FormatCodec) -> BytesWriter:
    def write(arrays: Sequence[Any], size: int) -> Any:
        rows = zip(*(array.to_pylist() for array in arrays), strict=True)
        return pa.array([codec.write(row) for row in rows], pa.binary())

    return write


def _json_writer(names: Sequence[str], kinds: Sequence[DataType | None]) -> BytesWriter:
    fronts = [f"{',' if at else '{'}{encode_basestring(name)}:" for at, name in enumerate(names)]

    def write(arrays: Sequence[Any], size: int) -> Any:
        pieces: list[Any] = []
        tail = ""
        for front, kind, array in zip(fronts, kinds, arrays, strict=True):
            quote = '"' if kind == STRING and array.null_count == 0 else ""
            pieces += [tail + front + quote, _json_cells(array, kind, is_quoted=not quote)]
            tail = quote
        return pc.binary_join_element_wise(*pieces, tail + "}", "").cast(pa.binary())

    return write


def _json_cells(column: Any, kind: DataType | None, *, is_quoted: bool) -> Any:
    """The cells as texts of JSON, those of strings with or without their quotes."""
    if kind == STRING:
        cells = _escaped(column)
        cells = pc.binary_join_element_wise('"', cells, '"', "") if is_quoted else cells
    elif kind in WHOLE or kind == BOOLEAN:
        cells = column.cast(pa.string())
    else:
        texts = [None if value is None else json_text(value) for value in column.to_pylist()]
        cells = pa.array(texts, pa.string())
    return cells.fill_null("null") if cells.null_count else cells


def _escaped(column: Any) -> Any:
    found = text_bytes(column)
    is_plain = (found >= _FIRST_PLAIN) & (found != _QUOTE) & (found != _BACKSLASH)
    if is_plain.all():
        return column
    texts = (None if text is None else encode_basestring(text)[1:-1] for text in column.to_pylist())
    return pa.array(texts, pa.string())
