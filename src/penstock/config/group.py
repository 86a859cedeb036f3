"""Settings of single consumer, share and streams groups, and the bounds a broker sets for them.

A group states only what it wants otherwise; the rest follows the broker's `group.<name>`. What a
group does with the values is left to the coordinator.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from penstock.config.broker import BROKER_SETTINGS, BrokerConfig
from penstock.config.settings import (
    BOOLEAN,
    CLUSTER_WIDE,
    INERT,
    INT,
    MEDIUM,
    STRING,
    Bounds,
    Matching,
    OneOf,
    Setting,
    SettingTable,
    Value,
)
from penstock.errors import ConfigError

_OFFSET_RESET: Final = Matching(
    r"latest|earliest|by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?",
    "latest, earliest or by_duration:PnDTnHnMn.nS",
    "must be one of: latest, earliest, by_duration:PnDTnHnMn.nS",
)

# fmt: off
GROUP_SETTINGS: Final = SettingTable((
    Setting("consumer.session.timeout.ms", INT, 45_000, Bounds(1), MEDIUM, CLUSTER_WIDE,
            INERT, "How long a silent member of a consumer group stays."),
    Setting("consumer.heartbeat.interval.ms", INT, 5000, Bounds(1), MEDIUM, CLUSTER_WIDE,
            INERT, "How often a member of a consumer group is to be heard from."),
    Setting("consumer.assignment.interval.ms", INT, 1000, Bounds(0), MEDIUM, CLUSTER_WIDE,
            INERT, "How long lies between two assignments of a consumer group at least."),
    Setting("share.session.timeout.ms", INT, 45_000, Bounds(1), MEDIUM, CLUSTER_WIDE,
            INERT, "How long a silent member of a share group stays."),
    Setting("share.heartbeat.interval.ms", INT, 5000, Bounds(1), MEDIUM, CLUSTER_WIDE,
            INERT, "How often a member of a share group is to be heard from."),
    Setting("share.assignment.interval.ms", INT, 1000, Bounds(0), MEDIUM, CLUSTER_WIDE,
            INERT, "How long lies between two assignments of a share group at least."),
    Setting("share.record.lock.duration.ms", INT, 30_000, Bounds(1000), MEDIUM, CLUSTER_WIDE,
            INERT, "How long a delivered record stays with its consumer."),
    Setting("share.delivery.count.limit", INT, 5, Bounds(2), MEDIUM, CLUSTER_WIDE,
            INERT, "How often a record is delivered before it is given up."),
    Setting("share.partition.max.record.locks", INT, 2000, Bounds(100), MEDIUM, CLUSTER_WIDE,
            INERT, "How many records of a partition may be out for delivery."),
    Setting("share.auto.offset.reset", STRING, "latest", _OFFSET_RESET, MEDIUM, CLUSTER_WIDE,
            INERT, "Where a new share group begins."),
    Setting("share.isolation.level", STRING, "read_uncommitted",
            OneOf("read_committed", "read_uncommitted"), MEDIUM, CLUSTER_WIDE,
            INERT, "Whether a share group sees records of open and aborted transactions."),
    Setting("share.renew.acknowledge.enable", BOOLEAN, True, None, MEDIUM, CLUSTER_WIDE,
            INERT, "Whether a consumer may keep a record longer."),
    Setting("streams.session.timeout.ms", INT, 45_000, Bounds(1), MEDIUM, CLUSTER_WIDE,
            INERT, "How long a silent member of a streams group stays."),
    Setting("streams.heartbeat.interval.ms", INT, 5000, Bounds(1), MEDIUM, CLUSTER_WIDE,
            INERT, "How often a member of a streams group is to be heard from."),
    Setting("streams.assignment.interval.ms", INT, 1000, Bounds(0), MEDIUM, CLUSTER_WIDE,
            INERT, "How long lies between two assignments of a streams group at least."),
    Setting("streams.initial.rebalance.delay.ms", INT, 3000, Bounds(0), MEDIUM, CLUSTER_WIDE,
            INERT, "How long a new streams group waits for further members."),
    Setting("streams.num.standby.replicas", INT, 0, Bounds(0), MEDIUM, CLUSTER_WIDE,
            INERT, "How many standby copies a task has."),
))
# fmt: on

_STANDBY_MOST: Final = "group.streams.max.standby.replicas"


def broker_name(name: str) -> str | None:
    """The broker's setting that stands in where a group says nothing, if there is one."""
    broker = f"group.{name}"
    return broker if broker in BROKER_SETTINGS else None


def parse_group_config(
    overrides: Mapping[str, str | None], config: BrokerConfig
) -> dict[str, Value]:
    """The typed values of what a group states, or a ConfigError that can go to a client."""
    stated = {name: _parse(name, text) for name, text in overrides.items()}
    for name, value in stated.items():
        _check_bounds(name, value, config)
    _check_heartbeats({**_from_broker(config), **stated})
    return stated


def effective_group_config(overrides: Mapping[str, str], config: BrokerConfig) -> dict[str, Value]:
    """Every setting of a group as it holds; what another version stored and we cannot take is
    left out."""
    usable: dict[str, Value] = {}
    for name, text in overrides.items():
        with suppress(ConfigError):
            usable[name] = _parse(name, text)
    return {**_from_broker(config), **usable}


def _from_broker(config: BrokerConfig) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, setting in GROUP_SETTINGS.items():
        broker = broker_name(name)
        found[name] = setting.default if broker is None else config.values[broker]
    return found


def _parse(name: str, text: str | None) -> Value:
    setting = GROUP_SETTINGS.get(name)
    if setting is None:
        raise ConfigError(f"Unknown group config name: {name}")
    if text is None:
        raise ConfigError(f"Null value not supported for group configs: {name}")
    return setting.parse_for_client(text)


def _check_bounds(name: str, value: Value, config: BrokerConfig) -> None:
    family, _, rest = name.partition(".")
    least, most = f"group.{family}.min.{rest}", f"group.{family}.max.{rest}"
    if name == "streams.num.standby.replicas":
        most = _STANDBY_MOST
    if least in config.values and _less(value, config.values[least]):
        raise ConfigError(f"{name} must be greater than or equal to {least}")
    if most in config.values and _less(config.values[most], value):
        raise ConfigError(f"{name} must be less than or equal to {most}")


def _check_heartbeats(values: Mapping[str, Value]) -> None:
    for family in ("consumer", "share", "streams"):
        beat, session = f"{family}.heartbeat.interval.ms", f"{family}.session.timeout.ms"
        if not _less(values[beat], values[session]):
            raise ConfigError(f"{session} must be greater than {beat}")


def _less(one: Value, other: Value) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one < other
