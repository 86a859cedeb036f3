"""The settings that every connector has, and those of sources and of sinks, for validation."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.errors.policy import DEAD_LETTER_SETTINGS, ERROR_SETTINGS
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
    InvalidValue,
    Proposed,
    Width,
)
from penstock.connect.plugins.lookup import PluginKind, plugins
from penstock.connect.plugins.validators import NonEmptyText, OneOfWords, ValidPattern

_VERSION = "4.3.1"
_COMMON, _EXACTLY_ONCE = "Common", "Exactly Once Support"
_STRING, _LIST, _LONG, _CLASS = (
    ConfigType.STRING,
    ConfigType.LIST,
    ConfigType.LONG,
    ConfigType.CLASS,
)
_SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_CONTROLS_MAX = 0x1F


class _ConnectorName:
    """A name without control characters."""

    def ensure_valid(self, name: str, value: Any) -> None:
        if value is not None and not value:
            raise InvalidValue(name, value, "String may not be empty")
        if value and any(ord(letter) <= _CONTROLS_MAX for letter in value):
            raise InvalidValue(name, value, "String may not contain control sequences")

    def __str__(self) -> str:
        return "non-empty string without ISO control characters"


class _AtLeastOne:
    """A count, in the words that Kafka has for this one."""

    def __init__(self, least: int) -> None:
        self._least = least

    def ensure_valid(self, name: str, value: Any) -> None:
        if value is None:
            raise InvalidValue(name, None, "Value must be non-null")
        if value < self._least:
            raise InvalidValue(name, value, f"Value must be at least {self._least}")

    def __str__(self) -> str:
        return f"[{self._least},...]"


def connector_def(*, is_source: bool, worker: Mapping[str, str] | None, version: str) -> ConfigDef:
    """All settings that are not the connector's own.

    `worker` has the converters of all; None: the definitions of no worker in particular.
    """
    own = _source_entries() if is_source else _sink_entries()
    return ConfigDef(*_common_entries(worker, version), *_error_entries(), *own)


def _common_entries(worker: Mapping[str, str] | None, version: str) -> list[ConfigEntry]:
    known = None if worker is None else {"header.converter": _SIMPLE_HEADERS, **worker}
    high, medium, low = Importance.HIGH, Importance.MEDIUM, Importance.LOW
    row = [
        _entry("name", _STRING, NO_DEFAULT, high, "The connector's name, one of its kind.",
               "Connector name", Width.MEDIUM, validator=_ConnectorName()),
        _entry("connector.class", _STRING, NO_DEFAULT, high,
               "The class: its whole name, or without the word Connector.", "Connector class",
               Width.LONG),
        _entry("connector.plugin.version", _STRING, version, medium,
               "The version of the connector.", "Connector version", Width.MEDIUM,
               recommender=Proposed([version])),
        _entry("tasks.max", ConfigType.INT, 1, high, "How many tasks there may be.", "Tasks max",
               Width.SHORT, validator=_AtLeastOne(1)),
        _entry("tasks.max.enforce", ConfigType.BOOLEAN, True, low,
               "Whether a connector that makes more tasks than tasks.max fails.",
               "Enforce tasks max", Width.SHORT),
        *_converter_entries("key", "Key", known, PluginKind.CONVERTER),
        *_converter_entries("value", "Value", known, PluginKind.CONVERTER),
        *_converter_entries("header", "Header", known, PluginKind.HEADER_CONVERTER),
        _entry("transforms", _LIST, [], low, "Names of transforms, in their order.", "Transforms",
               Width.LONG, group="Transforms"),
        _entry("predicates", _LIST, [], low, "Names of predicates.", "Predicates", Width.LONG,
               group="Predicates"),
        _entry("config.action.reload", _STRING, "restart", low,
               "What to do when a config provider has new values.", "Reload Action", Width.MEDIUM,
               validator=OneOfWords(("none", "restart"))),
    ]  # fmt: skip
    return _numbered(row)


def _converter_entries(
    side: str, word: str, worker: Mapping[str, str] | None, kind: PluginKind
) -> list[ConfigEntry]:
    known = [one.name for one in plugins(kind)]
    name = f"{side}.converter"
    default = None if worker is None else worker.get(name)
    version = None if worker is None else _VERSION
    return [
        _entry(name, _CLASS, default, Importance.LOW,
               f"The converter of {side}s; without it, the worker's.", f"{word} converter class",
               Width.SHORT, recommender=Proposed(known)),
        _entry(f"{name}.plugin.version", _STRING, version, Importance.LOW,
               f"The version of the {side} converter.", f"{word} converter version", Width.SHORT,
               recommender=Proposed([_VERSION])),
    ]  # fmt: skip


def _error_entries() -> list[ConfigEntry]:
    wide = (ConfigType.LONG,)
    return [
        replace(one, width=Width.MEDIUM if one.type in wide else Width.SHORT)
        for one in ERROR_SETTINGS
    ]


def _source_entries() -> list[ConfigEntry]:
    row = [
        _entry("topic.creation.groups", _LIST, [], Importance.LOW,
               "Groups of topics that are created alike.", "Topic Creation Groups", Width.LONG,
               group="Topic Creation"),
        _entry("exactly.once.support", _STRING, "requested", Importance.MEDIUM,
               "Whether a connector that cannot write exactly once is refused (required).",
               "Exactly once support", Width.SHORT, group=_EXACTLY_ONCE,
               validator=OneOfWords(("required", "requested"), any_case=True)),
        _entry("transaction.boundary", _STRING, "poll", Importance.MEDIUM,
               "Where transactions end: with each poll, after an interval, or where the connector"
               " says.", "Transaction Boundary", Width.SHORT, group=_EXACTLY_ONCE,
               validator=OneOfWords(("interval", "poll", "connector"), any_case=True)),
        _entry("transaction.boundary.interval.ms", _LONG, None, Importance.LOW,
               "That interval, in ms; without it, offset.flush.interval.ms of the worker.",
               "Transaction boundary interval", Width.SHORT, group=_EXACTLY_ONCE),
    ]  # fmt: skip
    own_topic = _entry(
        "offsets.storage.topic", _STRING, None, Importance.LOW,
        "A topic for the offsets of this connector alone.", "Offsets topic", Width.LONG,
        group="offsets.topic", validator=NonEmptyText(),
    )  # fmt: skip
    return [*_numbered(row), *_numbered([own_topic])]


def _sink_entries() -> list[ConfigEntry]:
    high = Importance.HIGH
    row = [
        _entry("topics", _LIST, [], high, "The topics to read, separated by commas.", "Topics",
               Width.LONG),
        _entry("topics.regex", _STRING, "", high, "A pattern of the topics to read.",
               "Topics regex", Width.LONG, validator=ValidPattern()),
    ]  # fmt: skip
    letters = [replace(one, width=Width.MEDIUM) for one in DEAD_LETTER_SETTINGS]
    return [*(replace(one, order=4) for one in row), *letters]


def _entry(
    name: str,
    kind: ConfigType,
    default: Any,
    importance: Importance,
    doc: str,
    display: str,
    width: Width,
    *,
    group: str = _COMMON,
    **more: Any,
) -> ConfigEntry:
    return ConfigEntry(
        name, kind, default, importance, doc, display_name=display, width=width, group=group, **more
    )


def _numbered(row: list[ConfigEntry]) -> list[ConfigEntry]:
    return [replace(one, order=number) for number, one in enumerate(row, 1)]


def refused_sentence(checked: CheckedConfig) -> str | None:
    """What is wrong in one sentence and a list; None: nothing."""
    if not checked.error_count:
        return None
    lines = [text for errors in checked.errors().values() for text in errors]
    return (
        "Connector configuration is invalid and contains the following"
        f" {checked.error_count} error(s):\n" + "\n".join(lines) + "\nYou can also find the above"
        " list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
    )
