"""What a producer may send: the rules a batch must keep before it is appended.

They need the header only. Rules about single records are in `validate`, and whether a sequence
number follows the last one is known to the log.
"""

from collections.abc import Callable

from penstock.errors import InvalidRecord, InvalidTimestamp, UnsupportedCompressionType
from penstock.native import NATIVE
from penstock.records.batch import (
    CODEC_BITS,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    BatchHeader,
    read_checked,
)
from penstock.records.compression import Codec
from penstock.records.legacy import is_legacy

_RECORD_BYTES_MIN = 7  # Length, attributes, two deltas, two lengths of nothing, no headers.
_HEADER_BYTES_IN_LENGTH = HEADER_BYTES - LOG_OVERHEAD


def check_produced(header: BatchHeader) -> None:
    """Refuse a batch that no producer should send, with the error Kafka gives for it."""
    attributes = header.attributes
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        raise InvalidRecord(
            f"{header.record_count} records do not fill the offsets from 0 to "
            f"{header.last_offset_delta}"
        )
    if not attributes & CODEC_BITS and header.record_count * _RECORD_BYTES_MIN > (
        header.batch_length - _HEADER_BYTES_IN_LENGTH
    ):
        raise InvalidRecord(f"{header.record_count} records do not fit into the batch")
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


def read_only_batch(records: memoryview) -> BatchHeader:
    """The header of the one batch that a request holds for a partition, checked as far as it goes.

    To be called as check_only_batch.
    """
    if is_legacy(records):
        raise InvalidRecord("from version 3 on, produce requests hold batches of format 2")
    header = read_checked(records)
    if header.batch_length != len(records) - LOG_OVERHEAD:
        raise InvalidRecord("a produce request must hold exactly one batch for each partition")
    check_produced(header)
    return header


def _fastest_check() -> Callable[..., BatchHeader]:
    if NATIVE is None:
        return read_only_batch
    return NATIVE.produced_checker(BatchHeader, read_only_batch)


check_only_batch = _fastest_check()
