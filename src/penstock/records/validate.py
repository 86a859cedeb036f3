"""The rules that need single records, for the topics that have such rules.

Most appends never come here: the header of a batch tells enough, unless the topic is compacted and
so needs keys, or bounds how old a timestamp may be, or the header itself tells of a record from the
future. The check decodes the batch, and so also finds out when its record count or its offsets are
not true.
"""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.errors import CorruptRecord, InvalidRecord, InvalidTimestamp, ProtocolError
from penstock.records import Bytes
from penstock.records.batch import NO_TIMESTAMP, Record, read_header, read_records
from penstock.records.compression import DECOMPRESSED_BYTES_MAX

_ERRORS_MAX = 10_000  # A batch may have a million bad records, and the answer must stay small.
_SHOWN_MAX = 3


class RecordRules(NamedTuple):
    """What a topic asks of each record."""

    topic: str
    partition: int
    needs_key: bool
    bounds_ms: tuple[int, int] | None  # None: the broker's clock stamps the records.


class RecordError(NamedTuple):
    """What is wrong with one record; travels to the producer from Produce version 8 on."""

    batch_index: int
    message: str


class RecordsRejected(InvalidRecord):
    """Single records of a batch are not acceptable, and so the whole batch is not."""

    def __init__(self, errors: list[RecordError], count: int) -> None:
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{message}')"
            for index, message in errors[:_SHOWN_MAX]
        )
        super().__init__(
            f"One or more records have been rejected due to {count} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]"
        )
        self.errors = errors


class TimestampsRejected(InvalidTimestamp):
    """A record of the batch is too old or too far in the future; others may lack a key."""

    def __init__(self, errors: list[RecordError]) -> None:
        super().__init__("One or more records have been rejected due to invalid timestamp")
        self.errors = errors


def check_records(
    batch: Bytes, rules: RecordRules, *, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> None:
    """Refuse a produced batch of which a record breaks a rule; no timestamp at all is fine.

    The CRC of the batch is right, so a batch that cannot be decoded was made wrong. Sending it
    again would not help, and INVALID_RECORD tells the producer so.
    """
    try:
        refusal = _refusal(batch, rules, bytes_max)
    except CorruptRecord as error:
        raise InvalidRecord(str(error)) from error
    if refusal is not None:
        raise refusal


def _refusal(batch: Bytes, rules: RecordRules, bytes_max: int) -> ProtocolError | None:
    errors: list[RecordError] = []
    count = 0
    is_mistimed = False
    needs_key = rules.needs_key
    oldest_ms, newest_ms = rules.bounds_ms or (0, 0)
    is_timed = rules.bounds_ms is not None
    for index, record in _produced_records(batch, bytes_max=bytes_max):
        if needs_key and record.key is None:
            message = (
                "Compacted topic cannot accept message without key in topic partition "
                f"{rules.topic}-{rules.partition}"
            )
        elif (
            is_timed
            and not oldest_ms <= record.timestamp <= newest_ms
            and record.timestamp != NO_TIMESTAMP
        ):
            is_mistimed = True
            message = (
                f"Timestamp {record.timestamp} of message with offset {index} is out of range. "
                f"The timestamp should be within [{oldest_ms}, {newest_ms}]"
            )
        else:
            continue
        count += 1
        if count <= _ERRORS_MAX:
            errors.append(RecordError(index, message))
    if is_mistimed:
        return TimestampsRejected(errors)
    return RecordsRejected(errors, count) if errors else None


def _produced_records(batch: Bytes, *, bytes_max: int) -> Iterator[tuple[int, Record]]:
    """Each record with its place in the batch, which a producer must number without gaps."""
    base_offset = read_header(batch).base_offset
    for index, record in enumerate(read_records(batch, bytes_max=bytes_max, are_views=True)):
        if record.offset != base_offset + index:
            raise InvalidRecord(
                f"record {index} of a batch has the offset delta {record.offset - base_offset}"
            )
        yield index, record
