"""Dead letters: what the headers of a record that could not be used say about it.

Key and value are as they were. The record's own headers come first, then what went wrong, under the
names that Kafka Connect gives such headers, so that whoever reads Connect's dead letters can read
ours and `penstock dlq` can read Connect's. Connect has no names for the time of the original record
and for the last offset of a batch; those are ours.

| header                                 | content (text in UTF-8)                             |
| -------------------------------------- | --------------------------------------------------- |
| `__connect.errors.topic`               | the topic the record came from                      |
| `__connect.errors.partition`           | its partition                                       |
| `__connect.errors.offset`              | its offset                                          |
| `__connect.errors.connector.name`      | the pipeline, connector or topic that put it aside  |
| `__connect.errors.stage`               | where it failed: a `FailureStage`                   |
| `__connect.errors.exception.class.name`| the class of the error                              |
| `__connect.errors.exception.message`   | the reason                                          |
| `__penstock.errors.timestamp`          | the record's timestamp in milliseconds              |
| `__penstock.errors.last.offset`        | for a whole batch that cannot be read: its last     |
|                                        | offset; such a letter has neither key nor value     |
| `__penstock.errors.edited`             | topic-partition@offset of the letter before it, of  |
|                                        | which this is the corrected form                    |

docs/dead_letters.md is the contract of the whole platform.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

CONNECT = "__connect.errors."
OURS = "__penstock.errors."
TOPIC = f"{CONNECT}topic"
PARTITION = f"{CONNECT}partition"
OFFSET = f"{CONNECT}offset"
PIPELINE = f"{CONNECT}connector.name"
STAGE = f"{CONNECT}stage"
ERROR_CLASS = f"{CONNECT}exception.class.name"
MESSAGE = f"{CONNECT}exception.message"
TIMESTAMP = f"{OURS}timestamp"
LAST_OFFSET = f"{OURS}last.offset"
EDITED = f"{OURS}edited"
REASON_CHARACTERS_MAX = 2_000  # A dead letter must not outgrow the limit the record was under.

Header = tuple[str, bytes | None]


class FailureStage(StrEnum):
    """Where a record failed, in Kafka Connect's words where it has one."""

    KEY_CONVERTER = "KEY_CONVERTER"  # Its key cannot be decoded.
    VALUE_CONVERTER = "VALUE_CONVERTER"  # Its value cannot be decoded.
    HEADER_CONVERTER = "HEADER_CONVERTER"  # A header cannot be decoded.
    TRANSFORMATION = "TRANSFORMATION"  # A step between source and sink refused it.
    TASK_PUT = "TASK_PUT"  # The table or the system it goes to does not take it.
    KAFKA_CONSUME = "KAFKA_CONSUME"  # A whole batch cannot be read.
    VALIDATION = "VALIDATION"  # The broker keeps it out: it is not of the topic's schema.
    DELIVERY = "DELIVERY"  # A share group gave it up after too many deliveries.


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Where a dead letter comes from and why it is one. None: its headers do not say."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    pipeline: str | None = None
    stage: str | None = None
    error_class: str | None = None
    message: str | None = None
    last_offset: int | None = None  # None: it is about one record, not about a batch.
    edited: str | None = None  # None: key, value and headers are as they were.

    def headers(self) -> list[Header]:
        """What it adds to the headers of the record."""
        message = None if self.message is None else self.message[:REASON_CHARACTERS_MAX]
        told = {
            TOPIC: self.topic,
            PARTITION: self.partition,
            OFFSET: self.offset,
            PIPELINE: self.pipeline,
            STAGE: self.stage,
            ERROR_CLASS: self.error_class,
            MESSAGE: message,
            TIMESTAMP: self.timestamp_ms,
            LAST_OFFSET: self.last_offset,
            EDITED: self.edited,
        }
        return [(name, str(v).encode()) for name, v in told.items() if v is not None]

    @property
    def origin(self) -> str:
        """topic-partition@offset, as far as it is known; of a batch the first and the last."""
        if self.topic is None:
            return "unknown"
        partition = "?" if self.partition is None else self.partition
        offset = "?" if self.offset is None else self.offset
        last = "" if self.last_offset is None else f"..{self.last_offset}"
        return f"{self.topic}-{partition}@{offset}{last}"


def cause_of(headers: Iterable[Header]) -> Cause:
    """What the headers of a dead letter say; of a repeated one the last, which is the newest."""
    told = {name: value.decode(errors="replace") for name, value in headers if value is not None}
    return Cause(
        topic=told.get(TOPIC),
        partition=_number(told.get(PARTITION)),
        offset=_number(told.get(OFFSET)),
        timestamp_ms=_number(told.get(TIMESTAMP)),
        pipeline=told.get(PIPELINE),
        stage=told.get(STAGE),
        error_class=told.get(ERROR_CLASS),
        message=told.get(MESSAGE),
        last_offset=_number(told.get(LAST_OFFSET)),
        edited=told.get(EDITED),
    )


def own_headers(headers: Iterable[Header]) -> list[Header]:
    """The headers that the record had before it became a dead letter."""
    return [one for one in headers if not one[0].startswith((CONNECT, OURS))]


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
