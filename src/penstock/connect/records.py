"""Records between a connector and a topic: with schemas and values, before or after bytes.

A transform makes a new record of one with `dataclasses.replace`, so whatever a kind of record has
of its own (a source's offset, a sink's) stays with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.connect.values.schema import Schema


@dataclass(frozen=True, slots=True)
class Header:
    """A header of a record; a name may be there twice."""

    name: str
    schema: Schema | None
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRecord:
    """What source and sink records share."""

    topic: str
    partition: int | None = None  # None: the producer chooses it.
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    timestamp: int | None = None  # Milliseconds since the epoch; None: the producer's clock.
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord(ConnectRecord):
    """A record on its way into a topic, with the place in the source that it was read from."""

    source_partition: Mapping[str, Any] | None
    source_offset: Mapping[str, Any] | None


class TimestampType(StrEnum):
    """Whose clock a record's timestamp is of."""

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRecord(ConnectRecord):
    """A record of a topic on its way out.

    The `original` ones say where it was before transforms changed its topic or partition; None:
    as it says itself. Offsets are committed by them.
    """

    offset: int
    timestamp_type: TimestampType = TimestampType.NO_TIMESTAMP_TYPE
    original_topic: str | None = None
    original_partition: int | None = None
    original_offset: int | None = None
