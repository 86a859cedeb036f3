"""Which batches of a fetch hold records for the reader, and where their bytes lie.

Checks every CRC, drops control batches and, for a committed read, batches of aborted transactions;
decompresses; converts the formats of old. What is in the records is for `arrow_records`. A batch
that cannot be decompressed is told in the place of its records; one with a wrong CRC is not what
was written, so that is an error whatever the reader chose.
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
_CONTROL = 0x20
_OF_TRANSACTION = 0x30  # Transactional, or a control batch.
_LAST_DELTA_AT = 23
_INT32 = struct.Struct(">i")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_JOINED_BYTES_MAX = 64 * 1024 * 1024


class Span(NamedTuple):
    """The records of one batch: from where to where, how many, and what they are relative to."""

    start: int
    end: int
    record_count: int
    last_offset_delta: int
    base_offset: int
    base_timestamp: int
    append_time_ms: int | None  # None: each record has its own timestamp.
    within: memoryview  # What the batch lies in as the broker has it, from `at` on.
    at: int

    @property
    def stored(self) -> memoryview:
        """The batch as the broker has it; made only for the few that cannot be read."""
        _, length = _OFFSET_AND_LENGTH.unpack_from(self.within, self.at)
        return self.within[self.at : self.at + LOG_OVERHEAD + length]


class Part(NamedTuple):
    """Some batches of a fetch, one after the other in memory."""

    data: memoryview  # The fetched bytes themselves, or new ones where some were compressed.
    spans: list[Span]


class Damaged(NamedTuple):
    """A batch whose records cannot be read, though its checksum is right."""

    span: Span
    reason: str


class Walked(NamedTuple):
    """What a fetch holds for the reader."""

    parts: Iterator[Part | Damaged]  # Each decompressed when it is asked for.
    next_offset: int | None  # The offset after the last whole batch; None: there is no whole one.


class AbortedRanges:
    """Follows a partition's transactions, to tell whose batches were taken back (KIP-98)."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """`aborted` are pairs of producer id and first offset, as a fetch lists them."""
        self._waiting = sorted(((first, pid) for pid, first in aborted), reverse=True)
        self._producers: set[int] = set()

    def drops(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether a control or transactional batch is not for the reader; called in order."""
        while self._waiting and self._waiting[-1][0] <= header.last_offset:
            self._producers.add(self._waiting.pop()[1])
        if not header.attributes & _CONTROL:
            return header.producer_id in self._producers
        if header.producer_id in self._producers and _is_abort(batch):
            self._producers.discard(header.producer_id)
        return True


class _Whole(NamedTuple):
    """A batch whose checksum is right."""

    header: BatchHeader
    data: memoryview  # What it lies in: the fetched bytes, or those converted from old ones.
    at: int


def walk(data: memoryview, aborted: Iterable[tuple[int, int]] = ()) -> Walked:
    """The batches of a fetch that count; CorruptRecord where one is damaged."""
    ranges = AbortedRanges(aborted)
    kept: list[_Whole] = []
    next_offset, is_in_place = None, True
    for whole in _batches(data):
        header, within, at = whole
        attributes = header.attributes
        next_offset = header.base_offset + header.last_offset_delta + 1
        if attributes & _OF_TRANSACTION and ranges.drops(header, within[at:]):
            continue
        if header.record_count:
            kept.append(whole)
            is_in_place = is_in_place and within is data and not attributes & _CODEC_BITS
    if is_in_place:
        spans = [
            _span(header, data, at, at + HEADER_BYTES, at + LOG_OVERHEAD + header.batch_length)
            for header, _, at in kept
        ]
        return Walked(iter([Part(data, spans)] if spans else []), next_offset)
    return Walked(_joined(kept), next_offset)


def _batches(data: memoryview) -> Iterator[_Whole]:
    """Each whole batch; a broker may cut the last one off, which then comes with the next fetch."""
    at, size = 0, len(data)
    while at + _MAGIC_AT < size:
        _, length = _OFFSET_AND_LENGTH.unpack_from(data, at)
        end = at + LOG_OVERHEAD + length
        if length <= _MAGIC_AT - LOG_OVERHEAD:
            raise CorruptRecord(f"a batch or message of {length} bytes")
        if end > size:
            return
        if data[at + _MAGIC_AT] < _MAGIC:
            yield from _batches(memoryview(convert_up(data[at:end], keep_offsets=True)))
        else:
            yield _Whole(check_batch(data, at), data, at)
        at = end


def _is_abort(batch: memoryview) -> bool:
    markers = (read_marker(record) for record in read_records(batch))
    return any(marker is not None and marker.type is ControlType.ABORT for marker in markers)


def _joined(kept: list[_Whole]) -> Iterator[Part | Damaged]:
    """The payloads, decompressed, some one after the other in new bytes: not all, for a fetch of
    small batches may hold more than memory."""
    payloads: list[bytes] = []
    spans: list[Span] = []
    at = 0
    for header, data, stored_at in kept:
        try:
            stored = data[stored_at:]
            payload = read_payload(header, stored, bytes_max=DECOMPRESSED_BYTES_MAX)
        except CorruptRecord as error:
            if spans:
                yield _taken(payloads, spans)
            yield Damaged(_span(header, data, stored_at, 0, 0), str(error))
            at = 0
            continue
        if spans and at + len(payload) > _JOINED_BYTES_MAX:
            yield _taken(payloads, spans)
            at = 0
        spans.append(_span(header, data, stored_at, at, at + len(payload)))
        payloads.append(payload)
        at += len(payload)
    if spans:
        yield _taken(payloads, spans)


def _taken(payloads: list[bytes], spans: list[Span]) -> Part:
    """What was gathered as one part, and the lists emptied: nothing is in memory twice while the
    part is decoded."""
    part = Part(memoryview(b"".join(payloads)), spans[:])
    payloads.clear()
    spans.clear()
    return part


def _span(header: BatchHeader, within: memoryview, at: int, start: int, end: int) -> Span:
    append_time_ms = header.max_timestamp if header.attributes & _LOG_APPEND_TIME else None
    # Not by Span's own constructor: it takes twice as long, and there may be one for each record.
    fields = (
        start,
        end,
        header.record_count,
        header.last_offset_delta,
        header.base_offset,
        header.base_timestamp,
        append_time_ms,
        within,
        at,
    )
    return tuple.__new__(Span, fields)


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
