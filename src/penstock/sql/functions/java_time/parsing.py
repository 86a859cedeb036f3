"""A moment read by a pattern: the pattern becomes a regular expression with a group for each field.

What a pattern leaves out is as early as it can be: 1970, January, the first, midnight.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Final

from penstock.sql.functions.java_time.pattern import Letters, Maybe, Part, Words, read_pattern
from penstock.sql.functions.java_time.words import DAYS, MONTHS, QUARTERS, styled
from penstock.sql.functions.java_time.zones import zone_of

_NOT_READ: Final = frozenset("YwWec")
_ZONE: Final = (
    r"(?:[A-Za-z]+(?:[/_+-][A-Za-z0-9_+-]+)*(?:[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{2}(?::?\d{2}){0,2})"
)
_OFFSETS: Final = {
    "X": r"(?:Z|[+-]\d{2}(?::?\d{2}){0,2})",
    "x": r"[+-]\d{2}(?::?\d{2}){0,2}",
    "Z": r"(?:Z|(?:GMT)?[+-]\d{2}(?::?\d{2}){0,2}|GMT)",
    "O": r"GMT(?:[+-]\d{1,2}(?::?\d{2})?)?",
}
_TEXT_CHARACTERS_MAX: Final = 500
# Fields of one or two digits; each more may double the ways in which a text can be cut into them.
_UNSURE_FIELDS_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class ReadFields:
    """What a text said, by the letters of the pattern."""

    values: dict[str, Any]

    def date(self) -> date:
        """The day; raises ValueError."""
        year = self.values.get("u", self.values.get("y", 1970))
        if "D" in self.values:
            return date(year, 1, 1) + timedelta(days=self.values["D"] - 1)
        quarter = self.values.get("Q")
        month = self.values.get("M", 1 if quarter is None else quarter * 3 - 2)
        return date(year, month, self.values.get("d", 1))

    def time(self) -> time:
        """The time of day, to the millisecond; raises ValueError."""
        if "A" in self.values or "N" in self.values:
            ms = self.values.get("A", self.values.get("N", 0) // 1_000_000)
            return (datetime.min + timedelta(milliseconds=ms)).time()
        ms = self.values.get("S", self.values.get("n", 0) // 1_000_000)
        found = self.values.get
        return time(self._hour(), found("m", 0), found("s", 0), ms * 1000)

    def _hour(self) -> int:
        found = self.values
        if "H" in found:
            return int(found["H"])
        if "k" in found:
            return int(found["k"]) % 24
        half = found.get("h", found.get("K", 0)) % 12
        return int(half + 12 * found.get("a", 0))

    def has_hour(self) -> bool:
        return bool(self.values.keys() & set("HkhKAN"))

    def zone(self) -> tzinfo | None:
        return self.values.get("zone")


def read_fields(text: str, pattern: str) -> ReadFields:
    """The fields of a text; raises ValueError in Java's words."""
    machine, fields = _machine(pattern)
    found = machine.fullmatch(text) if len(text) <= _TEXT_CHARACTERS_MAX else None
    if found is None:
        raise ValueError(f"Text '{text[:100]}' could not be parsed by the pattern '{pattern}'")
    values: dict[str, Any] = {}
    for group, (key, convert) in fields.items():
        if found[group] is not None:
            values[key] = convert(found[group])
    return ReadFields(values)


@lru_cache(256)
def _machine(pattern: str) -> tuple[re.Pattern[str], dict[str, tuple[str, Callable[[str], Any]]]]:
    fields: dict[str, tuple[str, Callable[[str], Any]]] = {}
    text = _expression(read_pattern(pattern), fields)
    if text.count(r"\d{1,") > _UNSURE_FIELDS_MAX:
        raise ValueError(f"the pattern has too many fields of one letter: {pattern}")
    return re.compile(text, re.IGNORECASE), fields


def _expression(parts: tuple[Part, ...], fields: dict[str, Any]) -> str:
    pieces = []
    for part in parts:
        match part:
            case Words(text):
                pieces.append(re.escape(text))
            case Maybe(inner):
                pieces.append(f"(?:{_expression(inner, fields)})?")
            case Letters():
                name = f"f{len(fields)}"
                key, expression, convert = _field(part)
                fields[name] = key, convert
                pieces.append(f"(?P<{name}>{expression})")
    return "".join(pieces)


def _field(part: Letters) -> tuple[str, str, Callable[[str], Any]]:
    letter, count = part.letter, part.count
    if letter in _NOT_READ:
        raise ValueError(f"the pattern letter {letter} can be written and not read")
    if letter in _OFFSETS:
        return "zone", _OFFSETS[letter], lambda text: zone_of(text.upper())
    if letter in "Vz":
        return "zone", _ZONE, zone_of
    if (names := _names(letter, count)) is not None:
        return _KEYS.get(letter, letter), "|".join(names), _index(names, letter)
    return _number(letter, count)


def _names(letter: str, count: int) -> tuple[str, ...] | None:
    if letter in "ML" and count > 2:
        return styled(MONTHS, count)
    if letter == "E":
        return styled(DAYS, max(count, 3))
    if letter in "Qq" and count > 2:
        return QUARTERS if count == 4 else ("Q1", "Q2", "Q3", "Q4")
    return {"a": ("AM", "PM"), "G": ("AD", "Anno Domini")}.get(letter)


def _index(names: tuple[str, ...], letter: str) -> Callable[[str], int]:
    lowered = [name.lower() for name in names]
    first = 1 if letter in "MLQq" else 0
    return lambda text: lowered.index(text.lower()) + first


def _number(letter: str, count: int) -> tuple[str, str, Callable[[str], Any]]:
    if letter in "yu":
        return letter, *_year(count)
    if letter == "S":
        return "S", rf"\d{{{count}}}", lambda text: int(text.ljust(3, "0")[:3])
    widest = {"D": 3, "A": 19, "n": 19, "N": 19}.get(letter, 2)
    digits = rf"\d{{1,{widest}}}" if count == 1 else rf"\d{{{count}}}"
    return _KEYS.get(letter, letter), digits, int


def _year(count: int) -> tuple[str, Callable[[str], int]]:
    if count == 2:
        return r"\d{2}", lambda text: 2000 + int(text)
    return rf"\d{{{min(count, 9)},9}}", int


_KEYS: Final = {"L": "M", "q": "Q"}
