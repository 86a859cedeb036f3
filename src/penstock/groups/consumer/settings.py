"""What holds for a consumer group: the broker's settings, and where it has some, its own."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, cast

from penstock.assignors import Assignment, Subscriber, assign_ranges, assign_uniform
from penstock.config.broker import BrokerConfig
from penstock.config.group import effective_group_config

Assignor = Callable[[list[Subscriber[bytes]], Mapping[bytes, int]], Assignment[bytes]]

_PACKAGE: Final = "org.apache.kafka.coordinator.group.assignor."
_ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniform, "range": assign_ranges}
_BY_CLASS: Final = {_PACKAGE + "UniformAssignor": "uniform", _PACKAGE + "RangeAssignor": "range"}


class GroupSettings(NamedTuple):
    """The settings that a group may have of its own."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class MigrationPolicy(NamedTuple):
    """Which groups may change from one protocol to the other while they run."""

    upgrade: bool
    downgrade: bool

    @classmethod
    def of(cls, config: BrokerConfig) -> "MigrationPolicy":
        name = str(config.group_consumer_migration_policy).lower()
        return cls(name in ("upgrade", "bidirectional"), name in ("downgrade", "bidirectional"))

    @property
    def is_disabled(self) -> bool:
        return not self.upgrade and not self.downgrade


def settings_of(overrides: Mapping[str, str], config: BrokerConfig) -> GroupSettings:
    if not overrides:
        return GroupSettings(
            config.group_consumer_session_timeout_ms,
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_assignment_interval_ms,
        )
    values = effective_group_config(overrides, config)
    return GroupSettings(
        cast(int, values["consumer.session.timeout.ms"]),
        cast(int, values["consumer.heartbeat.interval.ms"]),
        cast(int, values["consumer.assignment.interval.ms"]),
    )


def assignors(config: BrokerConfig) -> dict[str, Assignor]:
    """By name, the broker's choice first; what we do not have is left out."""
    names = [_BY_CLASS.get(name, name) for name in config.group_consumer_assignors]
    return {name: _ASSIGNORS[name] for name in names if name in _ASSIGNORS} or _ASSIGNORS
