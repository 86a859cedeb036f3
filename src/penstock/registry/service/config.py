"""The settings of the registry's process, under Confluent's names.

Settings that begin with `kafkastore.` and go on as those of a Kafka client (`security.protocol`,
`ssl.`, `sasl.`) are handed to the client. What is not known is ignored and told.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.client.settings import as_int
from penstock.config.listeners import split_address
from penstock.errors import ConfigError
from penstock.schemas.compatibility.levels import CompatibilityLevel

_STORE = "kafkastore."
_CLIENT_SETTINGS = ("security.protocol", "ssl.", "sasl.")
_DEFAULTS = {
    "listeners": "http://127.0.0.1:8081",
    "kafkastore.bootstrap.servers": "",
    "kafkastore.topic": "_schemas",
    "kafkastore.topic.replication.factor": "3",
    "kafkastore.timeout.ms": "10000",
    "kafkastore.init.timeout.ms": "60000",
    "schema.compatibility.level": "BACKWARD",
}
# Settings of several instances that elect a leader, which are not served yet.
_IDLE = {
    "host.name",
    "inter.instance.protocol",
    "leader.eligibility",
    "master.eligibility",
    "schema.registry.group.id",
    "schema.registry.inter.instance.protocol",
}
# The name that the level had in the first versions.
_RENAMED = {"avro.compatibility.level": "schema.compatibility.level"}
_LISTENER_FORM = "http://host:port"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryConfig:
    """What the process was told."""

    listeners: tuple[tuple[str, int], ...]
    client: Mapping[str, str]  # How to come to the brokers, in a client's own names.
    topic: str = "_schemas"
    replication_factor: int = 3  # Of a topic that has to be created; at most the brokers there are.
    timeout_s: float = 10.0  # Until a change must be written and read back.
    start_timeout_s: float = 60.0
    level: CompatibilityLevel = CompatibilityLevel.BACKWARD
    warnings: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "RegistryConfig":
        """From a properties file; ConfigError names the setting that is wrong."""
        values = {_RENAMED.get(name, name): text.strip() for name, text in given.items()}
        chosen = {**_DEFAULTS, **values}
        return cls(
            listeners=_listeners(chosen["listeners"]),
            client=_client(chosen),
            topic=_filled(chosen, "kafkastore.topic"),
            replication_factor=_number(chosen, "kafkastore.topic.replication.factor"),
            timeout_s=_number(chosen, "kafkastore.timeout.ms") / 1000,
            start_timeout_s=_number(chosen, "kafkastore.init.timeout.ms") / 1000,
            level=_level(chosen["schema.compatibility.level"]),
            warnings=tuple(_warning(name) for name in given if not _is_known(name)),
        )


def _listeners(text: str) -> tuple[tuple[str, int], ...]:
    found = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        scheme, host, port = split_address("listeners", entry, _LISTENER_FORM)
        if scheme.lower() == "https":
            raise ConfigError(f"listeners has {entry}: https is not served yet, write http")
        if scheme.lower() != "http":
            raise ConfigError(f"listeners has {entry}: write {_LISTENER_FORM}")
        found.append((host, port))
    if not found:
        raise ConfigError(f"listeners is empty: write {_LISTENER_FORM}")
    return tuple(found)


def _client(chosen: Mapping[str, str]) -> dict[str, str]:
    servers = _filled(chosen, "kafkastore.bootstrap.servers").split(",")
    # Confluent's files write the protocol in front of each address.
    plain = [server.strip().rpartition("://")[2] for server in servers]
    handed = {
        name.removeprefix(_STORE): text
        for name, text in chosen.items()
        if _is_of_client(name) and text
    }
    return {**handed, "bootstrap.servers": ",".join(plain), "client.id": "schema-registry"}


def _is_of_client(name: str) -> bool:
    return name.startswith(_STORE) and name.removeprefix(_STORE).startswith(_CLIENT_SETTINGS)


def _filled(chosen: Mapping[str, str], name: str) -> str:
    if not chosen[name]:
        raise ConfigError(f"{name} is missing")
    return chosen[name]


def _number(chosen: Mapping[str, str], name: str) -> int:
    number = as_int(name, chosen[name])
    if number < 1:
        raise ConfigError(f"{name}={number} is less than 1")
    return number


def _level(text: str) -> CompatibilityLevel:
    if text.upper() not in CompatibilityLevel.__members__:
        names = ", ".join(CompatibilityLevel.__members__)
        raise ConfigError(f"schema.compatibility.level={text} is not one of {names}")
    return CompatibilityLevel(text.upper())


def _is_known(name: str) -> bool:
    return name in _DEFAULTS or name in _RENAMED or _is_of_client(name)


def _warning(name: str) -> str:
    if name in _IDLE:
        return f"{name} does nothing yet: a registry here is one instance, which leads itself"
    close = difflib.get_close_matches(name, _DEFAULTS, n=1, cutoff=0.85)
    hint = f", did you mean {close[0]}?" if close else ""
    return f"{name} is not a setting this registry knows: it is ignored{hint}"
