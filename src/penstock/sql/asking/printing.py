"""PRINT: the records of a topic as lines, with formats that are guessed from the first of them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.sql.asking.records import TopicRecord
from penstock.sql.language.statements import PrintTopic

_NULL = "<null>"


def guessed(data: bytes | None) -> str | None:
    """The format that bytes look like; None: they say nothing."""
    if data is None:
        return None
    if _json(data) is not None:
        return "JSON"
    text = _text(data)
    if text is not None and text.isprintable():
        return "KAFKA_STRING"
    if len(data) > 5 and data[0] == 0:
        return "a schema registry's"
    return {8: "KAFKA_BIGINT", 4: "KAFKA_INT"}.get(len(data), "KAFKA_BYTES")


def shown(data: bytes | None, kind: str | None) -> str:
    """Bytes in a format; those that are of another are shown as they look."""
    if data is None:
        return _NULL
    match kind:
        case "KAFKA_BIGINT" | "KAFKA_INT" if len(data) in (4, 8):
            return str(int.from_bytes(data, "big", signed=True))
        case "KAFKA_BYTES" | "a schema registry's":
            return data.hex(" ")
    text = _text(data)
    return data.hex(" ") if text is None else text


def _json(data: bytes) -> object | None:
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


@dataclass(slots=True)
class TopicPrinter:
    """What is printed of a topic, and how many more."""

    statement: PrintTopic
    _seen: int = 0
    _printed: int = 0
    _key: str | None = None
    _value: str | None = None
    _has_told: bool = False

    @property
    def is_done(self) -> bool:
        """Whether its limit is reached."""
        return self.statement.limit is not None and self._printed >= self.statement.limit

    def lines(self, record: TopicRecord) -> Iterator[str]:
        """The lines of a record; none if it is not its turn."""
        self._key = self._key or guessed(record.key)
        self._value = self._value or guessed(record.value)
        is_due = self._seen % max(1, self.statement.every) == 0
        self._seen += 1
        if self.is_done or not is_due:
            return
        if not self._has_told:
            self._has_told = True
            yield f"Key format: {self._key or 'does not match any supported format'}"
            yield f"Value format: {self._value or 'does not match any supported format'}"
        self._printed += 1
        at = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
        yield (
            f"rowtime: {at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03d} Z, "
            f"key: {shown(record.key, self._key)}, value: {shown(record.value, self._value)}, "
            f"partition: {record.partition}"
        )
