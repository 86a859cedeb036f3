"""What DescribeConfigs answers: each value, where it comes from, and what else would have set it.

Pure functions from a configuration to entries. Handlers pick the resource, leave out synonyms and
documentation nobody asked for, and put the entries into the message.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from penstock.config import group, topic
from penstock.config.broker import (
    BROKER_SETTINGS,
    DYNAMIC_ONLY,
    LISTENER_PREFIX,
    BrokerConfig,
    setting_of,
)
from penstock.config.settings import READ_ONLY, Setting, Type, Value, to_text


class SettingSource(IntEnum):
    """Where a value was set, as numbered on the wire."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    GROUP = 8


class Synonym(NamedTuple):
    """One of the places a value could have come from, the strongest first."""

    name: str
    value: str | None
    source: SettingSource


class DescribedSetting(NamedTuple):
    """One setting of a resource."""

    name: str
    value: str | None  # None: not set, or a secret.
    source: SettingSource
    is_sensitive: bool
    is_read_only: bool
    type: int
    documentation: str | None
    synonyms: tuple[Synonym, ...]


UNKNOWN_TYPE: Final = 0
TYPE_NUMBERS: Final[Mapping[Type, int]] = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}

# Settings of one meaning in several units, the one that wins first.
_FAMILIES: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FAMILY: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: family for family in _FAMILIES for name in family},
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}


def describe_topic(
    overrides: Mapping[str, str], config: BrokerConfig, names: Collection[str] | None = None
) -> list[DescribedSetting]:
    """Every setting of a topic as it holds; `names` picks some, None means all."""
    values = topic.effective_topic_config(overrides, config)
    stated = topic.canonical_overrides(overrides)
    return [
        _stated_entry(
            setting,
            values[name],
            name in stated,
            SettingSource.TOPIC,
            topic.BROKER_NAMES.get(name),
            config,
        )
        for name, setting in _picked(topic.TOPIC_SETTINGS, stated, names)
    ]


def describe_group(
    overrides: Mapping[str, str], config: BrokerConfig, names: Collection[str] | None = None
) -> list[DescribedSetting]:
    """Every setting of a group as it holds."""
    values = group.effective_group_config(overrides, config)
    return [
        _stated_entry(
            setting,
            values[name],
            name in overrides,
            SettingSource.GROUP,
            group.broker_name(name),
            config,
        )
        for name, setting in _picked(group.GROUP_SETTINGS, overrides, names)
    ]


def describe_broker(
    config: BrokerConfig, names: Collection[str] | None = None
) -> list[DescribedSetting]:
    """Every setting of this broker, and what somebody set that no setting is known for."""
    given = {*config.static, *config.cluster_wide, *config.per_broker}
    shown = {
        name
        for name, setting in BROKER_SETTINGS.items()
        if not setting.internal and name not in DYNAMIC_ONLY
    } | given
    return [_broker_entry(name, config) for name in sorted(_chosen(shown, names))]


def describe_broker_default(
    config: BrokerConfig, names: Collection[str] | None = None
) -> list[DescribedSetting]:
    """What is set for all brokers of the cluster."""
    entries = (_broker_entry(name, config) for name in sorted(_chosen(config.cluster_wide, names)))
    return [_for_all_brokers(entry, config) for entry in entries]


def describe_loggers(
    levels: Mapping[str, str], names: Collection[str] | None = None
) -> list[DescribedSetting]:
    """The level of each logger."""
    source = SettingSource.DYNAMIC_BROKER_LOGGER
    return [
        DescribedSetting(name, levels[name], source, False, False, UNKNOWN_TYPE, None, ())
        for name in sorted(_chosen(levels, names))
    ]


def _stated_entry(
    setting: Setting,
    value: Value,
    is_stated: bool,
    stated_source: SettingSource,
    broker: str | None,
    config: BrokerConfig,
) -> DescribedSetting:
    synonyms = () if broker is None else _broker_synonyms(broker, config)
    if stated_source is SettingSource.GROUP and broker is None:
        synonyms = (Synonym(setting.name, to_text(setting.default), SettingSource.DEFAULT),)
    if is_stated:
        synonyms = (Synonym(setting.name, to_text(value), stated_source), *synonyms)
    return _entry(setting.name, setting, to_text(value), False, synonyms)


def _broker_entry(name: str, config: BrokerConfig) -> DescribedSetting:
    setting = setting_of(name)
    if setting is None:
        # Of a key nobody knows it is not known either whether it is a secret.
        return _entry(name, None, None, True, _broker_synonyms(name, config, hidden=True))
    value = to_text(config.values[name]) if name in config.values else _given(name, config)
    # Of a listener's own settings only the plain name says whether it changes while we run.
    read_only = setting.dynamic == READ_ONLY or name.startswith(LISTENER_PREFIX)
    synonyms = _broker_synonyms(name, config, hidden=setting.is_sensitive)
    return _entry(name, setting, value, read_only, synonyms)


def _entry(
    name: str,
    setting: Setting | None,
    value: str | None,
    is_read_only: bool,
    synonyms: tuple[Synonym, ...],
) -> DescribedSetting:
    is_sensitive = setting is None or setting.is_sensitive
    return DescribedSetting(
        name=name,
        value=None if is_sensitive else value,
        source=synonyms[0].source if synonyms else SettingSource.DEFAULT,
        is_sensitive=is_sensitive,
        is_read_only=is_read_only,
        type=UNKNOWN_TYPE if setting is None else TYPE_NUMBERS[setting.type],
        documentation=None if setting is None else setting.text,
        synonyms=synonyms,
    )


def _for_all_brokers(entry: DescribedSetting, config: BrokerConfig) -> DescribedSetting:
    synonyms = tuple(s for s in entry.synonyms if s.source is SettingSource.DYNAMIC_DEFAULT_BROKER)
    value = None if entry.is_sensitive else config.cluster_wide[entry.name]
    return entry._replace(
        value=value, synonyms=synonyms, source=SettingSource.DYNAMIC_DEFAULT_BROKER
    )


def _broker_synonyms(
    name: str, config: BrokerConfig, *, hidden: bool = False
) -> tuple[Synonym, ...]:
    """All that was set for a name and its kin, strongest first, from the name itself on.

    Kafka leaves out what stands before the name's own first place, so a topic's `retention.ms`
    shows nothing of a broker that only has `log.retention.hours`; tools rely on the same here.
    """
    layers = (
        (config.per_broker, SettingSource.DYNAMIC_BROKER),
        (config.cluster_wide, SettingSource.DYNAMIC_DEFAULT_BROKER),
        (config.static, SettingSource.STATIC_BROKER),
        (_DEFAULT_TEXTS, SettingSource.DEFAULT),
    )
    found = [
        Synonym(kin, None if hidden else layer[kin], source)
        for layer, source in layers
        for kin in _kin(name)
        if kin in layer
    ]
    while found and found[0].name != name:
        found.pop(0)
    return tuple(found)


def _kin(name: str) -> tuple[str, ...]:
    setting = setting_of(name)
    if setting is not None and setting.name != name:
        return (name, setting.name)
    if setting is None and name.startswith(LISTENER_PREFIX):
        return (name, name.removeprefix(LISTENER_PREFIX).partition(".")[2])
    return _FAMILY.get(name, (name,))


def _given(name: str, config: BrokerConfig) -> str | None:
    for layer in (config.per_broker, config.cluster_wide, config.static):
        if name in layer:
            return layer[name]
    return None


def _picked(
    table: Mapping[str, Setting], stated: Collection[str], names: Collection[str] | None
) -> Iterable[tuple[str, Setting]]:
    shown = {name for name, setting in table.items() if not setting.internal or name in stated}
    return [(name, table[name]) for name in sorted(_chosen(shown, names))]


def _chosen(known: Collection[str], names: Collection[str] | None) -> set[str]:
    # An empty list of names asks for all, as clients before Kafka 4 sent it.
    return set(known) & set(names) if names else set(known)


_DEFAULT_TEXTS: Final[Mapping[str, str]] = {
    name: text
    for name, setting in BROKER_SETTINGS.items()
    if (text := to_text(setting.default)) is not None
}
