"""The settings of the registry's process, under Confluent's names.

Settings that begin with `kafkastore.` and go on as those of a Kafka client (`security.protocol`,
`ssl.`, `sasl.`) are handed to the client. What is not known is ignored and told.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.client.settings import as_int
from penstock.errors import ConfigError
from penstock.http.access import (
    ACCESS_DEFAULTS,
    TLS_SETTINGS,
    AccessSettings,
    HttpListener,
    read_access,
    read_listeners,
    read_tls,
)
from penstock.schemas.compatibility.levels import CompatibilityLevel
from penstock.security.tls.contexts import TlsSettings

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
    "schema.registry.group.id": "schema-registry",
    "leader.eligibility": "true",
    "host.name": "",
    "inter.instance.protocol": "",
    "inter.instance.headers.whitelist": "",
    **ACCESS_DEFAULTS,
    "kafkagroup.session.timeout.ms": "10000",
    "kafkagroup.heartbeat.interval.ms": "3000",
    "kafkagroup.rebalance.timeout.ms": "300000",
}
# Names that settings had in earlier versions.
_RENAMED = {
    "avro.compatibility.level": "schema.compatibility.level",
    "master.eligibility": "leader.eligibility",
    "schema.registry.inter.instance.protocol": "inter.instance.protocol",
    "schema.registry.host.name": "host.name",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryConfig:
    """What the process was told."""

    listeners: tuple[HttpListener, ...]
    client: Mapping[str, str]  # How to come to the brokers, in a client's own names.
    topic: str = "_schemas"
    replication_factor: int = 3  # Of a topic that has to be created; at most the brokers there are.
    timeout_s: float = 10.0  # Until a change must be written and read back.
    start_timeout_s: float = 60.0
    level: CompatibilityLevel = CompatibilityLevel.BACKWARD
    group_id: str = "schema-registry"  # Whose members elect the leader.
    is_eligible: bool = True
    host_name: str = ""  # By which other instances reach this one; empty: a listener's host.
    inter_instance_scheme: str = "http"
    forwarded_headers: tuple[str, ...] = ()
    session_timeout_s: float = 10.0
    heartbeat_s: float = 3.0
    rebalance_timeout_s: float = 300.0
    tls: TlsSettings | None = None  # None: nothing is said about TLS.
    access: AccessSettings | None = None  # None: whoever reaches the port may use it.
    warnings: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "RegistryConfig":
        """From a properties file; ConfigError names the setting that is wrong."""
        values = {_RENAMED.get(name, name): text.strip() for name, text in given.items()}
        chosen = {**_DEFAULTS, **values}
        return cls(
            listeners=read_listeners(chosen["listeners"]),
            client=_client(chosen),
            topic=_filled(chosen, "kafkastore.topic"),
            replication_factor=_number(chosen, "kafkastore.topic.replication.factor"),
            timeout_s=_number(chosen, "kafkastore.timeout.ms") / 1000,
            start_timeout_s=_number(chosen, "kafkastore.init.timeout.ms") / 1000,
            level=_level(chosen["schema.compatibility.level"]),
            group_id=_filled(chosen, "schema.registry.group.id"),
            is_eligible=_is_true(chosen, "leader.eligibility"),
            host_name=chosen["host.name"],
            inter_instance_scheme=_scheme(chosen),
            forwarded_headers=_words(chosen["inter.instance.headers.whitelist"]),
            session_timeout_s=_number(chosen, "kafkagroup.session.timeout.ms") / 1000,
            heartbeat_s=_number(chosen, "kafkagroup.heartbeat.interval.ms") / 1000,
            rebalance_timeout_s=_number(chosen, "kafkagroup.rebalance.timeout.ms") / 1000,
            tls=read_tls(chosen),
            access=read_access(chosen, "SchemaRegistry"),
            warnings=tuple(_warning(name) for name in given if not _is_known(name)),
        )


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


def _is_true(chosen: Mapping[str, str], name: str) -> bool:
    if chosen[name].lower() not in ("true", "false"):
        raise ConfigError(f"{name}={chosen[name]} is neither true nor false")
    return chosen[name].lower() == "true"


def _scheme(chosen: Mapping[str, str]) -> str:
    given = chosen["inter.instance.protocol"] or read_listeners(chosen["listeners"])[0].scheme
    scheme = given.lower()
    if scheme not in ("http", "https"):
        raise ConfigError(f"inter.instance.protocol={scheme} is neither http nor https")
    return scheme


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _is_known(name: str) -> bool:
    return name in _DEFAULTS or name in _RENAMED or name in TLS_SETTINGS or _is_of_client(name)


def _warning(name: str) -> str:
    close = difflib.get_close_matches(name, _DEFAULTS, n=1, cutoff=0.85)
    hint = f", did you mean {close[0]}?" if close else ""
    return f"{name} is not a setting this registry knows: it is ignored{hint}"
