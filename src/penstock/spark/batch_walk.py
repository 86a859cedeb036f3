"""Which batches of a fetch hold records for the reader, and where their bytes lie.

Checks every CRC, drops control batches and, for a committed read, batches of aborted transactions;
decompresses; converts the formats of old. What is in the records is for `arrow_records`.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.errors import CorruptRecord
from penstock.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    BatchHeader,
    check_batch,
    read_payload,
    read_records,
)
from penstock.records.compression import DECOMPRESSED_BYTES_MAX
from penstock.records.control import ControlType, read_marker
from penstock.records.legacy import convert_up

_SIZE_AT = 8
_MAGIC_AT = 16
_MAGIC = 2
_CODEC_BITS = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_LAST_DELTA_AT = 23
_INT32 = struct.Struct(">i")
_OFFSET_AND_LENGTH = struct.Struct(">qi")


class Span(NamedTuple):
    """The records of one batch: from where to where, how many, and what they are relative to."""

    start: int
    end: int
    record_count: int
    last_offset_delta: int
    base_offset: int
    base_timestamp: int
    append_time_ms: int | None  # None: each record has its own timestamp.


class Walked(NamedTuple):
    """What a fetch holds for the reader."""

    data: memoryview  # The fetched bytes themselves, or new ones where some were compressed.
    spans: list[Span]
    next_offset: int | None  # The offset after the last whole batch; None: there is no whole one.


class AbortedRanges:
    """Follows a partition's transactions, to tell whose batches were taken back (KIP-98)."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """`aborted` are pairs of producer id and first offset, as a fetch lists them."""
        self._waiting = sorted(((first, pid) for pid, first in aborted), reverse=True)
        self._producers: set[int] = set()

    def drops(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether a batch is not for a committed read; batches must come in order."""
        while self._waiting and self._waiting[-1][0] <= header.last_offset:
            self._producers.add(self._waiting.pop()[1])
        if header.attributes & _CONTROL:
            if header.producer_id in self._producers and _is_abort(batch):
                self._producers.discard(header.producer_id)
            return True
        return bool(header.attributes & _TRANSACTIONAL) and header.producer_id in self._producers


def walk(data: memoryview, aborted: Iterable[tuple[int, int]] = ()) -> Walked:
    """The batches of a fetch that count; CorruptRecord where one is damaged."""
    ranges = AbortedRanges(aborted)
    kept: list[_Whole] = []
    next_offset = None
    for whole in _batches(data):
        next_offset = whole.header.next_offset
        if not ranges.drops(whole.header, whole.batch) and whole.header.record_count:
            kept.append(whole)
    if all(whole.at is not None and not whole.header.attributes & _CODEC_BITS for whole in kept):
        return Walked(data, [_in_place(whole) for whole in kept], next_offset)
    return Walked(*_joined(kept), next_offset)


class _Whole(NamedTuple):
    header: BatchHeader
    batch: memoryview
    at: int | None  # Where it begins in the fetched bytes; None: it was converted from old ones.


def _batches(data: memoryview) -> Iterator[_Whole]:
    """Each whole batch; a broker may cut the last one off, which then comes with the next fetch."""
    at, size = 0, len(data)
    while at + _MAGIC_AT < size:
        (length,) = _INT32.unpack_from(data, at + _SIZE_AT)
        end = at + LOG_OVERHEAD + length
        if length <= _MAGIC_AT - LOG_OVERHEAD:
            raise CorruptRecord(f"a batch or message of {length} bytes")
        if end > size:
            return
        if data[at + _MAGIC_AT] < _MAGIC:
            for header, batch, _ in _batches(
                memoryview(convert_up(data[at:end], keep_offsets=True))
            ):
                yield _Whole(header, batch, None)
        else:
            yield _Whole(check_batch(data, at), data[at:end], at)
        at = end


def _is_abort(batch: memoryview) -> bool:
    markers = (read_marker(record) for record in read_records(batch))
    return any(marker is not None and marker.type is ControlType.ABORT for marker in markers)


def _in_place(whole: _Whole) -> Span:
    assert whole.at is not None
    return _span(whole.header, whole.at + HEADER_BYTES, whole.at + whole.header.size_bytes)


def _joined(kept: list[_Whole]) -> tuple[memoryview, list[Span]]:
    """The payloads, decompressed, one after the other in new bytes."""
    payloads: list[bytes] = []
    spans: list[Span] = []
    at = 0
    for header, batch, _ in kept:
        payload = read_payload(header, batch, bytes_max=DECOMPRESSED_BYTES_MAX)
        spans.append(_span(header, at, at + len(payload)))
        payloads.append(payload)
        at += len(payload)
    return memoryview(b"".join(payloads)), spans


def _span(header: BatchHeader, start: int, end: int) -> Span:
    return Span(
        start,
        end,
        header.record_count,
        header.last_offset_delta,
        header.base_offset,
        header.base_timestamp,
        header.max_timestamp if header.attributes & _LOG_APPEND_TIME else None,
    )


def offset_after(data: memoryview) -> int | None:
    """The offset to fetch next, from the headers alone; None: no batch is whole.

    Says it before anything is checked or decoded, so that the next fetch can be under way.
    """
    at, size, last = 0, len(data), None
    while at + _MAGIC_AT < size:
        base_offset, length = _OFFSET_AND_LENGTH.unpack_from(data, at)
        end = at + LOG_OVERHEAD + length
        if end > size or length <= _MAGIC_AT - LOG_OVERHEAD:
            break
        delta = 0
        if data[at + _MAGIC_AT] >= _MAGIC and end >= at + HEADER_BYTES:
            (delta,) = _INT32.unpack_from(data, at + _LAST_DELTA_AT)
        last, at = base_offset + delta + 1, end
    return last
