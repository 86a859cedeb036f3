"""What a setting is: a name, a type, a default, what is allowed, whether it acts, and a sentence.

A table of these is the one home of a family of settings: parsing, the sentences that refuse a bad
value, the answers to DescribeConfigs, the print at start-up and docs/settings.md all come from it.
The tables themselves are in `tables/`, `topic.py`, `group.py` and `quotas.py`; which value wins
when several are given is decided in `broker.py` and `topic.py`.

Everything here is built at import by every process, so it is plain slotted objects.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from penstock.errors import ConfigError

Type = Literal["boolean", "string", "int", "short", "long", "double", "list", "class", "password"]
Dynamic = Literal["read-only", "per-broker", "cluster-wide"]
Importance = Literal["high", "medium", "low"]
Value = bool | int | float | str | tuple[str, ...] | None

BOOLEAN: Final = "boolean"
STRING: Final = "string"
INT: Final = "int"
SHORT: Final = "short"
LONG: Final = "long"
DOUBLE: Final = "double"
LIST: Final = "list"
CLASS: Final = "class"
PASSWORD: Final = "password"

READ_ONLY: Final = "read-only"
PER_BROKER: Final = "per-broker"
CLUSTER_WIDE: Final = "cluster-wide"

# Whether changing a setting changes what a broker does. One that does not is still taken, printed
# and described, so that files and tools written for Kafka work.
ACTS: Final = True
INERT: Final = False

HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DOUBLE_MAX: Final = 1.7976931348623157e308
HIDDEN: Final = "[hidden]"

_BITS: Final = {SHORT: 16, INT: 32, LONG: 64}


class BadValue(ConfigError):
    """A value its setting does not take: told in our words, or in those a Kafka client knows."""

    def __init__(self, name: str, value: str | None, allowed: str, kafka_reason: str) -> None:
        shown = "empty" if value == "" else value
        super().__init__(f"{name} is {shown}: it must be {allowed}")
        self.kafka_sentence = (
            f"Invalid value {'null' if value is None else value} for configuration {name}"
            f": {kafka_reason}"
        )


class Password(str):
    """A secret: it compares as the text it is and never prints it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


class Bounds:
    """From `low` to `high`, both allowed; `also` are single values outside that range."""

    __slots__ = ("also", "high", "low")

    def __init__(
        self, low: float | None, high: float | None = None, also: tuple[int, ...] = ()
    ) -> None:
        self.low = low
        self.high = high
        self.also = also

    def __str__(self) -> str:
        low = "..." if self.low is None else str(self.low)
        span = f"[{low},...]" if self.high is None else f"[{low},...,{self.high}]"
        return " or ".join([span, *map(str, self.also)])

    def check(self, setting: "Setting", value: Value, text: str | None) -> None:
        """Refuse a number out of range."""
        if not isinstance(value, int | float) or value in self.also:
            return
        is_low = self.low is not None and value < self.low
        if not is_low and (self.high is None or value <= self.high):
            return
        if self.also:
            also = ", ".join(map(str, self.also))
            reason = f"Value must be between {self.low} and {self.high} or equal to {also}"
        elif is_low:
            reason = f"Value must be at least {self.low}"
        else:
            reason = f"Value must be no more than {self.high}"
        raise BadValue(setting.name, to_text(value), self._allowed(setting.name), reason)

    def _allowed(self, name: str) -> str:
        if self.high is None:
            allowed = f"at least {_with_unit(name, self.low or 0)}"
        else:
            allowed = f"from {self.low} to {_with_unit(name, self.high)}"
        return " or ".join([allowed, *map(str, self.also)])


class OneOf:
    """One of some words, or for a list any of them, each once."""

    __slots__ = ("any_case", "words")

    def __init__(self, *words: str, any_case: bool = False) -> None:
        self.words = words
        self.any_case = any_case

    def __str__(self) -> str:
        words = f"[{', '.join(self.words)}]"
        return f"(case insensitive) {words}" if self.any_case else words

    def check(self, setting: "Setting", value: Value, text: str | None) -> None:
        """Refuse a word that is not ours, and the same word twice."""
        given = value if isinstance(value, tuple) else (value,)
        if len(set(given)) < len(given):
            reason = f"Configuration '{setting.name}' values must not be duplicated."
            raise BadValue(setting.name, text, "without the same value twice", reason)
        for word in given:
            if not self._has(word):
                words = ", ".join(self.words)
                reason = f"String must be one of: {words}"
                raise BadValue(setting.name, text, f"{self._article(setting)} {words}", reason)

    def _has(self, word: object) -> bool:
        if self.any_case and isinstance(word, str):
            return word.upper() in {known.upper() for known in self.words}
        return word in self.words

    def _article(self, setting: "Setting") -> str:
        return "some of" if setting.type == LIST else "one of"


class Matching:
    """A pattern for a text, or for each item of a list."""

    __slots__ = ("allowed", "kafka_reason", "pattern")

    def __init__(self, pattern: str, allowed: str, kafka_reason: str) -> None:
        self.pattern = pattern
        self.allowed = allowed
        self.kafka_reason = kafka_reason

    def __str__(self) -> str:
        return self.allowed

    def check(self, setting: "Setting", value: Value, text: str | None) -> None:
        """Refuse a text of another form."""
        given = value if isinstance(value, tuple) else (str(value),)
        if not all(re.fullmatch(self.pattern, item) for item in given):
            if isinstance(value, tuple):
                shown, reason = f"[{', '.join(given)}]", f"{setting.name} {self.kafka_reason}"
                raise BadValue(setting.name, shown, self.allowed, reason)
            raise BadValue(setting.name, text, self.allowed, self.kafka_reason)


Valid = Bounds | OneOf | Matching | None


class Setting:
    """One setting, as its table states it."""

    __slots__ = (
        "acts",
        "default",
        "dynamic",
        "importance",
        "internal",
        "name",
        "text",
        "type",
        "valid",
    )

    def __init__(
        self,
        name: str,
        kind: Type,
        default: Value,
        valid: Valid,
        importance: Importance,
        dynamic: Dynamic,
        acts: bool,
        text: str,
        internal: bool = False,
    ) -> None:
        self.name = name
        self.type: Type = kind
        self.default = default
        self.valid = valid
        self.importance = importance
        self.dynamic = dynamic
        self.acts = acts
        self.text = text
        self.internal = internal  # Known and obeyed, but neither described nor documented.

    def __repr__(self) -> str:
        return f"Setting({self.name!r}, {self.type}, {self.default!r})"

    @property
    def is_sensitive(self) -> bool:
        """Whether the value stays with this process."""
        return self.type == PASSWORD

    @property
    def attribute(self) -> str:
        """The name as Python code writes it."""
        return attribute_name(self.name)

    def parse(self, text: str) -> Value:
        """The typed value of a text, or BadValue."""
        value = _PARSERS[self.type](self, text.strip())
        if self.valid is not None:
            self.valid.check(self, value, text.strip())
        return value

    def parse_for_client(self, text: str) -> Value:
        """The same, refused by a ConfigError in the words that a Kafka client knows."""
        try:
            return self.parse(text)
        except BadValue as error:
            raise ConfigError(error.kafka_sentence) from error


class SettingTable(Mapping[str, Setting]):
    """Settings by name."""

    def __init__(self, settings: Iterable[Setting]) -> None:
        self._by_name = {setting.name: setting for setting in settings}

    def __getitem__(self, name: str) -> Setting:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def defaults(self) -> dict[str, Value]:
        """Every setting at its default."""
        return {name: setting.default for name, setting in self._by_name.items()}

    def parse(self, texts: Mapping[str, str]) -> dict[str, Value]:
        """Typed values of those given; a name the table does not have is a ConfigError."""
        for name in texts:
            if name not in self._by_name:
                raise ConfigError(f"{name} is not a setting: check how it is spelled")
        return {name: self._by_name[name].parse(text) for name, text in texts.items()}


def attribute_name(name: str) -> str:
    """`log.dirs` as `log_dirs`; the one name with capitals becomes snake case too."""
    spelled = name.replace(".", "_").replace("-", "_")
    if spelled.islower():
        return spelled
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in spelled)


def to_text(value: Value) -> str | None:
    """A value as DescribeConfigs and the znodes write it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return java_double(value) if isinstance(value, float) else str(value)


def to_print(value: Value) -> str:
    """A value as the print at start-up shows it."""
    if isinstance(value, Password):
        return HIDDEN
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    text = to_text(value)
    return "null" if text is None else text


def java_double(number: float) -> str:
    """A double as Java writes it: 0.5, 1.0E-5, 1.7976931348623157E308."""
    mantissa, _, exponent = f"{number!r}".partition("e")
    if exponent:
        point = "" if "." in mantissa else ".0"
        return f"{mantissa}{point}E{int(exponent)}"
    size = abs(number)
    if size >= 1e7:
        digits = mantissa.lstrip("-").replace(".", "").rstrip("0") or "0"
        power = len(mantissa.lstrip("-").partition(".")[0]) - 1
        sign = "-" if number < 0 else ""
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
    if 0 < size < 1e-3:
        shifted = mantissa.lstrip("-").partition(".")[2]
        digits = shifted.lstrip("0")
        sign = "-" if number < 0 else ""
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E-{len(shifted) - len(digits) + 1}"
    return mantissa


def _with_unit(name: str, number: float) -> str:
    """A size in bytes is also told in the unit people think in."""
    if ".bytes" in name and number >= 1024:
        for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
            if number % size == 0:
                return f"{number} ({int(number) // size} {unit})"
    return str(number)


def _parse_boolean(setting: Setting, text: str) -> Value:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    reason = "Expected value to be either true or false"
    raise BadValue(setting.name, text, "true or false", reason)


def _parse_whole(setting: Setting, text: str) -> Value:
    reason = f"Not a number of type {setting.type.upper()}"
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
        raise BadValue(setting.name, text, "a whole number", reason)
    number = int(text)
    limit = 1 << (_BITS[setting.type] - 1)
    if not -limit <= number < limit:
        allowed = f"a whole number from {-limit} to {limit - 1}"
        raise BadValue(setting.name, text, allowed, reason)
    return number


def _parse_double(setting: Setting, text: str) -> Value:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number != number or "_" in text:
        raise BadValue(setting.name, text, "a number", "Not a number of type DOUBLE")
    return number


def _parse_list(setting: Setting, text: str) -> Value:
    return tuple(item.strip() for item in text.split(",")) if text else ()


def _parse_string(setting: Setting, text: str) -> Value:
    return text


def _parse_password(setting: Setting, text: str) -> Value:
    return Password(text)


_PARSERS: Final = {
    BOOLEAN: _parse_boolean,
    STRING: _parse_string,
    CLASS: _parse_string,
    INT: _parse_whole,
    SHORT: _parse_whole,
    LONG: _parse_whole,
    DOUBLE: _parse_double,
    LIST: _parse_list,
    PASSWORD: _parse_password,
}
