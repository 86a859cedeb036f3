"""What of a fetch is sent on: whole batches as they are, without markers and what was aborted.

A batch is only taken apart where it cannot stand as it is: it has holes, because compaction took
records out of it; it begins before the place to read from; its times are a broker's own, which a
producer must not send; or it is of a message format from before 0.11.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.errors import CorruptRecord
from penstock.records import Bytes
from penstock.records.batch import (
    CODEC_BITS,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    build_batch,
    check_batch,
    read_header,
    read_records,
    seal,
)
from penstock.records.compression import Codec
from penstock.records.control import ControlType, read_marker
from penstock.records.legacy import convert_up
from penstock.records.record import Record

_MAGIC_AT = 16
_LENGTH_AT = 8


class Piece(NamedTuple):
    """A batch without holes, and which source offsets its records have."""

    spans: tuple[tuple[int, int], ...]  # First offset and count, of records in a row.
    data: Bytes
    record_count: int


class Kept(NamedTuple):
    """What a fetch gives to send on, and where to read from next."""

    pieces: list[Piece]
    next_offset: int
    dropped: int  # Batches that were markers or aborted.


def kept_batches(
    data: memoryview,
    aborted: Sequence[tuple[int, int]],
    *,
    offset: int,
) -> Kept:
    """Sort out what a fetch from this offset brought; a batch that is cut off comes again.

    `aborted` has the producer id and first offset of transactions that were, as the broker tells
    who reads committed records; for others it is empty.
    """
    waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
    void: set[int] = set()  # Producers whose transaction here ends with an abort.
    pieces: list[Piece] = []
    dropped = 0
    for header, batch in whole_batches(data):
        while waiting and waiting[-1][1] <= header.last_offset:
            void.add(waiting.pop()[0])
        if header.next_offset <= offset:
            continue
        if header.is_control:
            dropped += 1
            if _is_abort(batch):
                void.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in void:
            dropped += 1
        else:
            piece = _piece(header, batch, offset)
            if piece is not None:
                pieces.append(piece)
        offset = header.next_offset
    return Kept(pieces, offset, dropped)


def whole_batches(data: memoryview) -> Iterator[tuple[BatchHeader, Bytes]]:
    """Every whole batch, checked; messages of older formats come as the batches they would be."""
    at = 0
    while at + HEADER_BYTES <= len(data) or _is_old(data, at):
        end = at + LOG_OVERHEAD + int.from_bytes(data[at + _LENGTH_AT : at + 12], "big")
        if end > len(data):
            return
        if data[at + _MAGIC_AT] < MAGIC:
            converted = memoryview(convert_up(data[at:end], keep_offsets=True))
            yield from whole_batches(converted)
        else:
            yield check_batch(data, at), data[at:end]
        at = end


def reissued(
    data: Bytes, *, producer_id: int, producer_epoch: int, base_sequence: int
) -> bytearray:
    """The batch as another producer's, in a transaction of its own; the records stay bytes."""
    header = read_header(data)._replace(
        base_offset=0,
        leader_epoch=-1,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
    attributes = header.attributes & CODEC_BITS | TRANSACTIONAL
    return seal(header._replace(attributes=attributes), memoryview(data)[HEADER_BYTES:])


def _is_old(data: memoryview, at: int) -> bool:
    """Whether a message of an older format stands here, which may be shorter than a header."""
    return at + _MAGIC_AT < len(data) and data[at + _MAGIC_AT] < MAGIC


def _is_abort(batch: Bytes) -> bool:
    markers = (read_marker(record) for record in read_records(batch))
    return any(one is not None and one.type is ControlType.ABORT for one in markers)


def _piece(header: BatchHeader, batch: Bytes, offset: int) -> Piece | None:
    is_dense = header.record_count == header.last_offset_delta + 1
    if is_dense and header.base_offset >= offset and not header.is_log_append_time:
        return Piece(((header.base_offset, header.record_count),), batch, header.record_count)
    return _repacked(header, [one for one in read_records(batch) if one.offset >= offset])


def _repacked(header: BatchHeader, records: Sequence[Record]) -> Piece | None:
    """The records one behind the other, compressed as they were; None: there are none."""
    if not records:
        return None
    close = [record._replace(offset=at) for at, record in enumerate(records)]
    codec: Codec = header.codec
    return Piece(_spans(records), build_batch(close, codec=codec), len(close))


def _spans(records: Sequence[Record]) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    for record in records:
        if spans and record.offset < sum(spans[-1]):
            raise CorruptRecord(f"offset {record.offset} follows one that is not below it")
        if spans and record.offset == sum(spans[-1]):
            spans[-1] = (spans[-1][0], spans[-1][1] + 1)
        else:
            spans.append((record.offset, 1))
    return tuple(spans)
