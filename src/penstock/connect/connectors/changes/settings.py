"""What settings of all captures share: Debezium's words, checks of them, and names of topics."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.connect.connectors.changes.choice import CaptureChoice, bad_patterns
from penstock.connect.connectors.checks import with_errors
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import AtLeast, OneOfWords
from penstock.errors import ConfigError

_TOPIC_PREFIX = re.compile(r"[A-Za-z0-9._-]+")


class FailureMode(StrEnum):
    """What becomes of a row that cannot be made a record."""

    FAIL = "fail"
    WARN = "warn"
    SKIP = "skip"


class SnapshotMode(StrEnum):
    """Whether tables are read before their changes."""

    ALWAYS = "always"
    INITIAL = "initial"
    INITIAL_ONLY = "initial_only"
    NO_DATA = "no_data"
    NEVER = "never"
    WHEN_NEEDED = "when_needed"


class TimeMode(StrEnum):
    """`time.precision.mode`: numbers as exact as the column, or Connect's own types."""

    ADAPTIVE = "adaptive"
    MICROSECONDS = "adaptive_time_microseconds"
    CONNECT = "connect"


class BinaryMode(StrEnum):
    """`binary.handling.mode`."""

    BYTES = "bytes"
    BASE64 = "base64"
    HEX = "hex"


def prefix_judge(value: Any) -> str | None:
    """What is wrong with a part of topics' names."""
    if value is None or _TOPIC_PREFIX.fullmatch(value):
        return None
    return "Only letters, digits, '.', '_' and '-' can be in a topic's name."


def operations_judge(value: Any) -> str | None:
    """What is wrong with a list of operations to leave out."""
    wrong = [one for one in value or [] if one not in ("c", "u", "d", "t", "none")]
    return f"{wrong[0]} is not one of c, u, d, t, none." if wrong else None


def required(name: str, doc: str, **more: Any) -> ConfigEntry:
    """A text that must be given."""
    return ConfigEntry(name, ConfigType.STRING, NO_DEFAULT, Importance.HIGH, doc, **more)


def text_entry(name: str, default: str | None, doc: str, **more: Any) -> ConfigEntry:
    """A text that may be given."""
    return ConfigEntry(name, ConfigType.STRING, default, Importance.MEDIUM, doc, **more)


def number(name: str, default: int, doc: str, low: int) -> ConfigEntry:
    """A whole number that is not below another."""
    check = AtLeast(low)
    return ConfigEntry(name, ConfigType.INT, default, Importance.LOW, doc, validator=check)


def patterns(name: str, doc: str) -> ConfigEntry:
    """A list of patterns."""
    return ConfigEntry(name, ConfigType.LIST, [], Importance.HIGH, doc)


def word(name: str, default: StrEnum, doc: str) -> ConfigEntry:
    """One of some words."""
    known = OneOfWords(tuple(type(default)), any_case=True)
    return text_entry(name, default.value, doc, validator=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesSettings:
    """A configuration that is valid, as the task of any capture uses it."""

    given: Mapping[str, Any]
    choice: CaptureChoice
    snapshot: SnapshotMode
    failures: FailureMode
    skipped: frozenset[str]

    @property
    def prefix(self) -> str:
        """The first part of topics' names, and the name of the server in offsets."""
        return str(self.given["topic.prefix"])

    @property
    def partition(self) -> dict[str, str]:
        """The one source partition."""
        return {"server": self.prefix}

    def topic(self, schema: str, table: str) -> str:
        """The topic of a table; what no topic's name can have becomes an underscore."""
        whole = str(self.given["topic.delimiter"]).join((self.prefix, schema, table))
        return re.sub(r"[^A-Za-z0-9._-]", "_", whole)

    @property
    def heartbeat_topic(self) -> str:
        """The topic of heartbeats."""
        parts = (self.given["topic.heartbeat.prefix"], self.prefix)
        return str(self.given["topic.delimiter"]).join(parts)


def shared_settings(found: Mapping[str, Any], level: str) -> dict[str, Any]:
    """The fields of `ChangesSettings`; `level` is what tables lie in: a database or a schema."""
    return {
        "given": found,
        "choice": CaptureChoice(
            include_schemas=tuple(found[f"{level}.include.list"]),
            exclude_schemas=tuple(found[f"{level}.exclude.list"]),
            include_tables=tuple(found["table.include.list"]),
            exclude_tables=tuple(found["table.exclude.list"]),
            include_columns=tuple(found["column.include.list"]),
            exclude_columns=tuple(found["column.exclude.list"]),
        ),
        "snapshot": SnapshotMode(found["snapshot.mode"].lower()),
        "failures": FailureMode(found["event.processing.failure.handling.mode"].lower()),
        "skipped": frozenset(found["skipped.operations"]),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsRules:
    """What is right by itself, what not together, and what nothing here obeys."""

    config: ConfigDef
    level: str  # What tables lie in.
    refused: tuple[str, ...]  # Settings of Debezium's that would change what is written.
    told_at: str  # The setting at which a refused one is told: it is none of ours itself.

    def validated(self, config: Mapping[str, str]) -> CheckedConfig:
        """Every setting with its errors, also those of settings that contradict each other."""
        return with_errors(self.config.validate(config), self._contradictions(config))

    def ensure_served(self, config: Mapping[str, str]) -> None:
        """ConfigError for a setting that would be ignored."""
        for name in self.unserved(config):
            raise ConfigError(_unserved_sentence(name))

    def unserved(self, config: Mapping[str, str]) -> list[str]:
        """Settings of Debezium's that are given, and that nothing here obeys."""
        given = (name for name in self.refused if name in config)
        return [name for name in given if config[name] not in ("", "false", "source")]

    def _contradictions(self, config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for what in (self.level, "table", "column"):
            include, exclude = f"{what}.include.list", f"{what}.exclude.list"
            if config.get(include) and config.get(exclude):
                yield exclude, f"It cannot be given together with {include}."
            for name in (include, exclude):
                given = (one.strip() for one in config.get(name, "").split(","))
                yield from ((name, sentence) for sentence in bad_patterns(filter(None, given)))
        for name in self.unserved(config):
            yield self.told_at, _unserved_sentence(name)


def _unserved_sentence(name: str) -> str:
    return f"The setting {name} of Debezium's is not served here; take it out."
