"""Records as fetched, into Arrow batches for Spark: columns at once, not record by record.

One small loop in Python finds where records begin, which only their lengths can tell. Everything
else is numpy over all records of a fetch: varints, offsets, timestamps. Keys and values become
views into the fetched bytes, which Arrow's own code then copies into columns.
Which batches count, and their checksums, are the business of `batch_walk`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import CorruptRecord
from penstock.spark.batch_walk import Span, walk
from penstock.spark.schema import DEFAULT_COLUMNS

ROWS_PER_BATCH = 10_000

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_ARROW_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", _HEADER)),
}
_INLINE_BYTES = 12  # A view of up to this many bytes holds them itself.
_MS_MAX = (2**63 - 1) // 1000  # Spark counts microseconds.

Ints = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Exactly what Spark expects of a source with these columns."""
    return pa.schema([pa.field(name, _ARROW_TYPES[name]) for name in columns])


class Decoded(NamedTuple):
    """The rows of one fetch."""

    batches: Iterator[pa.RecordBatch]
    next_offset: int | None  # From where to fetch on; None: the fetch held no whole batch.


@dataclass(slots=True)
class _Fields:
    """Of each record of a fetch, where its parts are."""

    offset: Ints
    timestamp_ms: Ints
    is_append_time: npt.NDArray[np.int32]
    key_at: Ints
    key_size: Ints  # -1: null.
    value_at: Ints
    value_size: Ints
    header_count: Ints
    headers_at: Ints
    end: Ints

    def rows(self, wanted: slice) -> "_Fields":
        return _Fields(*(getattr(self, name)[wanted] for name in self.__slots__))


def decode(
    records: memoryview,
    *,
    topic: str,
    partition: int,
    start: int = 0,
    end: int | None = None,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    aborted: Iterable[tuple[int, int]] = (),
    rows_per_batch: int = ROWS_PER_BATCH,
) -> list[pa.RecordBatch]:
    """All rows of a record set whose offsets are in [start, end)."""
    decoder = Decoder(topic, partition, columns, rows_per_batch=rows_per_batch)
    return list(decoder.decode(records, start=start, end=end, aborted=aborted).batches)


class Decoder:
    """Decodes the fetches of one partition into batches with the chosen columns."""

    def __init__(
        self,
        topic: str,
        partition: int,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        *,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> None:
        self.schema = arrow_schema(columns)
        self.rows_per_batch = rows_per_batch
        self._constants = {
            "topic": pa.repeat(pa.scalar(topic, pa.string()), rows_per_batch),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), rows_per_batch),
        }
        self._no_bytes = pa.nulls(rows_per_batch, pa.binary())

    def decode(
        self,
        records: memoryview,
        *,
        start: int = 0,
        end: int | None = None,
        aborted: Iterable[tuple[int, int]] = (),
    ) -> Decoded:
        """The rows with offsets in [start, end), batch by batch as they are asked for."""
        data, spans, next_offset = walk(records, aborted)
        if not spans:
            return Decoded(iter(()), next_offset)
        octets: Octets = np.frombuffer(data, np.uint8)
        try:
            fields = _fields(data, octets, spans)
        except IndexError:
            raise CorruptRecord("a record reaches beyond its batch") from None
        return Decoded(self._batches(octets, _within(fields, start, end)), next_offset)

    def _batches(self, octets: Octets, fields: _Fields) -> Iterator[pa.RecordBatch]:
        buffer = pa.py_buffer(octets)
        for first in range(0, len(fields.offset), self.rows_per_batch):
            rows = fields.rows(slice(first, first + self.rows_per_batch))
            arrays = [self._column(name, buffer, octets, rows) for name in self.schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(self, name: str, buffer: pa.Buffer, octets: Octets, rows: _Fields) -> pa.Array:
        count = len(rows.offset)
        if name in self._constants:
            return self._constants[name].slice(0, count)
        if name == "offset":
            return _plain(pa.int64(), rows.offset)
        if name == "timestamp":
            return _plain(_ARROW_TYPES[name], _microseconds(rows.timestamp_ms))
        if name == "timestampType":
            return _plain(pa.int32(), rows.is_append_time)
        if name == "headers":
            return _headers(buffer, octets, rows)
        at, size = (
            (rows.key_at, rows.key_size) if name == "key" else (rows.value_at, rows.value_size)
        )
        if size.max() < 0:
            return self._no_bytes.slice(0, count)
        return _binary(buffer, octets, at, size)


def _within(fields: _Fields, start: int, end: int | None) -> _Fields:
    """A fetch begins with the whole batch around its offset, and may reach beyond the end."""
    offset = fields.offset
    low = int(np.searchsorted(offset, start)) if offset[0] < start else 0
    high = len(offset)
    if end is not None and offset[-1] >= end:
        high = int(np.searchsorted(offset, end))
    return fields.rows(slice(low, high)) if low or high < len(offset) else fields


def _fields(data: memoryview, octets: Octets, spans: list[Span]) -> _Fields:
    start = np.array(_record_starts(data, spans), np.int64)
    counts = np.array([span.record_count for span in spans])
    end = np.empty_like(start)
    end[:-1] = start[1:]
    end[np.cumsum(counts) - 1] = [span.end for span in spans]
    at = start
    length, at = _varints(octets, at)
    if (at + length != end).any():
        raise CorruptRecord("a record does not have the length it says")
    at += 1  # Attributes: none was ever defined.
    timestamp_delta, at = _varints(octets, at)
    offset_delta, at = _varints(octets, at)
    key_size, key_at = _varints(octets, at)
    value_size, value_at = _varints(octets, key_at + np.maximum(key_size, 0))
    header_count, headers_at = _varints(octets, value_at + np.maximum(value_size, 0))
    if max(key_size.max(), value_size.max()) > octets.size:  # Before sums of them wrap around.
        raise CorruptRecord("a key or value reaches beyond its record")
    _check(offset_delta, key_size, value_size, header_count, headers_at, end, spans, counts)
    timestamp_ms, is_append_time = _timestamps(timestamp_delta, spans, counts)
    return _Fields(
        offset=offset_delta + np.repeat([span.base_offset for span in spans], counts),
        timestamp_ms=timestamp_ms,
        is_append_time=is_append_time,
        key_at=key_at,
        key_size=key_size,
        value_at=value_at,
        value_size=value_size,
        header_count=header_count,
        headers_at=headers_at,
        end=end,
    )


def _record_starts(data: memoryview, spans: list[Span]) -> list[int]:
    """Where each record begins; the one thing that has to be followed record by record."""
    octets, shift = _fast_octets(data)
    starts: list[int] = []
    note = starts.append
    for span in spans:
        at = span.start + shift
        for _ in range(span.record_count):
            note(at)
            bits = octets[at]
            if bits < 128:
                at += 1 + (bits >> 1)
                continue
            high = octets[at + 1]
            if high < 128:
                at += 2 + ((high << 7) + bits - 128 >> 1)
            else:
                at = _after_long_length(octets, at)
        if at != span.end + shift:
            raise CorruptRecord(
                f"the records of the batch at offset {span.base_offset} do not fill it"
            )
    return [at - shift for at in starts] if shift else starts


def _after_long_length(octets: bytes | bytearray | memoryview, at: int) -> int:
    bits = shift = 0
    while True:
        byte = octets[at]
        at += 1
        bits |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return at + (bits >> 1)
        if shift > 28:
            raise CorruptRecord("the length of a record is longer than 5 bytes")


def _fast_octets(data: memoryview) -> tuple[bytes | bytearray | memoryview, int]:
    """The object under the view and where the view begins in it: indexing it costs half."""
    root = data.obj
    if not isinstance(root, bytes | bytearray):
        return data, 0
    return root, _address(data) - _address(memoryview(root))


def _address(data: memoryview) -> int:
    where: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return where


def _varints(octets: Octets, at: Ints) -> tuple[Ints, Ints]:
    """The zigzag numbers at these places, and the places behind them."""
    first = octets[at]
    behind = at + 1
    bits = first.astype(np.int64)
    if first.size and first.max() > 127:
        _long_varints(octets, bits, behind)
    return (bits >> 1) ^ -(bits & 1), behind


def _long_varints(octets: Octets, bits: Ints, behind: Ints) -> None:
    """Adds the further bytes, in place; each round looks only at the numbers that go on."""
    rows = np.flatnonzero(bits > 127)
    bits[rows] &= 127
    shift = 7
    while rows.size:
        if shift > 63:
            raise CorruptRecord("a varint is longer than 10 bytes")
        byte = octets[behind[rows]].astype(np.int64)
        bits[rows] |= (byte & 127) << shift
        behind[rows] += 1
        rows = rows[byte > 127]
        shift += 7


def _check(
    offset_delta: Ints,
    key_size: Ints,
    value_size: Ints,
    header_count: Ints,
    headers_at: Ints,
    end: Ints,
    spans: list[Span],
    counts: npt.NDArray[Any],
) -> None:
    """What a checksum cannot promise: that the producer's numbers make sense."""
    if key_size.min() < -1 or value_size.min() < -1 or header_count.min() < 0:
        raise CorruptRecord("a key, a value or the headers of a record have a negative length")
    if (headers_at > end).any() or (headers_at[header_count == 0] != end[header_count == 0]).any():
        raise CorruptRecord("a record does not fill its length")
    last = np.repeat([span.last_offset_delta for span in spans], counts)
    if offset_delta.min() < 0 or (offset_delta > last).any():
        raise CorruptRecord("a record's offset is outside its batch")


def _timestamps(
    delta: Ints, spans: list[Span], counts: npt.NDArray[Any]
) -> tuple[Ints, npt.NDArray[np.int32]]:
    base = [s.base_timestamp if s.append_time_ms is None else s.append_time_ms for s in spans]
    kind = np.repeat(np.array([s.append_time_ms is not None for s in spans], np.int32), counts)
    times = np.repeat(np.array(base, np.int64), counts)
    times += delta if not kind.any() else np.where(kind, 0, delta)
    return times, kind


def _microseconds(milliseconds: Ints) -> Ints:
    return np.clip(milliseconds, -_MS_MAX, _MS_MAX) * 1000


def _plain(kind: pa.DataType, numbers: npt.NDArray[Any]) -> pa.Array:
    """A column over numpy's own memory."""
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def _binary(buffer: pa.Buffer, octets: Octets, at: Ints, size: Ints) -> pa.Array:
    """A column of the bytes at these places; size -1 is null."""
    views = np.empty((len(at), 4), np.int32)
    views[:, 0] = size
    views[:, 1:3] = 0  # The first bytes of the value, which nobody compares here; buffer 0.
    views[:, 3] = at
    short = np.flatnonzero(size <= _INLINE_BYTES)
    if short.size:
        inline = views.view(np.uint8).reshape(-1, 16)[:, 4:]
        inline[short] = _windows(octets, at[short])
    validity = None
    if size.min() < 0:
        views[size < 0, 0] = 0
        validity = pa.py_buffer(np.packbits(size >= 0, bitorder="little"))
    seen = pa.Array.from_buffers(pa.binary_view(), len(at), [validity, pa.py_buffer(views), buffer])
    return seen.cast(pa.binary())


def _windows(octets: Octets, at: Ints) -> Octets:
    """The twelve bytes at each place; beyond the end of the data, anything."""
    if octets.size >= _INLINE_BYTES and at.max() <= octets.size - _INLINE_BYTES:
        windows: Octets = np.lib.stride_tricks.sliding_window_view(octets, _INLINE_BYTES)[at]
        return windows
    reach = at[:, None] + np.arange(_INLINE_BYTES)
    clipped: Octets = octets[np.minimum(reach, octets.size - 1)]
    return clipped


def _headers(buffer: pa.Buffer, octets: Octets, rows: _Fields) -> pa.Array:
    """Lists of names and values, never null: an empty list is five times cheaper downstream."""
    count = rows.header_count
    offsets = np.zeros(len(count) + 1, np.int32)
    np.cumsum(count, out=offsets[1:])
    total = int(offsets[-1])
    parts = np.zeros((4, total), np.int64)  # Of each header: name at, size; value at, size.
    at = rows.headers_at.copy()
    for number in range(int(count.max()) if total else 0):
        going = np.flatnonzero(count > number)
        parts[:, offsets[going] + number], at[going] = _one_header(octets, at[going])
    if total and (at != rows.end).any():
        raise CorruptRecord("the headers of a record do not fill its length")
    names = (
        _text(_binary(buffer, octets, parts[0], parts[1])) if total else pa.array([], pa.string())
    )
    values = _binary(buffer, octets, parts[2], parts[3]) if total else pa.array([], pa.binary())
    entries = pa.StructArray.from_arrays([names, values], fields=list(_HEADER))
    return pa.Array.from_buffers(
        _ARROW_TYPES["headers"], len(count), [None, pa.py_buffer(offsets)], children=[entries]
    )


def _one_header(octets: Octets, at: Ints) -> tuple[Ints, Ints]:
    try:
        name_size, name_at = _varints(octets, at)
        value_size, value_at = _varints(octets, name_at + np.maximum(name_size, 0))
    except IndexError:
        raise CorruptRecord("a header reaches beyond its record") from None
    if name_size.min() < 0 or value_size.min() < -1:
        raise CorruptRecord("a header has a negative length")
    if max(name_size.max(), value_size.max()) > octets.size:
        raise CorruptRecord("a header reaches beyond its record")
    behind = value_at + np.maximum(value_size, 0)
    return np.stack((name_at, name_size, value_at, value_size)), behind


def _text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:  # Not UTF-8: readable anyway, as Java's clients do it.
        read = [name.decode("utf-8", "replace") for name in names.to_pylist()]
        return pa.array(read, pa.string())
