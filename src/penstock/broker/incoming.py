"""What a producer sent, made ready for the log or refused.

Batches of the current format stay bytes: length, magic and CRC are checked, and no record is
decoded unless the topic asks for something only the records can tell. Old formats are converted.
"""

from collections.abc import Sequence
from typing import TypeAlias

from penstock.errors import (
    InvalidRecord,
    InvalidTimestamp,
    InvalidTxnState,
    RecordBatchTooLarge,
    RecordTooLarge,
    UnsupportedCompressionType,
)
from penstock.records.batch import (
    CODEC_BITS,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    BatchHeader,
    check_batch,
    split_batches,
)
from penstock.records.compression import Codec
from penstock.records.legacy import convert_up, is_legacy
from penstock.records.produced import check_produced
from penstock.records.recompress import codec_for_setting, recompress
from penstock.records.validate import check_keys, check_timestamps
from penstock.storage.log_config import LogConfig

Batches: TypeAlias = Sequence[tuple[BatchHeader, memoryview]]

_FIRST_VERSION_WITH_BATCHES = 3
_FIRST_VERSION_WITH_ZSTD = 7
_NO_LIMIT_MS = (1 << 63) - 1


def accepted(
    records: memoryview | None, config: LogConfig, *, version: int, now_ms: int
) -> Batches:
    """The batches to append; raises what the producer is to be told."""
    if not records:
        raise InvalidRecord("a produce request must hold a record batch for each partition")
    if version >= _FIRST_VERSION_WITH_BATCHES:
        batches = [_only_batch(records)]
    elif is_legacy(records):
        batches = split_batches(memoryview(convert_up(records)))
    else:
        batches = split_batches(records)
    keeps_codec = config.compression_type == "producer"
    for index, (header, batch) in enumerate(batches):
        _check(header, batch, config, version, now_ms)
        if not keeps_codec:
            batches[index] = _recompressed(header, batch, config)
    return batches


def _only_batch(records: memoryview) -> tuple[BatchHeader, memoryview]:
    if is_legacy(records):
        raise InvalidRecord("from version 3 on, produce requests hold batches of format 2")
    header = check_batch(records)
    if header.batch_length != len(records) - LOG_OVERHEAD:
        raise InvalidRecord("a produce request must hold exactly one batch for each partition")
    return header, records


def _check(
    header: BatchHeader, batch: memoryview, config: LogConfig, version: int, now_ms: int
) -> None:
    check_produced(header)
    size = len(batch)
    attributes = header.attributes
    if size > config.max_message_bytes:
        raise RecordTooLarge(
            f"a batch of {size} bytes is larger than max.message.bytes {config.max_message_bytes}"
        )
    if size > config.segment_bytes:
        raise RecordBatchTooLarge(
            f"a batch of {size} bytes is larger than segment.bytes {config.segment_bytes}"
        )
    if attributes & TRANSACTIONAL and version < _FIRST_VERSION_WITH_BATCHES:
        raise InvalidTxnState("a batch of a transaction in a request from before there were any")
    if version < _FIRST_VERSION_WITH_ZSTD and attributes & CODEC_BITS == Codec.ZSTD:
        raise UnsupportedCompressionType("zstd needs version 7 of the Produce API")
    if config.is_compacted:
        check_keys(batch)
    if not config.is_append_time:
        _check_times(header, batch, config, now_ms=now_ms)


def _check_times(header: BatchHeader, batch: memoryview, config: LogConfig, *, now_ms: int) -> None:
    """The header's largest timestamp tells of the future; the past needs a look at each record."""
    after_max_ms = config.message_timestamp_after_max_ms
    if header.max_timestamp - now_ms > after_max_ms:
        raise InvalidTimestamp(
            f"timestamp {header.max_timestamp} is more than {after_max_ms} ms ahead of the broker"
        )
    if config.message_timestamp_before_max_ms != _NO_LIMIT_MS:
        check_timestamps(
            batch,
            now_ms=now_ms,
            before_max_ms=config.message_timestamp_before_max_ms,
            after_max_ms=after_max_ms,
        )


def _recompressed(
    header: BatchHeader, batch: memoryview, config: LogConfig
) -> tuple[BatchHeader, memoryview]:
    codec = codec_for_setting(config.compression_type)
    if codec is None or codec is header.codec:
        return header, batch
    level = getattr(config, f"compression_{codec.name.lower()}_level", None)
    made = memoryview(recompress(batch, codec=codec, level=level))
    return check_batch(made), made
