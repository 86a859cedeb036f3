"""What a producer sent, made ready for the log or refused.

Batches of the current format stay bytes: length, magic and CRC are checked, and no record is
decoded unless the topic asks for something only the records can tell. Old formats are converted.
Whoever cannot wait for that to be done to many records is told so, and asks again in a thread.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from penstock.errors import (
    CorruptRecord,
    InvalidRecord,
    InvalidTimestamp,
    InvalidTxnState,
    RecordBatchTooLarge,
    RecordTooLarge,
    UnsupportedCompressionType,
)
from penstock.records.batch import (
    CODEC_BITS,
    TRANSACTIONAL,
    BatchHeader,
    check_batch,
    split_batches,
)
from penstock.records.compression import DECOMPRESSED_BYTES_MAX, Codec
from penstock.records.legacy import convert_up, is_legacy
from penstock.records.produced import check_only_batch, check_produced
from penstock.records.recompress import codec_for_setting, recompress
from penstock.records.validate import (
    RecordRules,
    RecordsRejected,
    TimestampsRejected,
    check_records,
)
from penstock.storage.log.config import LogConfig

Batches: TypeAlias = Sequence[tuple[BatchHeader, memoryview]]

_FIRST_VERSION_WITH_BATCHES = 3
_FIRST_VERSION_WITH_ZSTD = 7
_NO_LIMIT_MS = (1 << 63) - 1
# Unpacking so much and checking each record takes a few milliseconds.
AT_ONCE_BYTES_MAX = 64 * 1024

T = TypeVar("T")


class TakesLong(Exception):
    """Checking the records would block the event loop for too long."""


def accepted(
    records: memoryview | None,
    config: LogConfig,
    *,
    topic: str,
    partition: int,
    version: int,
    now_ms: int,
    at_once: bool = False,
) -> Batches:
    """The batches to append; raises what the producer is to be told.

    With `at_once`, that is on the event loop, it raises TakesLong instead of doing much work.
    """
    if not records:
        raise InvalidRecord("a produce request must hold a record batch for each partition")
    if version >= _FIRST_VERSION_WITH_BATCHES:
        batches = [(check_only_batch(records), records)]
    else:
        batches = _old_batches(records, at_once)
    keeps_codec = config.compression_type == "producer"
    for index, (header, batch) in enumerate(batches):
        _check(header, batch, config, version)
        rules = None
        newest_ms = now_ms + config.message_timestamp_after_max_ms
        if not config.takes_any_past or header.max_timestamp > newest_ms:
            rules = _rules(header, config, topic, partition, now_ms)
        if rules is not None:
            _unpack_within_bound(partial(check_records, batch, rules), len(batch), at_once)
            _check_header_time(header, rules)
        if not keeps_codec:
            batches[index] = _recompress(header, batch, config, at_once)
    return batches


def _unpack_within_bound(work: Callable[..., T], size_bytes: int, at_once: bool) -> T:
    """Run work that unpacks records; on the event loop (`at_once`) only a small amount."""
    if not at_once:
        return work(bytes_max=DECOMPRESSED_BYTES_MAX)
    if size_bytes > AT_ONCE_BYTES_MAX:
        raise TakesLong
    try:
        return work(bytes_max=AT_ONCE_BYTES_MAX)
    except (RecordsRejected, TimestampsRejected):
        raise
    except (CorruptRecord, InvalidRecord):
        raise TakesLong from None  # Damaged, or only larger than this bound: a thread finds out.


def _old_batches(records: memoryview, at_once: bool) -> list[tuple[BatchHeader, memoryview]]:
    """From before version 3, when a request could hold several of any format."""
    if is_legacy(records):
        convert = partial(convert_up, records)
        return split_batches(memoryview(_unpack_within_bound(convert, len(records), at_once)))
    return split_batches(records)


def _check(header: BatchHeader, batch: memoryview, config: LogConfig, version: int) -> None:
    if version < _FIRST_VERSION_WITH_BATCHES:  # Else it was part of the check of the only batch.
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


def _rules(
    header: BatchHeader, config: LogConfig, topic: str, partition: int, now_ms: int
) -> RecordRules | None:
    """The rules to check each record by; None: the header shows that all records are fine.

    The header's largest timestamp tells of the future; the past needs a look at each record.
    """
    needs_key = config.is_compacted
    if config.is_append_time:
        return RecordRules(topic, partition, needs_key, None) if needs_key else None
    before_max_ms = config.message_timestamp_before_max_ms
    newest_ms = now_ms + config.message_timestamp_after_max_ms
    if not needs_key and before_max_ms == _NO_LIMIT_MS and header.max_timestamp <= newest_ms:
        return None
    return RecordRules(topic, partition, needs_key, (now_ms - before_max_ms, newest_ms))


def _check_header_time(header: BatchHeader, rules: RecordRules) -> None:
    """A time that no record has would keep the segment from growing old."""
    if rules.bounds_ms is not None and header.max_timestamp > rules.bounds_ms[1]:
        raise InvalidTimestamp(
            f"the batch says that its latest timestamp is {header.max_timestamp}; no record has it"
        )


def _recompress(
    header: BatchHeader, batch: memoryview, config: LogConfig, at_once: bool
) -> tuple[BatchHeader, memoryview]:
    codec = codec_for_setting(config.compression_type)
    if codec is None or codec is header.codec:
        return header, batch
    level = getattr(config, f"compression_{codec.name.lower()}_level", None)
    pack = partial(recompress, batch, codec=codec, level=level)
    made = memoryview(_unpack_within_bound(pack, len(batch), at_once))
    return check_batch(made), made
