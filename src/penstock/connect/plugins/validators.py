"""Validators of settings, in Kafka's words."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.connect.plugins.config_def import InvalidValue
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number with a lower bound."""

    low: float

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse less, and null."""
        WithinRange(self.low, None).ensure_valid(name, value)

    def __str__(self) -> str:
        return f"[{self.low},...]"


@dataclass(frozen=True, slots=True)
class WithinRange:
    """A number with bounds, both allowed; None: no bound on that side."""

    low: float | None
    high: float | None

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse what is outside, and null."""
        if value is None:
            raise InvalidValue(name, None, "Value must be non-null")
        if self.low is not None and value < self.low:
            raise InvalidValue(name, value, f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise InvalidValue(name, value, f"Value must be no more than {self.high}")

    def __str__(self) -> str:
        return f"[{self.low},...,{self.high}]"


@dataclass(frozen=True, slots=True)
class OneOfWords:
    """A text that is one of some."""

    words: tuple[str, ...]
    any_case: bool = False

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse other words; null is one only where case counts not."""
        known = {word.upper() for word in self.words} if self.any_case else set(self.words)
        given = value.upper() if self.any_case and value is not None else value
        if given not in known:
            kind = " (case insensitive)" if self.any_case else ""
            words = ", ".join(word.upper() if self.any_case else word for word in self.words)
            raise InvalidValue(name, value, f"String must be one of{kind}: {words}")

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]"


@dataclass(frozen=True, slots=True)
class NonEmptyText:
    """A text of at least one letter; null is let through, as Kafka does."""

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse an empty text."""
        if value is not None and not value:
            raise InvalidValue(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


@dataclass(frozen=True, slots=True)
class NotNull:
    """Any value at all."""

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse null."""
        if value is None:
            raise InvalidValue(name, "null", "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


@dataclass(frozen=True, slots=True)
class NonEmptyList:
    """A list with at least one item."""

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse an empty list, and null."""
        if not value:
            raise InvalidValue(name, value, "Empty list")

    def __str__(self) -> str:
        return "non-empty list"


@dataclass(frozen=True, slots=True)
class DistinctItems:
    """A list without an empty item and without the same item twice."""

    may_be_empty: bool = False

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse null, an empty list unless it may be, an empty item, and one given twice."""
        if value is None:
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        if not value and not self.may_be_empty:
            raise ConfigError(
                f"Configuration '{name}' must not be empty. "
                "Valid values include: any non-empty value"
            )
        if len(set(value)) < len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        if "" in value:
            raise ConfigError(f"Configuration '{name}' values must not be empty.")

    def __str__(self) -> str:
        return "list without duplicates"


@dataclass(frozen=True, slots=True)
class ValidPattern:
    """A regular expression."""

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse what cannot be compiled."""
        try:
            re.compile(value or "")
        except re.error as error:
            raise InvalidValue(name, value, f"Invalid regex: {error}") from None

    def __str__(self) -> str:
        return "valid regex"


@dataclass(frozen=True, slots=True)
class Judged:
    """A validator of a function: it returns what is wrong, or None."""

    judge: Callable[[Any], str | None]
    words: str

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse what the function finds wrong."""
        wrong = self.judge(value)
        if wrong is not None:
            raise InvalidValue(name, value, wrong)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class AllOf:
    """Several validators, one after the other."""

    each: tuple[Any, ...]

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse what one of them refuses."""
        for one in self.each:
            one.ensure_valid(name, value)

    def __str__(self) -> str:
        return ",".join(str(one) for one in self.each)
