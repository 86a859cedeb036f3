"""Which topics and groups a flow takes: lists of names and patterns, as in mm2.properties."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Names that one of `included` matches as a whole and none of `excluded` does."""

    included: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    _patterns: tuple[re.Pattern[str], re.Pattern[str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        patterns = (_one_pattern(self.included), _one_pattern(self.excluded))
        object.__setattr__(self, "_patterns", patterns)

    def takes(self, name: str) -> bool:
        """Whether a name is chosen."""
        included, excluded = self._patterns
        return bool(included.fullmatch(name)) and not excluded.fullmatch(name)

    @property
    def names(self) -> frozenset[str] | None:
        """The names that are meant, where none is a pattern; None: they cannot be listed."""
        if all(re.escape(one).replace(r"\-", "-") == one for one in self.included):
            return frozenset(self.included)
        return None


def split_list(text: str) -> tuple[str, ...]:
    """The entries of a list with commas."""
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def pattern_error(entries: Sequence[str]) -> str | None:
    """What is wrong with the first entry that is no pattern; None: all are."""
    for entry in entries:
        try:
            re.compile(entry)
        except re.error as error:
            return f"{entry!r} is no regular expression: {error}"
    return None


def _one_pattern(entries: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{entry})" for entry in entries) or r"(?!)")
