"""The processing log: what fails for single records, as records of JSON in ksqlDB's shape.

ksqlDB's entries do not tell where a record lies. Ours have `topic`, `partition` and `offset` beside
the reason; who reads the log with ksqlDB's columns does not see them.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any, Final

from penstock.streams.tasks.failures import FailureLog, RecordFailure

ENTRIES_MAX: Final = 100  # Of a task's batch: a query in which all fails must not flood.
RETENTION_BYTES: Final = 1 << 30  # Of a partition of the log's topic, when it is made.
_DATA_BYTES_MAX: Final = 9_000  # Of a record that is shown; divisible by three, for base64.
_DESERIALIZATION, _PROCESSING = 0, 1  # ksqlDB's numbers for the kinds of entries.

_PLACE: Final = "`topic` VARCHAR, `partition` INT, `offset` BIGINT"
_COLUMNS: Final = (
    "logger VARCHAR, level VARCHAR, time BIGINT, message STRUCT<type INT, "
    "`deserializationError` STRUCT<target VARCHAR, `errorMessage` VARCHAR, `recordB64` VARCHAR, "
    f"cause ARRAY<VARCHAR>, {_PLACE}>, "
    "`recordProcessingError` STRUCT<`errorMessage` VARCHAR, record VARCHAR, "
    f"cause ARRAY<VARCHAR>, {_PLACE}>, "
    "`productionError` STRUCT<`errorMessage` VARCHAR>, "
    "`serializationError` STRUCT<target VARCHAR, `errorMessage` VARCHAR, record VARCHAR, "
    "cause ARRAY<VARCHAR>, `topic` VARCHAR>, "
    "`kafkaStreamsThreadError` STRUCT<`errorMessage` VARCHAR, `threadName` VARCHAR, "
    "cause ARRAY<VARCHAR>>>"
)


@dataclass(frozen=True, slots=True)
class LogEntries:
    """Writes the entries of a query. It travels to Spark's workers, so it is plain data."""

    query_id: str
    shows_rows: bool

    def __call__(self, failure: RecordFailure) -> bytes:
        """An entry, as bytes of JSON."""
        is_unread = failure.part is not None
        entry = {
            "level": "ERROR",
            "logger": f"processing.{self.query_id}" + (".deserializer" if is_unread else ""),
            "time": failure.at_ms,
            "message": {
                "type": _DESERIALIZATION if is_unread else _PROCESSING,
                "deserializationError": self._unread(failure) if is_unread else None,
                "recordProcessingError": None if is_unread else self._failed(failure),
                "productionError": None,
                "serializationError": None,
                "kafkaStreamsThreadError": None,
            },
        }
        return json.dumps(entry).encode()

    def _unread(self, failure: RecordFailure) -> dict[str, Any]:
        shown = None
        if self.shows_rows and failure.data is not None:
            shown = base64.b64encode(failure.data[:_DATA_BYTES_MAX]).decode()
        return {
            "target": failure.part,
            "errorMessage": f"Error deserializing the {failure.part} of a record of "
            f"{failure.topic}: {failure.reason}",
            "recordB64": shown,
            "cause": [failure.reason],
            **_place(failure),
        }

    def _failed(self, failure: RecordFailure) -> dict[str, Any]:
        shown = None
        if self.shows_rows and failure.data is not None:
            shown = failure.data[:_DATA_BYTES_MAX].decode(errors="replace")
        return {
            "errorMessage": failure.reason,
            "record": shown,
            "cause": [],
            **_place(failure),
        }


def _place(failure: RecordFailure) -> dict[str, Any]:
    return {"topic": failure.topic, "partition": failure.partition, "offset": failure.offset}


def query_log(topic: str, query_id: str, *, shows_rows: bool) -> FailureLog:
    """The log as a query writes it."""
    entry = LogEntries(query_id, shows_rows)
    return FailureLog(topic=topic, entry=entry, entries_max=ENTRIES_MAX)


def log_stream(name: str, topic: str) -> str:
    """The statement that makes a stream of the log."""
    return (
        f"CREATE STREAM IF NOT EXISTS {name} ({_COLUMNS}) "
        f"WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON');"
    )
