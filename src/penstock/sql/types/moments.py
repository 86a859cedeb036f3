"""Dates, times and timestamps from ISO-8601 text, whole or in part: `2021-05` is its first day."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Final

from penstock.sql.types.failures import RowFailure

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATE: Final = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_TIME: Final = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:[.,](\d{1,9}))?)?)?")
_ZONE: Final = re.compile(r"(?:Z|([+-])(\d{2}):?(\d{2})?)$", re.IGNORECASE)


def parse_date(text: str) -> date:
    """`yyyy-MM-dd`; raises RowFailure."""
    found = re.fullmatch(r"(\d{4})-(\d{2})-(\d{2})", text.strip())
    try:
        if found:
            return date(*(int(part) for part in found.groups()))
    except ValueError:
        pass
    raise RowFailure(f"Required format is: \"yyyy-MM-dd\". Failed to parse date '{text[:80]}'")


def parse_time(text: str) -> time:
    """`HH:mm:ss`, with milliseconds if there are any; raises RowFailure."""
    found = re.fullmatch(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?", text.strip())
    try:
        if found:
            return _time(found)
    except ValueError:
        pass
    raise RowFailure(f"Required format is: \"HH:mm:ss.SSS\". Failed to parse time '{text[:80]}'")


def _time(found: re.Match[str]) -> time:
    hour, minute, second, fraction = found.groups()
    millisecond = int((fraction or "0").ljust(3, "0")[:3])
    return time(int(hour), int(minute or 0), int(second or 0), millisecond * 1000)


def parse_moment(text: str) -> datetime:
    """ISO-8601; what is left out at the end is the earliest it can be; raises RowFailure."""
    try:
        return _moment(text.strip())
    except (ValueError, OverflowError):
        raise RowFailure(
            f"Failed to parse timestamp '{text[:80]}'. Required format is:"
            ' "yyyy-MM-ddTHH:mm:ss.SSS", with an optional time zone'
        ) from None


def _moment(text: str) -> datetime:
    day_text, _, rest = text.partition("T")
    offset = timedelta()
    if zone := _ZONE.search(rest):
        rest, offset = rest[: zone.start()], _offset(zone)
    day = _DATE.fullmatch(day_text)
    moment = _TIME.fullmatch(rest) if rest else None
    if day is None or (rest and moment is None):
        raise ValueError(text)
    year, month, number = (int(part or 1) for part in day.groups())
    at = _time(moment) if moment else time()
    return datetime.combine(date(year, month, number), at, timezone(offset)).astimezone(UTC)


def _offset(zone: re.Match[str]) -> timedelta:
    sign, hours, minutes = zone.groups()
    if sign is None:
        return timedelta()
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return -offset if sign == "-" else offset


def epoch_ms(value: datetime) -> int:
    """Milliseconds since 1970."""
    return (value - EPOCH) // timedelta(milliseconds=1)


def from_epoch_ms(value: int) -> datetime:
    """The timestamp; raises RowFailure outside of the years 1 to 9999."""
    try:
        return EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        raise RowFailure(f"the timestamp {value} is out of range") from None
