"""The parts of records, for many records at once: offsets, times, and where keys and values lie.

All of it is compiled code, where that was built and finds nothing unusual, or numpy over the
fetched bytes. A checksum only says that the bytes are the producer's;
here it is checked that they make sense, so that no view ever reaches outside its record.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import CorruptRecord
from penstock.native import NATIVE, NativeModule
from penstock.spark.columns.batch_walk import Span
from penstock.spark.columns.record_starts import Ints, Octets, varints

_PARTS = 9  # What compiled code tells of each record: a row of its table for each.


@dataclass(slots=True)
class Fields:
    """Of each record, what it says and where its parts are."""

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

    def rows(self, wanted: slice) -> "Fields":
        """Some of the records."""
        return Fields(*(getattr(self, name)[wanted] for name in self.__slots__))

    def within(self, start: int, end: int | None) -> "Fields":
        """The records with offsets in [start, end); offsets ascend."""
        low, high = 0, len(self.offset)
        if self.offset[0] < start:
            low = int(np.searchsorted(self.offset, start))
        if end is not None and self.offset[-1] >= end:
            high = int(np.searchsorted(self.offset, end))
        return self.rows(slice(low, high)) if low or high < len(self.offset) else self


def groups(spans: list[Span], records_max: int) -> Iterator[tuple[list[Span], slice]]:
    """Batches that together have about so many records, and which of all records they are."""
    group: list[Span] = []
    first = count = 0
    for span in spans:
        if group and count + span.record_count > records_max:
            yield group, slice(first, first + count)
            group, first, count = [], first + count, 0
        group.append(span)
        count += span.record_count
    if group:
        yield group, slice(first, first + count)


def read_natively(
    octets: Octets, spans: list[Span], *, native: NativeModule | None = NATIVE
) -> Fields | None:
    """The parts of all records of these batches, read by compiled code.

    None: it was not built, or the bytes are unusual; then ask `record_starts` and `read_fields`.
    """
    if native is None or any(span.record_count > span.end - span.start for span in spans):
        return None
    batches = np.array(
        [(one.start, one.end, one.record_count, one.last_offset_delta) for one in spans], np.int64
    )
    counts = batches[:, 2]
    table = np.empty((_PARTS, int(counts.sum())), np.int64)
    if not native.read_records(octets, batches, table):
        return None
    return _placed(spans, counts, *table)


def read_fields(octets: Octets, spans: list[Span], start: Ints) -> Fields:
    """The parts of the records that begin at these places, which are all those of the spans."""
    counts = np.array([span.record_count for span in spans], np.int64)
    end = np.empty_like(start)
    end[:-1] = start[1:]
    end[np.cumsum(counts) - 1] = [span.end for span in spans]
    try:
        return _read(octets, spans, counts, start, end)
    except IndexError:
        raise CorruptRecord("a record reaches beyond its batch") from None


def _read(octets: Octets, spans: list[Span], counts: Ints, start: Ints, end: Ints) -> Fields:
    length, at = varints(octets, start)
    if (at + length != end).any():
        raise CorruptRecord("a record does not have the length it says")
    at += 1  # Attributes: none was ever defined.
    timestamp_delta, at = varints(octets, at)
    offset_delta, at = varints(octets, at)
    key_size, key_at = varints(octets, at)
    at = key_at + np.maximum(key_size, 0) if key_size.max() >= 0 else key_at
    value_size, value_at = varints(octets, at)
    header_count, headers_at = varints(octets, value_at + np.maximum(value_size, 0))
    if max(key_size.max(), value_size.max()) > octets.size:  # Before sums of them wrap around.
        raise CorruptRecord("a key or value reaches beyond its record")
    if key_size.min() < -1 or value_size.min() < -1:
        raise CorruptRecord("a key or value has a negative length")
    _check_headers(header_count, headers_at, end)
    last_delta = np.repeat([span.last_offset_delta for span in spans], counts)
    if offset_delta.min() < 0 or (offset_delta > last_delta).any():
        raise CorruptRecord("a record's offset is outside its batch")
    places = (key_at, key_size, value_at, value_size, header_count, headers_at, end)
    return _placed(spans, counts, offset_delta, timestamp_delta, *places)


def _placed(
    spans: list[Span], counts: Ints, offset_delta: Ints, timestamp_delta: Ints, *places: Ints
) -> Fields:
    """The fields of records that tell offset and time by what they are beyond their batch's.

    `places` are the other fields, in their order.
    """
    timestamp_ms, is_append_time = _timestamps(timestamp_delta, spans, counts)
    offset = offset_delta + np.repeat([span.base_offset for span in spans], counts)
    return Fields(offset, timestamp_ms, is_append_time, *places)


def _check_headers(count: Ints, at: Ints, end: Ints) -> None:
    """Without headers the record ends here; with some, it does not end before."""
    if count.min() < 0:
        raise CorruptRecord("a record has a negative number of headers")
    has_none = count == 0
    if (at > end).any() or (at[has_none] != end[has_none]).any():
        raise CorruptRecord("a record does not fill its length")


def _timestamps(
    delta: Ints, spans: list[Span], counts: npt.NDArray[Any]
) -> tuple[Ints, npt.NDArray[np.int32]]:
    base = [s.base_timestamp if s.append_time_ms is None else s.append_time_ms for s in spans]
    kind = np.repeat(np.array([s.append_time_ms is not None for s in spans], np.int32), counts)
    times = np.repeat(np.array(base, np.int64), counts)
    times += delta if not kind.any() else np.where(kind, 0, delta)
    return times, kind
