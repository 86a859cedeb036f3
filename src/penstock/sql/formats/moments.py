"""Dates and times as the numbers that formats write."""

from datetime import UTC, date, datetime, time, timedelta

from penstock.sql.formats.codec import FormatMisfit

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1)
_DAY_MS = 86_400_000


def timestamp_ms(value: datetime) -> int:
    """Milliseconds since the epoch."""
    return (value - _EPOCH) // timedelta(milliseconds=1)


def timestamp_of(value_ms: int) -> datetime:
    """The moment so many milliseconds after the epoch."""
    try:
        return _EPOCH + timedelta(milliseconds=value_ms)
    except OverflowError:
        raise FormatMisfit(f"{value_ms} ms lie outside of the years 1 to 9999") from None


def date_days(value: date) -> int:
    """Days since the epoch."""
    return (value - _EPOCH_DAY).days


def date_of(days: int) -> date:
    """The date so many days after the epoch."""
    try:
        return _EPOCH_DAY + timedelta(days=days)
    except OverflowError:
        raise FormatMisfit(f"{days} days lie outside of the years 1 to 9999") from None


def time_ms(value: time) -> int:
    """Milliseconds since midnight."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def time_of(value_ms: int) -> time:
    """The time so many milliseconds after midnight."""
    if not 0 <= value_ms < _DAY_MS:
        raise FormatMisfit(f"{value_ms} ms are not within a day")
    seconds, millis = divmod(value_ms, 1000)
    minutes, second = divmod(seconds, 60)
    return time(minutes // 60, minutes % 60, second, millis * 1000)
