"""Arrow columns to records of message format 2, all rows at once.

The few bytes around each key and value are laid out by numpy, and Arrow joins them with the keys
and values, so no row is ever a Python object. Where a row goes is for `encode_partitions`; what a
batch holds, and its header, is for `encode_batches`.
"""

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import InvalidRecord

Ints: TypeAlias = NDArray[np.int64]

_NULL = 1  # The length -1 in zigzag form.
_ATTRIBUTES_BYTES = 1
_NO_HEADERS = b"\0"
_VARINT_LIMITS = tuple(1 << bits for bits in range(7, 63, 7))


def lengths(column: Any) -> Ints:
    """The bytes of each value; 0 for NULL."""
    sizes = pc.fill_null(pc.binary_length(column), 0)
    return np.asarray(sizes).astype(np.int64, copy=False)


def encode_headers(headers: Any) -> Any:
    """A binary array: for each row, the count of its headers and the headers."""
    flat, counts = headers.flatten(), pc.fill_null(pc.list_value_length(headers), 0)
    count_bytes = _varints(np.asarray(counts).astype(np.int64) << 1)
    names, values = flat.field("key"), flat.field("value")
    if flat.null_count or names.null_count:
        raise InvalidRecord("Null header keys are not permitted.")
    names = names.cast(pa.binary())
    each = pc.binary_join_element_wise(
        _length_varints(names),
        names,
        _length_varints(values),
        values,
        b"",
        null_handling="replace",
        null_replacement=b"",
    )
    ends = np.concatenate(([0], np.cumsum(np.asarray(counts)))).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), each), b"")
    return pc.binary_join_element_wise(count_bytes, joined, b"")


def encode_records(
    keys: Any, values: Any, headers: Any | None, deltas: Ints, times: Ints | None = None
) -> Any:
    """A binary array: each row as a record whose offset is its delta from the batch's first.

    `headers` is None, or what `encode_headers` gave; `times` are deltas from the batch's timestamp,
    None where every record has just that.
    """
    key_sizes = _zigzag_lengths(keys)
    value_sizes = _zigzag_lengths(values)
    offsets = deltas << 1
    zeros = np.zeros(len(deltas), dtype=np.int64)
    stamps = zeros if times is None else (times << 1) ^ (times >> 63)
    bodies = (
        _ATTRIBUTES_BYTES
        + _varint_sizes(stamps)
        + _varint_sizes(offsets)
        + _varint_sizes(key_sizes)
        + lengths(keys)
        + _varint_sizes(value_sizes)
        + lengths(values)
        + (len(_NO_HEADERS) if headers is None else lengths(headers))
    )
    front = _varint_row(bodies << 1, zeros, stamps, offsets, key_sizes)
    return pc.binary_join_element_wise(
        front,
        keys,
        _varints(value_sizes),
        values,
        pa.scalar(_NO_HEADERS, pa.binary()) if headers is None else headers,
        b"",
        null_handling="replace",
        null_replacement=b"",
    )


def _zigzag_lengths(column: Any) -> Ints:
    sizes = lengths(column) << 1
    if column.null_count:
        sizes = np.where(np.asarray(column.is_null()), _NULL, sizes)
    return sizes


def _length_varints(column: Any) -> Any:
    return _varints(_zigzag_lengths(column))


def _varint_sizes(numbers: Ints) -> Ints:
    sizes = np.ones(len(numbers), dtype=np.int64)
    top = int(numbers.max(initial=0))
    for limit in _VARINT_LIMITS:
        if top < limit:
            break
        sizes += numbers >= limit
    return sizes


def _varints(numbers: Ints) -> Any:
    return _varint_row(numbers)


def _varint_row(*columns: Ints) -> Any:
    """For each row its numbers as varints, one behind the other, as a binary array.

    Every number gets as many byte columns as the largest needs; a mask then drops what the
    smaller ones do not.
    """
    count = len(columns[0])
    cells: list[NDArray[np.uint8]] = []
    used: list[NDArray[np.bool_]] = []
    always = np.ones(count, dtype=np.bool_)
    for numbers in columns:
        top = int(numbers.max(initial=0))
        width = 1 + sum(top >= limit for limit in _VARINT_LIMITS)
        for place in range(width):
            bits = numbers >> (7 * place)
            is_last = bits < 128 if place + 1 < width else always
            cells.append(np.where(is_last, bits, bits & 127 | 128).astype(np.uint8))
            used.append(always if place == 0 else numbers >= _VARINT_LIMITS[place - 1])
    if len(cells) == 1:
        flat, sizes = cells[0], np.ones(count, dtype=np.int32)
    else:
        mask = np.stack(used, axis=1)
        flat, sizes = np.stack(cells, axis=1)[mask], mask.sum(axis=1, dtype=np.int32)
    ends = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(sizes, out=ends[1:])
    return pa.BinaryArray.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(flat)]
    )
