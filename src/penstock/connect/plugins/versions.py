"""Which version of a plug-in is asked for (KIP-891): `1.2`, `latest`, or a range such as `[1.2,2)`.

The grammar is Maven's, as in Connect. One version of each plug-in is here, so a range is either
met or refused.
"""

import re
from dataclasses import dataclass
from itertools import zip_longest

_LATEST = "latest"
_TOKEN = re.compile(r"\d+|[a-z]+")
# Qualifiers in Maven's order; "" is a release. Others come behind, by their letters.
_QUALIFIERS = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
_SAME = {"a": "alpha", "b": "beta", "m": "milestone", "cr": "rc", "ga": "", "final": "",
         "release": ""}  # fmt: skip
_LENGTH_MAX = 1_000  # A longer text is no version.


class BadVersionRange(ValueError):
    """A text that is no range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """From here to there; None: without an end."""

    low: str | None
    high: str | None
    with_low: bool
    with_high: bool

    def __contains__(self, version: str) -> bool:
        if self.low is not None and _compared(version, self.low) < (0 if self.with_low else 1):
            return False
        return self.high is None or _compared(version, self.high) <= (0 if self.with_high else -1)

    def __str__(self) -> str:
        opening, closing = "[" if self.with_low else "(", "]" if self.with_high else ")"
        return f"{opening}{self.low or ''},{self.high or ''}{closing}"


def unmet_range(wanted: str | None, offered: str) -> str | None:
    """The range as Maven writes it if the offered version is not in it; BadVersionRange."""
    text = "" if wanted is None else wanted.strip()
    if not text or text.lower() == _LATEST:
        return None
    if len(text) > _LENGTH_MAX:
        raise BadVersionRange(f"A version has at most {_LENGTH_MAX} characters.")
    ranges = _ranges(text) if text[0] in "[(" else [_only(text)]
    return None if any(offered in one for one in ranges) else ",".join(map(str, ranges))


def _ranges(text: str) -> list[_Range]:
    found: list[_Range] = []
    rest = text
    while rest and rest[0] in "[(":
        ends = [at for at in (rest.find(")"), rest.find("]")) if at >= 0]
        if not ends:
            raise BadVersionRange(f"Unbounded range: {text}")
        end = min(ends)
        found.append(_range(rest[: end + 1]))
        rest = rest[end + 1 :].strip().removeprefix(",").strip()
    if rest:
        raise BadVersionRange(f"Only fully-qualified sets allowed in multiple set scenario: {text}")
    return found


def _range(text: str) -> _Range:
    with_low, with_high = text[0] == "[", text[-1] == "]"
    low, comma, high = (part.strip() for part in text[1:-1].partition(","))
    if not comma:
        if not (with_low and with_high):
            raise BadVersionRange(f"Single version must be surrounded by []: {text}")
        return _only(low)
    if low and low == high:
        raise BadVersionRange(f"Range cannot have identical boundaries: {text}")
    if low and high and _compared(high, low) < 0:
        raise BadVersionRange(f"Range defies version ordering: {text}")
    return _Range(low=low or None, high=high or None, with_low=with_low, with_high=with_high)


def _only(version: str) -> _Range:
    return _Range(low=version, high=version, with_low=True, with_high=True)


def _compared(one: str, other: str) -> int:
    """Below, equal to or above 0, as the first version is older than, the same as or newer."""
    for mine, others in zip_longest(_parts(one), _parts(other), fillvalue=_NOTHING):
        if mine != others:
            return -1 if mine < others else 1
    return 0


_NOTHING = (1, 0, "")  # What a missing part counts as: 1 is 1.0, newer than 1-rc, older than 1-sp.


def _parts(version: str) -> list[tuple[int, int, str]]:
    return [_part(token) for token in _TOKEN.findall(version.lower())]


def _part(token: str) -> tuple[int, int, str]:
    if token.isdigit():
        return (2, int(token), "") if int(token) else _NOTHING
    word = _SAME.get(token, token)
    if word not in _QUALIFIERS:
        return (1, 2, word)
    behind = _QUALIFIERS.index(word) - _QUALIFIERS.index("")
    return (0, len(_QUALIFIERS) + behind, "") if behind < 0 else (1, behind, "")
