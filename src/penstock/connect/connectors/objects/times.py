"""The time of a record, and the folders that are named after it.

Patterns of folders are those of Joda, which Confluent's connectors use: `YYYY` is the year there.
Everything is computed in the time zone of the settings.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from penstock.connect.errors.kinds import DataError
from penstock.connect.records import ConnectRecord
from penstock.connect.values.date_format import DateFormat
from penstock.connect.values.logical import timestamp_ms_of, timestamp_of
from penstock.connect.values.struct import StructValue
from penstock.errors import ConfigError

EXTRACTORS = ("Wallclock", "Record", "RecordField")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JODA = {"Y": "y", "e": "u"}  # Joda's letters that Java's SimpleDateFormat has others for.
_REFUSED = frozenset("CxwzZX")

TimeOf = Callable[[ConnectRecord, int], int]  # A record and the clock's milliseconds.


def time_extractor(word: str, field: str) -> TimeOf:
    """How the time of a record is found: by the clock, by its timestamp, or in a field."""
    if word.rpartition(".")[2].startswith("Wallclock"):
        return lambda record, now_ms: now_ms
    if word.rpartition(".")[2].startswith("RecordField"):
        wanted = "take its time from"
        return lambda record, now_ms: _instant(nested_field(record.value, field, wanted), field)
    return lambda record, now_ms: _stamp(record)


def _stamp(record: ConnectRecord) -> int:
    if record.timestamp is None:
        raise DataError("the record has no timestamp")
    return record.timestamp


def nested_field(value: Any, path: str, purpose: str) -> Any:
    """A field by its names with dots between them; DataError where it is not there."""
    for step in path.split("."):
        fields = value.schema.place(step) if isinstance(value, StructValue) else None
        if fields is None and not (isinstance(value, dict) and step in value):
            raise DataError(f"the record has no field {path} to {purpose}")
        value = value[step]
    return value


def _instant(value: Any, field: str) -> int:
    if isinstance(value, bool) or value is None:
        raise DataError(f"the field {field} is {value!r}, which is no time")
    if isinstance(value, int):
        return value
    if isinstance(value, datetime):
        return timestamp_ms_of(value)
    if isinstance(value, date):
        return timestamp_ms_of(datetime(value.year, value.month, value.day, tzinfo=UTC))
    try:
        return timestamp_ms_of(datetime.fromisoformat(value))
    except (TypeError, ValueError):
        raise DataError(f"the field {field} is {value!r}, which is no time") from None


class TimeFolders:
    """The folder of an instant, by a pattern, a zone and a duration."""

    def __init__(self, pattern: str, zone: str, duration_ms: int) -> None:
        self._format = DateFormat(simple_pattern(pattern))
        self._zone = ZoneInfo(zone)
        self._duration_ms = duration_ms

    def folder(self, ms: int) -> str:
        """Where a record of this time lies."""
        return self._format.format(self._local_start(ms))

    def _local_start(self, ms: int) -> int:
        """When its duration began, as the clocks of the zone show it."""
        at = timestamp_of(ms).astimezone(self._zone)
        offset = at.utcoffset() or timedelta()
        local = ms + offset // timedelta(milliseconds=1)
        return local - local % self._duration_ms if self._duration_ms > 0 else local


def simple_pattern(pattern: str) -> str:
    """Joda's pattern in the letters of SimpleDateFormat; ConfigError for what has none here."""
    made, is_quoted = "", False
    for letter in pattern:
        if letter == "'":
            is_quoted = not is_quoted
        elif not is_quoted and letter in _REFUSED:
            raise ConfigError(f"the letter {letter} of a path.format is not supported: {pattern}")
        made += letter if is_quoted else _JODA.get(letter, letter)
    return made
