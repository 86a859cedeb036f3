"""Whose settings kafka-configs shows: `--entity-type topics --entity-name x`, or `--topic x`."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

QUOTA_TYPES = ("users", "clients", "ips")
TYPES = (
    "topics",
    "clients",
    "users",
    "brokers",
    "ips",
    "client-metrics",
    "groups",
    "broker-loggers",
)
SHORT = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker_logger": "broker-loggers",
    "ip": "ips",
    "client_metrics": "client-metrics",
    "group": "groups",
}
SHORT_DEFAULTS = {
    "broker_defaults": "brokers",
    "client_defaults": "clients",
    "user_defaults": "users",
    "ip_defaults": "ips",
}
_WITH_DEFAULT = ("brokers", *QUOTA_TYPES)
_NUMBERED = ("brokers", "broker-loggers")


@dataclass(frozen=True, slots=True)
class Entity:
    """A topic, a broker, ...; the default of all (""), or every one there is (None)."""

    type: str
    name: str | None

    @property
    def covers_all(self) -> bool:
        return self.name is None

    @property
    def is_default(self) -> bool:
        return self.name == ""


def entities_of(options: argparse.Namespace, refuse: Callable[[str], NoReturn]) -> list[Entity]:
    """The entity of a command line; users and clients may come together."""
    found = _short(options) + _long(options, refuse)
    if not found:
        refuse("At least one entity type must be specified")
    for entity in found:
        _check(entity, refuse)
    types = [entity.type for entity in found]
    if len(types) > 1 and sorted(types) != ["clients", "users"]:
        refuse("Only 'users' and 'clients' entity types may be specified together")
    return sorted(found, key=lambda entity: entity.type, reverse=True)  # Users first.


def _short(options: argparse.Namespace) -> list[Entity]:
    named = [
        Entity(kind, getattr(options, option))
        for option, kind in SHORT.items()
        if getattr(options, option) is not None
    ]
    defaults = [
        Entity(kind, "") for option, kind in SHORT_DEFAULTS.items() if getattr(options, option)
    ]
    return named + defaults


def _long(options: argparse.Namespace, refuse: Callable[[str], NoReturn]) -> list[Entity]:
    """Types and names are given in the same order; `--entity-default` stands for a missing name."""
    names: list[str] = list(options.entity_name)
    if len(names) > len(options.entity_type):
        refuse("--entity-name must be specified together with --entity-type")
    found = []
    for at, kind in enumerate(options.entity_type):
        unnamed = "" if options.entity_default else None
        found.append(Entity(kind, names[at] if at < len(names) else unnamed))
    return found


def _check(entity: Entity, refuse: Callable[[str], NoReturn]) -> None:
    if entity.type not in TYPES:
        refuse(
            f"Invalid entity type {entity.type}, the entity type must be one of "
            f"{', '.join(TYPES)} with a --bootstrap-server or --bootstrap-controller argument"
        )
    if entity.is_default and entity.type not in _WITH_DEFAULT:
        refuse(f"--entity-default must not be specified with entity type {entity.type}")
    if entity.name and entity.type in _NUMBERED and not entity.name.isdigit():
        refuse(
            f"The entity name for {entity.type} must be a valid integer broker id, but it is: "
            f"{entity.name}"
        )
    if entity.covers_all and entity.type == "broker-loggers":
        refuse("An entity name must be specified with --describe of broker-loggers")
