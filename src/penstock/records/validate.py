"""The rules that need single records, for the topics that have such rules.

Most appends never come here: the header of a batch tells enough, unless the topic is compacted and
so needs keys, or bounds how old a timestamp may be. Each of these checks decodes the batch, and so
also finds out when its record count or its offsets are not true.
"""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.errors import InvalidRecord, InvalidTimestamp
from penstock.records import Bytes
from penstock.records.batch import NO_TIMESTAMP, Record, read_header, read_records
from penstock.records.compression import DECOMPRESSED_BYTES_MAX

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
    count = f"{_ERRORS_MAX} or more" if len(errors) == _ERRORS_MAX else len(errors)
    shown = "; ".join(f"record {index}: {message}" for index, message in errors[:_SHOWN_MAX])
    return f"{count} records have been rejected: {shown}"


def check_records(batch: Bytes, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> None:
    """Refuse a produced batch whose records are not what its header says."""
    for _ in _produced_records(batch, bytes_max=bytes_max):
        pass


def check_keys(batch: Bytes, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> None:
    """Refuse a produced batch with a record that has no key; compaction could not keep it."""
    errors: list[RecordError] = []
    for index, record in _produced_records(batch, bytes_max=bytes_max):
        if record.key is None:
            errors.append(RecordError(index, "a compacted topic needs a key in each record"))
            if len(errors) == _ERRORS_MAX:
                break
    if errors:
        raise RecordsRejected(errors)


def check_timestamps(
    batch: Bytes,
    *,
    now_ms: int,
    before_max_ms: int,
    after_max_ms: int,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> None:
    """Refuse a produced batch with a record too old or too new; no timestamp at all is fine."""
    errors: list[RecordError] = []
    oldest, newest = now_ms - before_max_ms, now_ms + after_max_ms
    for index, record in _produced_records(batch, bytes_max=bytes_max):
        if not oldest <= record.timestamp <= newest and record.timestamp != NO_TIMESTAMP:
            reason = f"timestamp {record.timestamp} is outside [{oldest}, {newest}]"
            errors.append(RecordError(index, reason))
            if len(errors) == _ERRORS_MAX:
                break
    if errors:
        raise TimestampsRejected(errors)


def _produced_records(batch: Bytes, *, bytes_max: int) -> Iterator[tuple[int, Record]]:
    """Each record with its place in the batch, which a producer must number without gaps."""
    base_offset = read_header(batch).base_offset
    for index, record in enumerate(read_records(batch, bytes_max=bytes_max)):
        if record.offset != base_offset + index:
            raise InvalidRecord(
                f"record {index} of a batch has the offset delta {record.offset - base_offset}"
            )
        yield index, record
