"""The record batch of message format 2: a header as a view on bytes, and records behind it.

The broker's hot path uses the upper half only: read the header, check length, magic and CRC-32C,
stamp offset and epoch in place. Building batches and reading their records is the lower half.
Rules about what a producer may send are in `produced`; older formats are in `legacy`.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, cast

from penstock.errors import CorruptRecord, UnsupportedCompressionType
from penstock.native import NATIVE
from penstock.records import Bytes
from penstock.records.checksum import crc32c
from penstock.records.compression import DECOMPRESSED_BYTES_MAX, Codec, compress, decompress
from penstock.records.control import EndTransactionMarker, marker_record
from penstock.records.record import Record, decode_records, encode_records

__all__ = [
    "HEADER_BYTES",
    "LEAD",
    "LOG_OVERHEAD",
    "BatchHeader",
    "Record",
    "build_batch",
    "build_key_values",
    "check_batch",
    "control_batch",
    "emptied_batch",
    "read_header",
    "read_payload",
    "read_records",
    "seal",
    "split_batches",
    "stamp_append_time",
    "view_payload",
]

HEADER_BYTES = 61
LOG_OVERHEAD = 12  # Base offset and batch length, which the length itself does not count.
MAGIC = 2
NO_TIMESTAMP = -1

_HEADER = struct.Struct(">qiibIhiqqqhii")
# What a batch begins with: base offset, length, leader epoch. Offset and epoch are outside the CRC,
# so the leader packs where it puts the batch over what the producer said.
LEAD: Final = struct.Struct(">qii")
_CRC = struct.Struct(">I")
_BATCH_LENGTH_MIN = HEADER_BYTES - LOG_OVERHEAD
_CRC_AT = 17
_CRC_START = 21  # The CRC covers everything from the attributes on, so stamping leaves it true.
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35

CODEC_BITS = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40  # KIP-534: the base timestamp is when tombstones of this batch may go.

_CODECS = tuple(Codec)


class BatchHeader(NamedTuple):
    """The 61 bytes in front of the records, field by field."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        number = self.attributes & CODEC_BITS
        if number >= len(_CODECS):
            raise UnsupportedCompressionType(f"no compression has the number {number}")
        return _CODECS[number]

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers may be dropped; None: not decided yet."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id >= 0

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number, which follows 2^31 - 1 with 0; -1: none."""
        if self.base_sequence < 0:
            return -1
        return self.base_sequence + self.last_offset_delta & 0x7FFFFFFF


def read_header(data: Bytes, at: int = 0) -> BatchHeader:
    """The header at a position; only its presence is checked."""
    try:
        return tuple.__new__(BatchHeader, _HEADER.unpack_from(data, at))
    except struct.error:
        raise CorruptRecord(f"{len(data) - at} bytes are too few for a batch header") from None


def read_checked(data: memoryview, at: int = 0) -> BatchHeader:
    """The header of a batch whose length, magic and CRC are right; no record is decoded.

    To be called as check_batch.
    """
    header = read_header(data, at)
    length = header.batch_length
    end = at + LOG_OVERHEAD + length
    if header.magic != MAGIC:
        raise CorruptRecord(f"magic {header.magic} where a batch of format {MAGIC} should be")
    if length < _BATCH_LENGTH_MIN or end > len(data):
        raise CorruptRecord(f"batch length {length} does not fit its {len(data) - at} bytes")
    if crc32c(data[at + _CRC_START : end]) != header.crc:
        raise CorruptRecord(f"the CRC of the batch at offset {header.base_offset} is wrong")
    if header.record_count < 0 or header.last_offset_delta < 0:
        raise CorruptRecord(
            f"a batch says {header.record_count} records up to delta {header.last_offset_delta}"
        )
    return header


def _fastest_check() -> Callable[..., BatchHeader]:
    return read_checked if NATIVE is None else NATIVE.batch_checker(BatchHeader, read_checked)


check_batch = _fastest_check()


def split_batches(data: memoryview) -> list[tuple[BatchHeader, memoryview]]:
    """All batches of a record set, each checked; bytes left over at the end are an error."""
    batches = []
    at, size = 0, len(data)
    while at < size:
        header = check_batch(data, at)
        end = at + LOG_OVERHEAD + header.batch_length
        batches.append((header, data[at:end]))
        at = end
    return batches


def stamp_append_time(batch: memoryview | bytearray, now_ms: int) -> None:
    """Make the broker's clock the timestamp of all records, and the CRC true again."""
    view = memoryview(batch)
    (attributes,) = struct.unpack_from(">h", view, _ATTRIBUTES_AT)
    struct.pack_into(">h", view, _ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    struct.pack_into(">q", view, _MAX_TIMESTAMP_AT, now_ms)
    _CRC.pack_into(view, _CRC_AT, crc32c(view[_CRC_START:]))


def read_records(
    batch: Bytes, *, bytes_max: int = DECOMPRESSED_BYTES_MAX, are_views: bool = False
) -> Iterator[Record]:
    """The records of one batch, at most `bytes_max` when decompressed; the CRC is not checked.

    With `are_views` keys and values need not be bytes: for whoever looks at them only once.
    """
    header = read_header(batch)
    append_time_ms = header.max_timestamp if header.is_log_append_time else None
    payload = view_payload(header, batch, bytes_max=bytes_max)
    return decode_records(
        cast(bytes, payload) if are_views else bytes(payload),
        record_count=header.record_count,
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        append_time_ms=append_time_ms,
    )


def read_payload(header: BatchHeader, batch: Bytes, *, bytes_max: int) -> bytes:
    """The bytes behind the header, decompressed."""
    return bytes(view_payload(header, batch, bytes_max=bytes_max))


def view_payload(header: BatchHeader, batch: Bytes, *, bytes_max: int) -> Bytes:
    """The same without a copy of what is large."""
    if header.magic != MAGIC or header.batch_length < _BATCH_LENGTH_MIN:
        raise CorruptRecord(f"magic {header.magic}, batch length {header.batch_length}")
    if header.size_bytes > len(batch):
        raise CorruptRecord(f"a batch of {header.size_bytes} bytes ends after {len(batch)}")
    payload = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    try:
        codec = header.codec
    except UnsupportedCompressionType as error:
        raise CorruptRecord(str(error)) from None
    return decompress(codec, payload, bytes_max=bytes_max)


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    leader_epoch: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    append_time_ms: int | None = None,
    last_offset_delta: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """A batch of these records, whose offsets stand as they are, ascend and may leave gaps.

    Compaction gives `last_offset_delta`, because a batch keeps its end when its last records go.
    """
    left = iter(records)
    first = next(left, None)
    if first is None:
        raise ValueError("a batch needs a record; see emptied_batch for what compaction leaves")
    base_timestamp = first.timestamp if delete_horizon_ms is None else delete_horizon_ms
    encoded = encode_records(
        chain((first,), left), base_offset=base_offset, base_timestamp=base_timestamp
    )
    if last_offset_delta is None:
        last_offset_delta = encoded.last_offset - base_offset
    attributes = (
        codec
        | (LOG_APPEND_TIME if append_time_ms is not None else 0)
        | (TRANSACTIONAL if is_transactional else 0)
        | (CONTROL if is_control else 0)
        | (DELETE_HORIZON if delete_horizon_ms is not None else 0)
    )
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=encoded.max_timestamp if append_time_ms is None else append_time_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=encoded.record_count,
    )
    return seal(header, compress(codec, encoded.payload, level=level))


def gather_key_values(
    records: Sequence[tuple[bytes, bytes | None]],
    timestamp: int,
    codec: Codec,
    producer_id: int,
    producer_epoch: int,
) -> tuple[BatchHeader, bytearray]:
    """A batch of keys and values of one moment, behind its header; None is a tombstone.

    With a producer id it is part of that producer's transaction. To be called as build_key_values.
    """
    batch = build_batch(
        [Record(at, timestamp, key, value) for at, (key, value) in enumerate(records)],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=producer_id >= 0,
    )
    return read_header(batch), batch


def _fastest_build() -> Callable[..., tuple[BatchHeader, bytearray]]:
    if NATIVE is None:
        return gather_key_values
    return NATIVE.batch_builder(BatchHeader, gather_key_values)


build_key_values = _fastest_build()


def seal(header: BatchHeader, payload: Bytes) -> bytearray:
    """Header and payload in one piece; batch length and CRC are worked out here."""
    batch = bytearray(HEADER_BYTES + len(payload))
    length = len(batch) - LOG_OVERHEAD
    _HEADER.pack_into(batch, 0, header[0], length, header[2], MAGIC, 0, *header[5:])
    batch[HEADER_BYTES:] = payload
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_START:]))
    return batch


def emptied_batch(header: BatchHeader) -> bytearray:
    """What compaction keeps of a batch without records: its offsets and producer's sequence."""
    return seal(
        header._replace(
            attributes=header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL),
            base_timestamp=header.max_timestamp,
            record_count=0,
        ),
        b"",
    )


def control_batch(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    now_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """The marker that commits or aborts a producer's transaction in one partition."""
    return build_batch(
        [marker_record(marker, offset=base_offset, timestamp=now_ms)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        is_transactional=True,
        is_control=True,
    )
