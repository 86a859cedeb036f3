"""Java's SimpleDateFormat in UTC: patterns such as `yyyy-MM-dd'T'HH:mm:ss.SSSX`.

Formatting and lenient parsing, as Java does them for English: a number may be longer than its
letters, a month 13 is the next January, and what follows the date is ignored. Weeks (`Y`, `w`, `W`,
`F`) are refused.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import timestamp_of
from penstock.errors import ConfigError

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_NUMBERS = frozenset("yMLDdukHKhmsS")
_LETTERS = frozenset("GyMLDdEuaHkKhmsSzZX")
_YEARS_BEFORE = 80  # Two digits of a year mean one from so long ago to twenty years ahead.
_CACHED_ZONE = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?|GMT|UTC|UT|Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Part:
    letter: str  # Empty: `text` stands as it is.
    width: int
    text: str

    @property
    def is_number(self) -> bool:
        return self.letter in _NUMBERS and not (self.letter in "ML" and self.width > 2)


class DateFormat:
    """One pattern; ConfigError for one that Java, or this, does not take."""

    __slots__ = ("_parts", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._parts = _parts_of(pattern)

    def format(self, ms: int) -> str:
        """An instant in words."""
        at = timestamp_of(ms)
        return "".join(_shown(part, at) for part in self._parts)

    def parse(self, text: str) -> int:
        """The instant that some words name; DataError where they do not fit the pattern."""
        try:
            return _Parsing(text).run(self._parts)
        except (ValueError, IndexError, OverflowError):
            raise DataError(
                f"Could not parse timestamp: value ({text}) does not match pattern ({self.pattern})"
            ) from None


def _parts_of(pattern: str) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            text, at = _quoted(pattern, at)
            parts.append(_Part("", 0, text))
        elif letter.isascii() and letter.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            parts.append(_field(letter, end - at, pattern))
            at = end
        else:
            parts.append(_Part("", 0, letter))
            at += 1
    return tuple(parts)


def _field(letter: str, width: int, pattern: str) -> _Part:
    if letter not in _LETTERS:
        raise ConfigError(f"Illegal or unsupported pattern character '{letter}' in {pattern}")
    if letter == "X" and width > 3:
        raise ConfigError(f"invalid ISO 8601 format: length={width}")
    return _Part(letter, width, "")


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """The text between quotes; two quotes are one."""
    if pattern[at + 1 : at + 2] == "'":
        return "'", at + 2
    text = ""
    at += 1
    while at < len(pattern):
        if pattern[at] != "'":
            text += pattern[at]
        elif pattern[at + 1 : at + 2] == "'":
            text += "'"
            at += 1
        else:
            return text, at + 1
        at += 1
    raise ConfigError("Unterminated quote")


def _shown(part: _Part, at: datetime) -> str:
    letter, width = part.letter, part.width
    if not letter:
        return part.text
    if part.is_number:
        if letter == "y" and width == 2:
            return f"{at.year % 100:02d}"
        return str(_number_of(letter, at)).rjust(width, "0")
    if letter in "ML":
        return _MONTHS[at.month - 1] if width > 3 else _MONTHS[at.month - 1][:3]
    if letter == "E":
        return _DAYS[at.weekday()] if width > 3 else _DAYS[at.weekday()][:3]
    return _WORDS[letter](at, width)


_WORDS: dict[str, Callable[[datetime, int], str]] = {
    "G": lambda at, width: "AD",
    "a": lambda at, width: "AM" if at.hour < 12 else "PM",
    "z": lambda at, width: "Coordinated Universal Time" if width > 3 else "UTC",
    "Z": lambda at, width: "+0000",
    "X": lambda at, width: "Z",
}


def _number_of(letter: str, at: datetime) -> int:
    return {
        "y": at.year,
        "M": at.month,
        "L": at.month,
        "D": at.timetuple().tm_yday,
        "d": at.day,
        "u": at.isoweekday(),
        "H": at.hour,
        "k": at.hour or 24,
        "K": at.hour % 12,
        "h": at.hour % 12 or 12,
        "m": at.minute,
        "s": at.second,
        "S": at.microsecond // 1000,
    }[letter]


class _Parsing:
    """One text on its way to a date: where it is, and what it has found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[str, int] = {}
        self.zone_minutes = 0
        self.short_year = False

    def run(self, parts: tuple[_Part, ...]) -> int:
        for index, part in enumerate(parts):
            if not part.letter:
                self._literal(part.text)
                continue
            following = parts[index + 1] if index + 1 < len(parts) else None
            abuts = following is not None and following.is_number
            self._field(part, abuts)
        return self._instant()

    def _literal(self, text: str) -> None:
        if not self.text.startswith(text, self.at):
            raise ValueError(text)
        self.at += len(text)

    def _field(self, part: _Part, abuts: bool) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        if part.is_number:
            self._number(part, abuts)
        elif part.letter in "ML":
            self.found["M"] = self._word(_MONTHS) + 1
        elif part.letter == "E":
            self._word(_DAYS)
        elif part.letter == "a":
            self.found["a"] = self._word(["AM", "PM"])
        elif part.letter == "G":
            self._word(["AD"])
        else:
            self._zone()

    def _number(self, part: _Part, abuts: bool) -> None:
        start = self.at
        if self.text[self.at : self.at + 1] == "-" and not abuts:
            self.at += 1
        while self.at < len(self.text) and self.text[self.at] in "0123456789":
            if abuts and self.at - start >= part.width:
                break
            self.at += 1
        word = self.text[start : self.at]
        if len(word) > 18:
            raise ValueError(word)
        letter = "M" if part.letter == "L" else part.letter
        self.found[letter] = int(word)
        if letter == "y":
            self.short_year = part.width <= 2 and len(word) == 2 and word.isdigit()

    def _word(self, names: list[str]) -> int:
        rest = self.text[self.at :].lower()
        for form in (names, [name[:3] for name in names]):
            for place, name in enumerate(form):
                if rest.startswith(name.lower()):
                    self.at += len(name)
                    return place
        raise ValueError(rest)

    def _zone(self) -> None:
        match = _CACHED_ZONE.match(self.text, self.at)
        if match is None:
            raise ValueError(self.text)
        self.at = match.end()
        sign, hours, minutes = match.groups()
        if sign is not None:
            self.zone_minutes = int(hours) * 60 + int(minutes or 0)
            self.zone_minutes *= -1 if sign == "-" else 1

    def _instant(self) -> int:
        found = self.found
        year, month = found.get("y", 1970), found.get("M", 1)
        if self.short_year:
            year = _century(year, month, found.get("d", 1))
        years, month_at = divmod(month - 1, 12)
        begin = datetime(year + years, month_at + 1, 1, tzinfo=UTC)
        day = found.get("d", 1)
        if "D" in found and "d" not in found and "M" not in found:
            begin, day = datetime(year, 1, 1, tzinfo=UTC), found["D"]
        elapsed = timedelta(
            days=day - 1,
            hours=self._hour(),
            minutes=found.get("m", 0) - self.zone_minutes,
            seconds=found.get("s", 0),
            milliseconds=found.get("S", 0),
        )
        return (begin - _EPOCH + elapsed) // timedelta(milliseconds=1)

    def _hour(self) -> int:
        found = self.found
        if "H" in found:
            return found["H"]
        if "k" in found:
            return found["k"] % 24
        half = found.get("K", found.get("h", 0) % 12)
        return half + 12 * found.get("a", 0)


def _century(year: int, month: int, day: int) -> int:
    """The year that two digits mean today."""
    today = datetime.now(UTC)
    first = today.year - _YEARS_BEFORE
    full = first - first % 100 + year
    if full < first or (full == first and (month, day) < (today.month, today.day)):
        full += 100
    return full
