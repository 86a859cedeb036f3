"""Dates and times from a database's text to the numbers that Debezium's schemas carry.

Years before 1 and after 9999, which Python's own dates do not have, are counted like any other.
`infinity` becomes the largest number, `-infinity` the smallest.
"""

import re
from datetime import UTC, date, datetime, time

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import date_of, time_of, timestamp_of

DAY_US = 86_400_000_000
LONG_MAX, LONG_MIN = 2**63 - 1, -(2**63)
INT_MAX, INT_MIN = 2**31 - 1, -(2**31)
_DATE = re.compile(r"(\d+)-(\d\d)-(\d\d)")
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?")
_ZONE = re.compile(r"([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?$")
_IN_UTC = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d*[1-9])?)\+00")
_INTERVAL = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d+))?S)?)?"
)
_MONTH_US = 2_629_800_000_000  # A twelfth of 365.25 days, as Debezium counts.


def days_of_date(text: str) -> int:
    """Days since the epoch of `2024-02-29`, `0044-03-15 BC` or `infinity`."""
    if "infinity" in text:
        return INT_MIN if text[0] == "-" else INT_MAX
    found = _DATE.match(text)
    if found is None:
        raise DataError(f"{text!r} is no date")
    year = int(found[1])
    return _days(1 - year if text.endswith("BC") else year, int(found[2]), int(found[3]))


def micros_of_time(text: str) -> int:
    """Microseconds since midnight of `10:20:30.5`; a zone behind it is left out."""
    found = _TIME.match(text)
    if found is None:
        raise DataError(f"{text!r} is no time of day")
    hours, minutes, seconds, fraction = found.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)
    return whole * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))


def micros_of_timestamp(text: str) -> int:
    """Microseconds since the epoch of `2024-02-29 10:20:30.5`, with or without a zone."""
    if "infinity" in text:
        return LONG_MIN if text[0] == "-" else LONG_MAX
    bare = text.removesuffix(" BC")
    day, _, clock = bare.replace("T", " ").partition(" ")
    shift = _zone_us(clock)
    days = days_of_date(f"{day} BC" if text.endswith(" BC") else day)
    return days * DAY_US + (micros_of_time(clock) if clock else 0) - shift


def zoned_timestamp(text: str) -> str:
    """`2024-02-29T10:20:30.5Z` of a timestamp with a zone."""
    plain = _IN_UTC.fullmatch(text)
    if plain is not None:
        return f"{plain[1]}T{plain[2]}Z"  # As nearly all are, and nothing has to be counted.
    if "infinity" in text:
        return text
    micros = micros_of_timestamp(text)
    days, rest = divmod(micros, DAY_US)
    return f"{_date_text(days)}T{_clock_text(rest)}Z"


def zoned_time(text: str) -> str:
    """`08:20:30Z` of a time of day with a zone."""
    return f"{_clock_text((micros_of_time(text) - _zone_us(text)) % DAY_US)}Z"


def micros_of_interval(text: str) -> int:
    """Microseconds of `P1Y2M3DT4H5M6.7S`, months counted as a twelfth of 365.25 days."""
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is no interval")
    years, months, weeks, days, hours, minutes, sign, seconds, fraction = found.groups()
    clock = (int(hours or 0) * 60 + int(minutes or 0)) * 60_000_000
    part = int(seconds or 0) * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))
    day_count = int(weeks or 0) * 7 + int(days or 0)
    month_count = int(years or 0) * 12 + int(months or 0)
    return month_count * _MONTH_US + day_count * DAY_US + clock + (-part if sign else part)


def connect_date(text: str) -> date:
    """A value of Connect's own Date."""
    return date_of(days_of_date(text))


def connect_time(text: str) -> time:
    """A value of Connect's own Time."""
    return time_of(micros_of_time(text) // 1000)


def connect_timestamp(text: str) -> datetime:
    """A value of Connect's own Timestamp."""
    return timestamp_of(micros_of_timestamp(text) // 1000).astimezone(UTC)


def _zone_us(clock: str) -> int:
    found = _ZONE.search(clock)
    if found is None:
        return 0
    sign, hours, minutes, seconds = found.groups()
    shift = (int(hours) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return (-shift if sign == "-" else shift) * 1_000_000


def _days(year: int, month: int, day: int) -> int:
    """Days since the epoch of a day in the calendar of today, however far back."""
    shifted = year if month > 2 else year - 1
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _date_text(days: int) -> str:
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{'-' if year < 0 else '+'}{abs(year):04d}"
    return f"{shown}-{month:02d}-{day:02d}"


def _clock_text(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    shown = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
    return f"{shown}.{fraction:06d}".rstrip("0") if fraction else shown
