"""The rules that need single records, for the topics that have such rules.

Most appends never come here: a header tells enough, unless the topic is compacted (every record
needs a key) or bounds how old a timestamp may be.
"""

from dataclasses import dataclass
from typing import NamedTuple

from penstock.errors import InvalidRecord, InvalidTimestamp
from penstock.records import Bytes
from penstock.records.batch import NO_TIMESTAMP, BatchHeader, read_header, read_records
from penstock.records.compression import DECOMPRESSED_BYTES_MAX
from penstock.records.record import INT64_MAX

_ERRORS_MAX = 100  # A batch may have a million bad records; nobody reads on.
_SHOWN_MAX = 3


class RecordError(NamedTuple):
    """What is wrong with one record; travels to the producer from Produce version 8 on."""

    batch_index: int
    message: str


class RecordsRejected(InvalidRecord):
    """Single records of a batch are not acceptable, and so the whole batch is not."""

    def __init__(self, errors: list[RecordError]) -> None:
        super().__init__(_summary(errors))
        self.errors = errors


class TimestampsRejected(InvalidTimestamp):
    """Single records of a batch are too old or too far in the future."""

    def __init__(self, errors: list[RecordError]) -> None:
        super().__init__(_summary(errors))
        self.errors = errors


def _summary(errors: list[RecordError]) -> str:
    shown = "; ".join(f"record {index}: {message}" for index, message in errors[:_SHOWN_MAX])
    return f"{len(errors)} or more records have been rejected: {shown}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRules:
    """What one topic asks of each record; the defaults ask nothing."""

    needs_keys: bool = False  # Compacted topics keep the last value of each key.
    is_append_time: bool = False  # The producer's timestamps are replaced, so no bounds hold.
    timestamp_before_max_ms: int = INT64_MAX
    timestamp_after_max_ms: int = INT64_MAX

    def allows(self, timestamp: int, now_ms: int) -> bool:
        """Whether a record may say this time; none at all is always allowed."""
        if self.is_append_time or timestamp == NO_TIMESTAMP:
            return True
        if timestamp > now_ms:
            return timestamp - now_ms <= self.timestamp_after_max_ms
        return now_ms - timestamp <= self.timestamp_before_max_ms

    def needs_records(self, header: BatchHeader, now_ms: int) -> bool:
        """Whether the header alone cannot show that all records are acceptable."""
        if self.needs_keys:
            return True
        if self.is_append_time:
            return False
        is_bounded = self.timestamp_before_max_ms < INT64_MAX
        return is_bounded or header.max_timestamp - now_ms > self.timestamp_after_max_ms


def validate_batch(
    header: BatchHeader,
    batch: Bytes,
    rules: RecordRules,
    *,
    now_ms: int,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> None:
    """Refuse a produced batch whose records break the topic's rules; decode it only if needed."""
    if rules.needs_records(header, now_ms):
        validate_records(batch, rules, now_ms=now_ms, bytes_max=bytes_max)


def validate_records(
    batch: Bytes,
    rules: RecordRules,
    *,
    now_ms: int,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> None:
    """Decode every record; its count, its offset and what the rules ask must be true."""
    base_offset = read_header(batch).base_offset
    keyless: list[RecordError] = []
    mistimed: list[RecordError] = []
    for index, record in enumerate(read_records(batch, bytes_max=bytes_max)):
        if record.offset != base_offset + index:
            raise InvalidRecord(
                f"record {index} has the offset delta {record.offset - base_offset}"
            )
        if rules.needs_keys and record.key is None:
            keyless.append(RecordError(index, "a compacted topic needs a key in each record"))
        elif not rules.allows(record.timestamp, now_ms):
            mistimed.append(RecordError(index, f"timestamp {record.timestamp} is out of range"))
        if len(keyless) + len(mistimed) >= _ERRORS_MAX:
            break
    if mistimed:
        raise TimestampsRejected(sorted(keyless + mistimed))
    if keyless:
        raise RecordsRejected(keyless)
