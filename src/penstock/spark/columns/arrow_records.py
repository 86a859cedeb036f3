"""Records as fetched, into Arrow batches for Spark: columns at once, not record by record.

Keys and values become views into the fetched bytes, which Arrow's own code then copies into
columns; numbers are numpy's own memory. Which batches count, and their checksums, are the business
of `batch_walk`; what their records say is read by `record_starts` and `record_fields`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import CorruptRecord
from penstock.spark.columns.batch_walk import Damaged, Part, Span, walk
from penstock.spark.columns.record_fields import Fields, groups, read_fields, read_natively
from penstock.spark.columns.record_starts import Ints, Octets, record_starts, varints
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


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Exactly what Spark expects of a source with these columns."""
    return pa.schema([pa.field(name, _ARROW_TYPES[name]) for name in columns])


class DecodedFetch(NamedTuple):
    """The rows of one fetch."""

    batches: Iterator[pa.RecordBatch | Damaged]
    next_offset: int | None  # From where to fetch on; None: the fetch held no whole batch.


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
    """All rows of a record set whose offsets are in [start, end); CorruptRecord for a bad batch."""
    decoder = FetchDecoder(topic, partition, columns, rows_per_batch=rows_per_batch)
    batches = []
    for batch in decoder.decode(records, start=start, end=end, aborted=aborted).batches:
        if isinstance(batch, Damaged):
            raise CorruptRecord(f"the batch at offset {batch.span.base_offset}: {batch.reason}")
        batches.append(batch)
    return batches


class FetchDecoder:
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
    ) -> DecodedFetch:
        """The rows with offsets in [start, end), batch by batch as they are asked for.

        A batch that cannot be read stands in its place; the rows before and after it are there.
        """
        parts, next_offset = walk(records, aborted)
        return DecodedFetch(self._parts(parts, start, end), next_offset)

    def _parts(
        self, parts: Iterator[Part | Damaged], start: int, end: int | None
    ) -> Iterator[pa.RecordBatch | Damaged]:
        for part in parts:
            if isinstance(part, Damaged):
                yield part
            else:
                yield from self._checked(part, start, end)

    def _checked(
        self, part: Part, start: int, end: int | None
    ) -> Iterator[pa.RecordBatch | Damaged]:
        """All batches of the part together; in ever smaller parts around one that makes no sense.

        A batch gives all of its rows or none, wherever a fetch happens to begin.
        """
        done = start
        try:
            for batch, behind in self._batches(part.data, part.spans, start, end):
                yield batch
                done = behind
            return
        except CorruptRecord as error:
            if len(part.spans) == 1:
                yield Damaged(part.spans[0], str(error))
                return
        left = [s for s in part.spans if s.base_offset + s.last_offset_delta >= done]
        middle = max(len(left) // 2, 1)
        for spans in (left[:middle], left[middle:]):
            if spans:
                yield from self._checked(Part(part.data, spans), done, end)

    def _batches(
        self, data: memoryview, spans: list[Span], start: int, end: int | None
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Rows, and the offset up to which all batches are through."""
        octets: Octets = np.frombuffer(data, np.uint8)
        buffer = pa.py_buffer(octets)
        starts: Ints | None = None  # None: nobody had to ask yet.
        done = start
        # Not all records of a fetch at once: the columns of one batch fit the processor's cache.
        for group, places in groups(spans, self.rows_per_batch):
            found = read_natively(octets, group)
            if found is None:
                starts = record_starts(data, octets, spans) if starts is None else starts
                found = read_fields(octets, group, starts[places])
            fields = found.within(start, end)
            batches = []
            for first in range(0, len(fields.offset), self.rows_per_batch):
                rows = fields.rows(slice(first, first + self.rows_per_batch))
                arrays = [self._column(name, buffer, octets, rows) for name in self.schema.names]
                batches.append(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
            done = group[-1].base_offset + group[-1].last_offset_delta + 1
            for batch in batches:
                yield batch, done

    def _column(self, name: str, buffer: pa.Buffer, octets: Octets, rows: Fields) -> pa.Array:
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


def _headers(buffer: pa.Buffer, octets: Octets, rows: Fields) -> pa.Array:
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
        name_size, name_at = varints(octets, at)
        value_size, value_at = varints(octets, name_at + np.maximum(name_size, 0))
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
