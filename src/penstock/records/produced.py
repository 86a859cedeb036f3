"""What a producer may send: the rules a batch must keep before it is appended.

They need the header only. Rules about single records are in `validate`, and whether a sequence
number follows the last one is known to the log.
"""

from penstock.errors import InvalidRecord, InvalidTimestamp, UnsupportedCompressionType
from penstock.records import Bytes
from penstock.records.batch import (
    CODEC_BITS,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    split_batches,
)
from penstock.records.compression import DECOMPRESSED_BYTES_MAX, Codec
from penstock.records.legacy import convert_up, is_legacy

_V2_SINCE = 3  # Produce requests from here on carry exactly one batch of format 2.
_ZSTD_SINCE = 7


def read_produced(
    data: memoryview, *, version: int, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> list[tuple[BatchHeader, memoryview]]:
    """The batches of one partition in a produce request, checked and in format 2.

    Up to version 2 the request may hold an old message set, which is converted, or nothing.
    """
    if version < _V2_SINCE:
        batches = split_batches(_converted(data, bytes_max=bytes_max))
    elif is_legacy(data):
        raise InvalidRecord(f"produce version {version} carries record batches of magic 2 only")
    else:
        batches = split_batches(data)
        if len(batches) != 1:
            raise InvalidRecord(f"produce version {version} carries one batch for a partition")
    for header, _ in batches:
        check_produced(header)
        if header.attributes & CODEC_BITS == Codec.ZSTD and version < _ZSTD_SINCE:
            raise UnsupportedCompressionType(f"produce version {version} does not know zstd")
    return batches


def _converted(data: Bytes, *, bytes_max: int) -> memoryview:
    if is_legacy(data):
        return memoryview(convert_up(data, bytes_max=bytes_max))
    return memoryview(data)


def check_produced(header: BatchHeader) -> None:
    """Refuse a batch that no producer should send, with the error Kafka gives for it."""
    attributes = header.attributes
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        raise InvalidRecord(
            f"{header.record_count} records do not fill the offsets from 0 to "
            f"{header.last_offset_delta}"
        )
    if attributes & CONTROL:
        raise InvalidRecord("clients are not allowed to write control records")
    if attributes & CODEC_BITS > Codec.ZSTD:
        raise UnsupportedCompressionType(f"no compression {attributes & CODEC_BITS}")
    if attributes & LOG_APPEND_TIME:
        raise InvalidTimestamp("a producer must not set the timestamp type LogAppendTime")
    if header.producer_id >= 0:
        if header.base_sequence < 0 or header.producer_epoch < 0:
            raise InvalidRecord(
                f"producer {header.producer_id} sent epoch {header.producer_epoch}, "
                f"sequence {header.base_sequence}"
            )
    elif attributes & TRANSACTIONAL:
        raise InvalidRecord("a transactional batch without a producer id")
