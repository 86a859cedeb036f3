"""Dates, times and timestamps: written and read by Java's patterns, moved, counted."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from penstock.sql.functions.catalogue import Catalogue
from penstock.sql.functions.java_time.formatting import format_moment
from penstock.sql.functions.java_time.parsing import ReadFields, read_fields
from penstock.sql.functions.java_time.pattern import (
    DATE_LETTERS,
    TIME_LETTERS,
    ZONE_LETTERS,
    letters_of,
    read_pattern,
)
from penstock.sql.functions.java_time.zones import zone_of
from penstock.sql.types.moments import epoch_ms, from_epoch_ms

catalogue = Catalogue("DATE / TIME")
_FIRST_DAY: Final = date(1970, 1, 1)
_DAY_MS: Final = 86_400_000
_UNIT_MS: Final = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": _DAY_MS,
}


# Written and read


def _formatted(moment: datetime, pattern: str, *, without: frozenset[str], what: str) -> str:
    parts = read_pattern(pattern)
    if letters_of(parts) & without:
        raise ValueError(
            f"Failed to format {what} with the pattern '{pattern}': it has no such field"
        )
    return format_moment(parts, moment)


@catalogue.scalar(
    "FORMAT_TIMESTAMP",
    "(TIMESTAMP, STRING) -> STRING",
    "(TIMESTAMP, STRING, STRING) -> STRING",
    about="A timestamp as text by a pattern of Java's DateTimeFormatter, in UTC or another zone.",
)
def format_timestamp(timestamp: datetime, pattern: str, zone: str = "UTC") -> str:
    return format_moment(read_pattern(pattern), timestamp.astimezone(zone_of(zone)))


@catalogue.scalar(
    "FORMAT_DATE",
    "(DATE, STRING) -> STRING",
    about="A date as text by a pattern of Java's DateTimeFormatter.",
)
def format_date(day: date, pattern: str) -> str:
    moment = datetime.combine(day, time(), UTC)
    return _formatted(moment, pattern, without=TIME_LETTERS | ZONE_LETTERS, what="date")


@catalogue.scalar(
    "FORMAT_TIME",
    "(TIME, STRING) -> STRING",
    about="A time as text by a pattern of Java's DateTimeFormatter.",
)
def format_time(at: time, pattern: str) -> str:
    moment = datetime.combine(_FIRST_DAY, at, UTC)
    return _formatted(moment, pattern, without=DATE_LETTERS | ZONE_LETTERS, what="time")


@catalogue.scalar(
    "PARSE_TIMESTAMP",
    "(STRING, STRING) -> TIMESTAMP",
    "(STRING, STRING, STRING) -> TIMESTAMP",
    about="The timestamp that a text is by a pattern, in UTC or another zone.",
)
def parse_timestamp(text: str, pattern: str, zone: str = "UTC") -> datetime:
    fields = _read(text, pattern, "timestamp")
    moment = datetime.combine(fields.date(), fields.time())
    return moment.replace(tzinfo=fields.zone() or zone_of(zone)).astimezone(UTC)


@catalogue.scalar(
    "PARSE_DATE", "(STRING, STRING) -> DATE", about="The date that a text is by a pattern."
)
def parse_date(text: str, pattern: str) -> date:
    if letters_of(read_pattern(pattern)) & TIME_LETTERS:
        raise ValueError(f"Date format contains time field: {pattern}")
    return _read(text, pattern, "date").date()


@catalogue.scalar(
    "PARSE_TIME", "(STRING, STRING) -> TIME", about="The time that a text is by a pattern."
)
def parse_time(text: str, pattern: str) -> time:
    if letters_of(read_pattern(pattern)) & DATE_LETTERS:
        raise ValueError(f"Time format contains date field: {pattern}")
    fields = _read(text, pattern, "time")
    if not fields.has_hour():
        raise ValueError(
            f"Failed to parse time '{text[:100]}': the pattern '{pattern}' has no hour"
        )
    return fields.time()


def _read(text: str, pattern: str, what: str) -> ReadFields:
    try:
        return read_fields(text, pattern)
    except ValueError as error:
        raise ValueError(f"Failed to parse {what} '{text[:100]}': {error}") from None


@catalogue.scalar(
    "TIMESTAMPTOSTRING",
    "(BIGINT, STRING) -> STRING",
    "(BIGINT, STRING, STRING) -> STRING",
    about="Milliseconds since 1970 as text by a pattern. Deprecated: use FORMAT_TIMESTAMP.",
)
def timestamp_to_string(epoch: int, pattern: str, zone: str = "UTC") -> str:
    return format_timestamp(from_epoch_ms(epoch), pattern, zone)


@catalogue.scalar(
    "STRINGTOTIMESTAMP",
    "(STRING, STRING) -> BIGINT",
    "(STRING, STRING, STRING) -> BIGINT",
    about="Milliseconds since 1970 from text by a pattern. Deprecated: use PARSE_TIMESTAMP.",
)
def string_to_timestamp(text: str, pattern: str, zone: str = "UTC") -> int:
    return epoch_ms(parse_timestamp(text, pattern, zone))


@catalogue.scalar(
    "DATETOSTRING",
    "(INTEGER, STRING) -> STRING",
    about="Days since 1970 as text by a pattern. Deprecated: use FORMAT_DATE.",
)
def date_to_string(days: int, pattern: str) -> str:
    return format_date(from_days(days), pattern)


@catalogue.scalar(
    "STRINGTODATE",
    "(STRING, STRING) -> INTEGER",
    about="Days since 1970 from text by a pattern. Deprecated: use PARSE_DATE.",
)
def string_to_date(text: str, pattern: str) -> int:
    return (_read(text, pattern, "date").date() - _FIRST_DAY).days


# Counted


@catalogue.scalar("FROM_DAYS", "(INTEGER) -> DATE", about="The date so many days after 1970-01-01.")
def from_days(days: int) -> date:
    return _FIRST_DAY + timedelta(days=days)


@catalogue.scalar(
    "FROM_UNIXTIME",
    "(BIGINT) -> TIMESTAMP",
    about="The timestamp so many milliseconds after 1970-01-01, UTC.",
)
def from_unixtime(milliseconds: int) -> datetime:
    return from_epoch_ms(milliseconds)


@catalogue.scalar(
    "UNIX_DATE",
    "(DATE) -> INTEGER",
    about="The days from 1970-01-01 to a date, or to today.",
)
def unix_date(day: date) -> int:
    return (day - _FIRST_DAY).days


@catalogue.scalar(
    "UNIX_TIMESTAMP",
    "(TIMESTAMP) -> BIGINT",
    about="The milliseconds from 1970-01-01, UTC, to a timestamp, or to now.",
)
def unix_timestamp(timestamp: datetime) -> int:
    return epoch_ms(timestamp)


@catalogue.scalar(
    "CONVERT_TZ",
    "(TIMESTAMP, STRING, STRING) -> TIMESTAMP",
    about="A timestamp moved by the difference of two time zones.",
)
def convert_zone(timestamp: datetime, from_zone: str, to_zone: str) -> datetime:
    local = timestamp.replace(tzinfo=zone_of(from_zone))
    return local.astimezone(zone_of(to_zone)).replace(tzinfo=UTC)


# Moved


def _moved(moment: datetime, unit: str, count: int) -> datetime:
    return from_epoch_ms(epoch_ms(moment) + _UNIT_MS[unit] * count)


def _moved_date(day: date, unit: str, count: int) -> date:
    return _moved(datetime.combine(day, time(), UTC), unit, count).date()


def _moved_time(at: time, unit: str, count: int) -> time:
    start = epoch_ms(datetime.combine(_FIRST_DAY, at, UTC))
    return from_epoch_ms((start + _UNIT_MS[unit] * count) % _DAY_MS).time()


def _declare(name: str, kind: str, sign: int, move: Any) -> None:
    def moved(unit: str, interval: int, value: Any) -> Any:
        if unit not in _UNIT_MS:
            raise ValueError(f"{name} does not take the unit {unit}")
        return move(value, unit, sign * interval)

    word = "later" if sign > 0 else "earlier"
    catalogue.scalar(
        name, f"(INTERVALUNIT, INTEGER, {kind}) -> {kind}",
        about=f"A {kind} so many units {word}: DAYS, HOURS, MINUTES, SECONDS or MILLISECONDS.",
    )(moved)  # fmt: skip


for _kind, _move in (("TIMESTAMP", _moved), ("DATE", _moved_date), ("TIME", _moved_time)):
    _declare(f"{_kind}ADD", _kind, 1, _move)
    _declare(f"{_kind}SUB", _kind, -1, _move)
