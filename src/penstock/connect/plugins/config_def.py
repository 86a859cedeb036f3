"""What settings a plug-in takes, as data: parsed for use, or validated with all errors at once.

    DEF = ConfigDef(
        ConfigEntry("topic", ConfigType.STRING, NO_DEFAULT, Importance.HIGH, "Where records go."),
        ConfigEntry("batch.size", ConfigType.INT, 9, Importance.LOW, "...", validator=AtLeast(1)),
    )
    DEF.parse({"topic": "t"})       # {"topic": "t", "batch.size": 9}, or ConfigError
    DEF.validate({}).document("X")  # Connect's ConfigInfos

Words, types and the order of the checks are Kafka's. Validators are in `validators.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Protocol

from penstock.config.settings import HIDDEN, Password
from penstock.errors import ConfigError


class ConfigType(StrEnum):
    """Kafka's types of settings."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"  # Stays a name: plug-ins are found by `lookup`.
    PASSWORD = "PASSWORD"


class Importance(StrEnum):
    """How soon a reader should look at a setting."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(StrEnum):
    """How wide a form shows a setting."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class _NoDefault:
    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()  # The setting must be given.


class InvalidValue(ConfigError):
    """A value that its setting does not take, in Kafka's words."""

    def __init__(self, name: str, value: object, reason: str | None = None) -> None:
        because = "" if reason is None else f": {reason}"
        super().__init__(f"Invalid value {shown(value)} for configuration {name}{because}")


class ConfigCheck(Protocol):
    """A validator: raises ConfigError, with `InvalidValue` as the usual one."""

    def ensure_valid(self, name: str, value: Any) -> None:
        """Refuse a value; None is one that is null or could not be parsed."""

    def __str__(self) -> str: ...


class Recommender(Protocol):
    """Proposes values of a setting, given the others."""

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> list[Any]:
        """What may be chosen."""

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Whether a form shows the setting."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """A recommender that proposes always the same."""

    values: list[Any]

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> list[Any]:
        """Those."""
        return self.values

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, slots=True)
class DefinedSetting:
    """One setting."""

    name: str
    type: ConfigType
    default: Any  # NO_DEFAULT: it must be given.
    importance: Importance
    doc: str
    validator: ConfigCheck | None = field(default=None, kw_only=True)
    group: str | None = field(default=None, kw_only=True)
    order: int = field(default=-1, kw_only=True)
    width: Width = field(default=Width.NONE, kw_only=True)
    display_name: str | None = field(default=None, kw_only=True)  # None: its name.
    dependents: tuple[str, ...] = field(default=(), kw_only=True)
    recommender: Recommender | None = field(default=None, kw_only=True)

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is NO_DEFAULT

    def document(self) -> dict[str, Any]:
        """Connect's ConfigKeyInfo."""
        return {
            "name": self.name,
            "type": self.type.value,
            "required": self.required,
            "default_value": None if self.required else text_of(self.default, self.type),
            "importance": self.importance.value,
            "documentation": self.doc,
            "group": self.group,
            "width": self.width.value,
            "display_name": self.display_name or self.name,
            "dependents": list(self.dependents),
            "order_in_group": self.order,
        }


ConfigEntry = DefinedSetting  # Short, in tables that are full of them.


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedValue:
    """What `validate` found out about one setting."""

    entry: ConfigEntry
    value: Any
    errors: tuple[str, ...]
    recommended: tuple[Any, ...] = ()
    visible: bool = True

    def document(self) -> dict[str, Any]:
        """Connect's ConfigInfo: the definition and the value."""
        kind = self.entry.type
        value = {
            "name": self.entry.name,
            "value": text_of(self.value, kind),
            "recommended_values": [text_of(one, kind) for one in self.recommended],
            "errors": list(self.errors),
            "visible": self.visible,
        }
        return {"definition": self.entry.document(), "value": value}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedConfig:
    """All settings with their errors; several definitions can be joined with `+`."""

    values: tuple[CheckedValue, ...]
    groups: tuple[str, ...]

    def __add__(self, other: "CheckedConfig") -> "CheckedConfig":
        groups = dict.fromkeys((*self.groups, *other.groups))
        return CheckedConfig(values=(*self.values, *other.values), groups=tuple(groups))

    @property
    def error_count(self) -> int:
        """How many errors there are in all."""
        return sum(len(one.errors) for one in self.values)

    def with_error(self, name: str, sentence: str) -> "CheckedConfig":
        """One more thing that is wrong with a setting: what only several of them show."""
        values = tuple(
            replace(one, errors=(*one.errors, sentence)) if one.entry.name == name else one
            for one in self.values
        )
        return replace(self, values=values)

    def errors(self) -> dict[str, tuple[str, ...]]:
        """The errors by setting, of those that have any."""
        return {one.entry.name: one.errors for one in self.values if one.errors}

    def document(self, name: str) -> dict[str, Any]:
        """Connect's ConfigInfos, as `PUT /connector-plugins/{name}/config/validate` answers."""
        return {
            "name": name,
            "error_count": self.error_count,
            "groups": list(self.groups),
            "configs": [one.document() for one in self.values],
        }


class ConfigDef:
    """The settings of a plug-in, in order. It is a value: `+` makes a longer one."""

    __slots__ = ("_entries",)

    def __init__(self, *entries: ConfigEntry) -> None:
        self._entries: dict[str, ConfigEntry] = {}
        for one in entries:
            if one.name in self._entries:
                raise ConfigError(f"Configuration {one.name} is defined twice.")
            self._entries[one.name] = one

    def __add__(self, other: "ConfigDef") -> "ConfigDef":
        return ConfigDef(*self, *other)

    def __iter__(self) -> Iterator[ConfigEntry]:
        return iter(self._entries.values())

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def entry(self, name: str) -> ConfigEntry | None:
        """A setting by name; None: it is not defined."""
        return self._entries.get(name)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups in the order they are first named."""
        return tuple(dict.fromkeys(one.group for one in self if one.group is not None))

    def parse(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Every setting with its value or default; the first error is raised.

        Settings that are not defined are left out.
        """
        missing = list(self._undefined_dependents())
        if missing:
            raise ConfigError(
                f"Some configurations in are referred in the dependents, but not defined: "
                f"{', '.join(missing)}"
            )
        return {one.name: _parsed(one, values) for one in self}

    def validate(self, values: Mapping[str, Any]) -> CheckedConfig:
        """Every setting with all that is wrong about it."""
        checked = {one.name: _checked(one, values) for one in self}
        parsed = {name: value for name, (value, _) in checked.items()}
        found = [
            _recommended(one, checked[one.name][0], checked[one.name][1], parsed) for one in self
        ]
        return CheckedConfig(values=tuple(found), groups=self.groups)

    def documents(self) -> list[dict[str, Any]]:
        """The definitions alone, as `GET /connector-plugins/{name}/config` answers."""
        return [one.document() for one in self]

    def _undefined_dependents(self) -> Iterator[str]:
        named = dict.fromkeys(name for one in self for name in one.dependents)
        return (name for name in named if name not in self._entries)


def parse_type(name: str, value: Any, kind: ConfigType) -> Any:
    """A value as its type has it: text is parsed, a value of the type is taken as it is."""
    if value is None:
        return None
    if kind in (ConfigType.INT, ConfigType.SHORT, ConfigType.LONG):
        return _whole(name, value, kind)
    parse = _PARSERS[kind]
    return parse(name, value)


def text_of(value: Any, kind: ConfigType) -> str | None:
    """A value as Connect's REST interface shows it."""
    if value is None:
        return None
    if kind is ConfigType.PASSWORD or isinstance(value, Password):
        return HIDDEN
    if kind is ConfigType.LIST:
        return ",".join(str(one) for one in value)
    return shown(value)


def shown(value: object) -> str:
    """A value in a sentence, as Java prints it."""
    if value is None:
        return "null"
    if isinstance(value, Password):
        return HIDDEN
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(shown(one) for one in value)}]"
    return str(value)


def _parsed(entry: ConfigEntry, values: Mapping[str, Any]) -> Any:
    if entry.name in values:
        value = parse_type(entry.name, values[entry.name], entry.type)
    elif entry.required:
        raise ConfigError(_missing(entry))
    else:
        value = entry.default
    if entry.validator is not None:
        entry.validator.ensure_valid(entry.name, value)
    return value


def _checked(entry: ConfigEntry, values: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The value, or None where there is none, and what is wrong with it."""
    errors: list[str] = []
    value = None
    if entry.name in values:
        try:
            value = parse_type(entry.name, values[entry.name], entry.type)
        except ConfigError as error:
            errors.append(str(error))
    elif entry.required:
        errors.append(_missing(entry))
    else:
        value = entry.default
    if entry.validator is not None:
        try:
            entry.validator.ensure_valid(entry.name, value)
        except ConfigError as error:
            errors.append(str(error))
    return value, errors


def _recommended(
    entry: ConfigEntry, value: Any, errors: Iterable[str], parsed: Mapping[str, Any]
) -> CheckedValue:
    found = CheckedValue(entry=entry, value=value, errors=tuple(errors))
    if entry.recommender is None:
        return found
    try:
        proposed = tuple(entry.recommender.valid_values(entry.name, parsed))
        visible = entry.recommender.visible(entry.name, parsed)
    except ConfigError as error:
        return CheckedValue(entry=entry, value=value, errors=(*found.errors, str(error)))
    return CheckedValue(
        entry=entry, value=value, errors=found.errors, recommended=proposed, visible=visible
    )


def _missing(entry: ConfigEntry) -> str:
    return f'Missing required configuration "{entry.name}" which has no default value.'


_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_WORDS = {
    ConfigType.SHORT: "16-bit integer (short)",
    ConfigType.INT: "32-bit integer (int)",
    ConfigType.LONG: "64-bit integer (long)",
}
_COMMA = re.compile(r"\s*,\s*")


def _whole(name: str, value: Any, kind: ConfigType) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InvalidValue(name, value, _expected(f"a {_WORDS[kind]}", value))
    bound = 1 << (_BITS[kind] - 1)
    try:
        number = _integer(value.strip()) if isinstance(value, str) else value
    except ValueError:
        raise InvalidValue(name, value, f"Not a number of type {kind}") from None
    if not -bound <= number < bound:
        raise InvalidValue(name, value, f"Not a number of type {kind}")
    return number


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,40}", text):  # No blanks and underscores, as int() takes them.
        raise ValueError(text)
    return int(text)


def _boolean(name: str, value: Any) -> bool:
    word = value.strip().lower() if isinstance(value, str) else value
    if word in (True, "true"):
        return True
    if word in (False, "false"):
        return False
    raise InvalidValue(name, value, "Expected value to be either true or false")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidValue(name, value, _expected("a string", value))
    return value.strip()


def _password(name: str, value: Any) -> Password:
    return value if isinstance(value, Password) else Password(_text(name, value))


def _double(name: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        raise InvalidValue(name, value, _expected("a double", value))
    try:
        return float(value.strip().rstrip("dDfF") if "n" not in value.lower() else value)
    except ValueError:
        raise InvalidValue(name, value, "Not a number of type DOUBLE") from None


def _list(name: str, value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        raise InvalidValue(name, value, "Expected a comma separated list.")
    trimmed = value.strip()
    return _COMMA.split(trimmed) if trimmed else []


def _expected(what: str, value: object) -> str:
    return f"Expected value to be {what}, but it was a {type(value).__name__}"


_PARSERS = {
    ConfigType.BOOLEAN: _boolean,
    ConfigType.STRING: _text,
    ConfigType.PASSWORD: _password,
    ConfigType.DOUBLE: _double,
    ConfigType.LIST: _list,
    ConfigType.CLASS: _text,
}
