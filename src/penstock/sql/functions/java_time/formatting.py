"""A moment as a pattern writes it."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Final

from penstock.sql.functions.java_time.pattern import Letters, Maybe, Part, Words
from penstock.sql.functions.java_time.words import DAYS, HALVES, MONTHS, QUARTERS, styled
from penstock.sql.functions.java_time.zones import offset_text


def format_moment(parts: tuple[Part, ...], moment: datetime) -> str:
    """An aware moment by a pattern; raises ValueError."""
    return "".join(_part(part, moment) for part in parts)


def _part(part: Part, moment: datetime) -> str:
    match part:
        case Words(text):
            return text
        case Maybe(inner):
            return format_moment(inner, moment)
        case Letters(letter, count):
            return _field(letter, count, moment)
    raise TypeError(part)


def _field(letter: str, count: int, moment: datetime) -> str:
    if letter in _NUMBERS:
        return str(_NUMBERS[letter](moment)).zfill(count)
    return _SPECIAL[letter](moment, letter, count)


def _year(moment: datetime, letter: str, count: int) -> str:
    year = week_year(moment)[0] if letter == "Y" else moment.year
    return f"{year % 100:02d}" if count == 2 else str(year).zfill(count)


def _month(moment: datetime, _letter: str, count: int) -> str:
    return _named(MONTHS, moment.month - 1, moment.month, count)


def _named(names: tuple[str, ...], index: int, number: int, count: int) -> str:
    return styled(names, count)[index] if count > 2 else str(number).zfill(count)


def _weekday(moment: datetime, letter: str, count: int) -> str:
    if letter == "E":
        return styled(DAYS, max(count, 3))[moment.weekday()]
    sunday_first = (moment.weekday() + 1) % 7 + 1
    return _named(DAYS, moment.weekday(), sunday_first, count)


def _quarter(moment: datetime, _letter: str, count: int) -> str:
    number = (moment.month + 2) // 3
    if count == 3:
        return f"Q{number}"
    if count == 4:
        return QUARTERS[number - 1]
    return str(number) if count == 5 else str(number).zfill(count)


def _fraction(moment: datetime, _letter: str, count: int) -> str:
    return f"{moment.microsecond:06d}000"[:count]


def _era(_moment: datetime, _letter: str, count: int) -> str:
    return {4: "Anno Domini", 5: "A"}.get(count, "AD")


def _offset(moment: datetime, letter: str, count: int) -> str:
    return offset_text(moment.utcoffset() or timedelta(), letter, count)


def _zone(moment: datetime, letter: str, count: int) -> str:
    if letter == "V":
        if count != 2:
            raise ValueError("Pattern letter count must be 2: V")
        key = getattr(moment.tzinfo, "key", None)
        return key or ("Z" if moment.tzinfo is UTC else _offset(moment, "X", 5))
    if count == 4:
        raise ValueError("the full name of a zone (zzzz) is not supported: use z or VV")
    return moment.tzname() or "UTC"


def week_year(moment: date) -> tuple[int, int]:
    """The year and the week of it, as the United States count: a week begins on Sunday."""
    day = date(moment.year, moment.month, moment.day)
    saturday = day + timedelta(days=(5 - day.weekday()) % 7)
    first = date(saturday.year, 1, 1)
    first_sunday = first - timedelta(days=(first.weekday() + 1) % 7)
    return saturday.year, (day - first_sunday).days // 7 + 1


def _week_of_month(moment: datetime) -> int:
    first = moment.replace(day=1)
    return (moment.day + (first.weekday() + 1) % 7 - 1) // 7 + 1


def _of_day(moment: datetime) -> int:
    """Milliseconds since midnight."""
    return (moment.hour * 3600 + moment.minute * 60 + moment.second) * 1000 + (
        moment.microsecond // 1000
    )


_NUMBERS: Final[dict[str, Callable[[datetime], int]]] = {
    "d": lambda moment: moment.day,
    "D": lambda moment: moment.timetuple().tm_yday,
    "w": lambda moment: week_year(moment)[1],
    "W": _week_of_month,
    "H": lambda moment: moment.hour,
    "k": lambda moment: moment.hour or 24,
    "K": lambda moment: moment.hour % 12,
    "h": lambda moment: moment.hour % 12 or 12,
    "m": lambda moment: moment.minute,
    "s": lambda moment: moment.second,
    "A": _of_day,
    "n": lambda moment: moment.microsecond * 1000,
    "N": lambda moment: _of_day(moment) * 1_000_000,
}
_SPECIAL: Final[dict[str, Callable[[datetime, str, int], str]]] = {
    "y": _year, "u": _year, "Y": _year, "M": _month, "L": _month, "E": _weekday, "e": _weekday,
    "c": _weekday, "Q": _quarter, "q": _quarter, "S": _fraction, "G": _era,
    "a": lambda moment, _letter, _count: HALVES[moment.hour // 12],
    "X": _offset, "x": _offset, "Z": _offset, "O": _offset, "V": _zone, "z": _zone,
}  # fmt: skip
