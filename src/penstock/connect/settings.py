"""The settings of a Connect worker, under Kafka's names.

What begins with `producer.`, `consumer.` or `admin.` is for the clients of tasks;
`security.protocol`, `ssl.*`, `sasl.*` and the other names of clients count for all. A setting of
`penstock.connect.` is ours alone. What is not known is ignored and told.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
from penstock.security.tls.contexts import TlsSettings

_ROLES = ("producer.", "consumer.", "admin.")
_FOR_ALL_CLIENTS = (
    "security.protocol",
    "ssl.",
    "sasl.",
    "client.id",
    "client.dns.lookup",
    "request.timeout.ms",
    "retry.backoff.ms",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
)
_PLUGIN_SETTINGS = ("key.converter", "value.converter", "header.converter", "config.providers")
# Algorithms of signatures between workers, under Java's names.
_SIGNATURES = ("HmacSHA1", "HmacSHA256", "HmacSHA384", "HmacSHA512")
_DEFAULTS = {
    "bootstrap.servers": "localhost:9092",
    "group.id": "",
    "config.storage.topic": "",
    "config.storage.replication.factor": "3",
    "offset.storage.topic": "",
    "offset.storage.partitions": "25",
    "offset.storage.replication.factor": "3",
    "offset.storage.file.filename": "",
    "status.storage.topic": "",
    "status.storage.partitions": "5",
    "status.storage.replication.factor": "3",
    "offset.flush.interval.ms": "60000",
    "offset.flush.timeout.ms": "5000",
    "task.shutdown.graceful.timeout.ms": "5000",
    "exactly.once.source.support": "disabled",
    "connect.protocol": "sessioned",
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "3000",
    "rebalance.timeout.ms": "60000",
    "scheduled.rebalance.max.delay.ms": "300000",
    "inter.worker.key.ttl.ms": "3600000",
    "inter.worker.key.generation.algorithm": "HmacSHA256",
    "inter.worker.signature.algorithm": "HmacSHA256",
    "inter.worker.verification.algorithms": "HmacSHA256",
    "listeners": "http://127.0.0.1:8083",
    "metrics.listeners": "",
    "rest.advertised.host.name": "",
    "rest.advertised.port": "",
    "rest.host.name": "",
    "rest.port": "",
    "topic.creation.enable": "true",
    "topic.tracking.enable": "true",
    "topic.tracking.allow.reset": "true",
    "connector.client.config.override.policy": "All",
    "plugin.path": "",
    "penstock.connect.java.path": "",
    "penstock.connect.java.options": "-Xmx512m -XX:+UseSerialGC",
    "plugin.discovery": "",
    **ACCESS_DEFAULTS,
    "penstock.connect.spark.master": "",
    "penstock.connect.spark.log": "",
    "penstock.connect.tasks.max": "64",
    "penstock.connect.restart.failed": "true",
}
LANE = "penstock.lane"  # Of a connector: which way its records take (columnar/lane.py).
OWN_SETTINGS = frozenset(name for name in _DEFAULTS if name.startswith("penstock."))
_SWITCH = {"true": True, "false": False}
_SUPPORT = ("disabled", "preparing", "enabled")
# By policy, what a connector may say of its clients; None: everything.
_POLICIES: dict[str, tuple[str, ...] | None] = {
    "All": None,
    "None": (),
    "Principal": ("sasl.jaas.config", "sasl.mechanism", "security.protocol"),
}
_OVERRIDES = ("producer.override.", "consumer.override.", "admin.override.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTopics:
    """Where a distributed worker keeps what it knows."""

    config: str
    offsets: str
    status: str
    config_replicas: int = 3
    offset_replicas: int = 3
    offset_partitions: int = 25
    status_replicas: int = 3
    status_partitions: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTiming:
    """How patient a group of workers is."""

    session_ms: int = 10_000
    heartbeat_ms: int = 3_000
    rebalance_ms: int = 60_000
    delay_ms_max: int = 300_000  # How long work of a worker that vanished waits for it.


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningSettings:
    """How workers sign what they ask of each other (KIP-507)."""

    key_ttl_ms: int = 3_600_000
    key_algorithm: str = "HmacSHA256"
    algorithm: str = "HmacSHA256"
    allowed: tuple[str, ...] = ("HmacSHA256",)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What the process was told."""

    given: Mapping[str, str]  # As it stands in the file: converters are configured from it.
    listeners: tuple[HttpListener, ...]
    client: Mapping[str, str]  # How every client comes to the brokers.
    metrics_listeners: tuple[HttpListener, ...] = ()  # Where metrics can be scraped.
    group_id: str = ""
    topics: StateTopics | None = None  # None: a standalone worker.
    offset_file: Path | None = None
    offset_flush_s: float = 60.0
    shutdown_s: float = 5.0
    exactly_once_sources: bool = False
    group_timing: GroupTiming = GroupTiming()
    signing: SigningSettings = SigningSettings()
    advertised_host: str = ""
    advertised_port: int | None = None
    creates_topics: bool = True
    tracks_topics: bool = True
    resets_topics: bool = True
    override_policy: str = "All"
    tls: TlsSettings | None = None
    access: AccessSettings | None = None
    spark_master: str = ""
    spark_log: Path | None = None
    tasks_max: int = 64
    restarts_failed: bool = True
    warnings: tuple[str, ...] = field(default=())

    @property
    def is_distributed(self) -> bool:
        """Whether what it knows is in topics."""
        return self.topics is not None

    @classmethod
    def distributed(cls, given: Mapping[str, str]) -> "WorkerSettings":
        """Of `connect-distributed`; ConfigError names the setting that is wrong."""
        chosen = {**_DEFAULTS, **_stripped(given)}
        topics = StateTopics(
            config=_filled(chosen, "config.storage.topic"),
            offsets=_filled(chosen, "offset.storage.topic"),
            status=_filled(chosen, "status.storage.topic"),
            config_replicas=_number(chosen, "config.storage.replication.factor"),
            offset_replicas=_number(chosen, "offset.storage.replication.factor"),
            offset_partitions=_number(chosen, "offset.storage.partitions"),
            status_replicas=_number(chosen, "status.storage.replication.factor"),
            status_partitions=_number(chosen, "status.storage.partitions"),
        )
        return cls._of(chosen, given, topics=topics, group_id=_filled(chosen, "group.id"))

    @classmethod
    def standalone(cls, given: Mapping[str, str]) -> "WorkerSettings":
        """Of `connect-standalone`; ConfigError names the setting that is wrong."""
        chosen = {**_DEFAULTS, **_stripped(given)}
        file = Path(_filled(chosen, "offset.storage.file.filename"))
        return cls._of(chosen, given, offset_file=file)

    @classmethod
    def _of(
        cls,
        chosen: Mapping[str, str],
        given: Mapping[str, str],
        *,
        topics: StateTopics | None = None,
        group_id: str = "",
        offset_file: Path | None = None,
    ) -> "WorkerSettings":
        for name in ("key.converter", "value.converter"):
            _filled({name: "", **chosen}, name)
        support = _one_of(chosen, "exactly.once.source.support", _SUPPORT)
        metrics = chosen["metrics.listeners"]
        port, log = chosen["rest.advertised.port"], chosen["penstock.connect.spark.log"]
        return cls(
            given=_stripped(given),
            listeners=_listeners(chosen),
            client=_client(chosen),
            metrics_listeners=_metrics_listeners(metrics) if metrics else (),
            group_id=group_id,
            topics=topics,
            offset_file=offset_file,
            offset_flush_s=_number(chosen, "offset.flush.interval.ms") / 1000,
            shutdown_s=_number(chosen, "task.shutdown.graceful.timeout.ms") / 1000,
            exactly_once_sources=topics is not None and support == "enabled",
            group_timing=_timing(chosen),
            signing=_signing(chosen),
            advertised_host=chosen["rest.advertised.host.name"],
            advertised_port=as_int("rest.advertised.port", port) if port else None,
            creates_topics=_switch(chosen, "topic.creation.enable"),
            tracks_topics=_switch(chosen, "topic.tracking.enable"),
            resets_topics=_switch(chosen, "topic.tracking.allow.reset"),
            override_policy=_policy(chosen),
            tls=read_tls(_tls_of_listeners(chosen)),
            access=read_access(chosen, "Connect"),
            spark_master=chosen["penstock.connect.spark.master"],
            spark_log=Path(log) if log else None,
            tasks_max=_number(chosen, "penstock.connect.tasks.max"),
            restarts_failed=_switch(chosen, "penstock.connect.restart.failed"),
            warnings=tuple(_warning(name) for name in given if not _is_known(name)),
        )

    def client_for(self, role: str, connector: Mapping[str, str], override: str) -> dict[str, str]:
        """A task's client: the worker's settings, those of the role, the connector's own."""
        allowed = {k: v for k, v in connector.items() if self.refused_override(k) is None}
        prefixes = [(self.given, f"{role}."), (allowed, f"{override}.override.")]
        made = dict(self.client)
        for settings, prefix in prefixes:
            made |= {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}
        return made

    def refused_override(self, name: str) -> str | None:
        """Why a connector may not have this setting of a client; None: it may, or it is none."""
        prefix = next((one for one in _OVERRIDES if name.startswith(one)), None)
        allowed = _POLICIES[self.override_policy]
        if prefix is None or allowed is None or name.removeprefix(prefix) in allowed:
            return None
        own = name.removeprefix(prefix)
        return (
            f"The '{self.override_policy}' policy does not allow '{own}' to be overridden in the"
            " connector configuration."
        )


def _timing(chosen: Mapping[str, str]) -> GroupTiming:
    _one_of(chosen, "connect.protocol", ("sessioned",))
    delay = "scheduled.rebalance.max.delay.ms"
    timing = GroupTiming(
        session_ms=_number(chosen, "session.timeout.ms"),
        heartbeat_ms=_number(chosen, "heartbeat.interval.ms"),
        rebalance_ms=_number(chosen, "rebalance.timeout.ms"),
        delay_ms_max=as_int(delay, chosen[delay]),
    )
    if timing.delay_ms_max < 0:
        raise ConfigError(f"Invalid value {chosen[delay]} for configuration {delay}: it must be at"
                          " least 0")  # fmt: skip
    if timing.heartbeat_ms >= timing.session_ms:
        raise ConfigError("heartbeat.interval.ms must be lower than session.timeout.ms")
    return timing


def _signing(chosen: Mapping[str, str]) -> SigningSettings:
    names = [one.strip() for one in chosen["inter.worker.verification.algorithms"].split(",")]
    signing = SigningSettings(
        key_ttl_ms=as_int("inter.worker.key.ttl.ms", chosen["inter.worker.key.ttl.ms"]),
        key_algorithm=chosen["inter.worker.key.generation.algorithm"],
        algorithm=chosen["inter.worker.signature.algorithm"],
        allowed=tuple(names),
    )
    for word in (signing.key_algorithm, signing.algorithm, *names):
        if word not in _SIGNATURES:
            raise ConfigError(f"inter.worker.*.algorithm: {word!r} is none of"
                              f" {', '.join(_SIGNATURES)}")  # fmt: skip
    if signing.algorithm not in names:
        raise ConfigError("inter.worker.signature.algorithm must be one of"
                          " inter.worker.verification.algorithms")  # fmt: skip
    return signing


def _stripped(given: Mapping[str, str]) -> dict[str, str]:
    return {name: text.strip() for name, text in given.items()}


def _client(chosen: Mapping[str, str]) -> dict[str, str]:
    named = {name: text for name, text in chosen.items() if name.startswith(_FOR_ALL_CLIENTS)}
    return {
        **{name: text for name, text in named.items() if text},
        "bootstrap.servers": _filled(chosen, "bootstrap.servers"),
    }


def _listeners(chosen: Mapping[str, str]) -> tuple[HttpListener, ...]:
    """`rest.host.name` and `rest.port` are how old files say it."""
    host, port = chosen["rest.host.name"], chosen["rest.port"]
    if not host and not port:
        return read_listeners(chosen["listeners"])
    return read_listeners(f"http://{host or '127.0.0.1'}:{port or 8083}")


def _metrics_listeners(text: str) -> tuple[HttpListener, ...]:
    found = read_listeners(text)
    if any(one.scheme != "http" for one in found):
        raise ConfigError(f"metrics.listeners has {text}: metrics are served over http alone")
    return found


def _tls_of_listeners(chosen: Mapping[str, str]) -> dict[str, str]:
    """`listeners.https.ssl.*` where there is any, else the `ssl.*` of all."""
    prefix = "listeners.https."
    own = {k.removeprefix(prefix): v for k, v in chosen.items() if k.startswith(f"{prefix}ssl.")}
    return own or dict(chosen)


def _filled(chosen: Mapping[str, str], name: str) -> str:
    if not chosen[name]:
        raise ConfigError(f'Missing required configuration "{name}" which has no default value.')
    return chosen[name]


def _number(chosen: Mapping[str, str], name: str) -> int:
    number = as_int(name, chosen[name])
    if number < 1:
        raise ConfigError(f"Invalid value {number} for configuration {name}: it must be at least 1")
    return number


def _one_of(chosen: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    word = chosen[name].lower()
    if word not in words:
        raise ConfigError(
            f"Invalid value {chosen[name]} for configuration {name}: String must be one of"
            f" {', '.join(words)}"
        )
    return word


def _policy(chosen: Mapping[str, str]) -> str:
    name = "connector.client.config.override.policy"
    word = chosen[name].rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
    if word not in _POLICIES:
        raise ConfigError(f"Invalid value {chosen[name]} for configuration {name}")
    return word


def _switch(chosen: Mapping[str, str], name: str) -> bool:
    word = chosen[name].lower()
    if word not in _SWITCH:
        raise ConfigError(f"{name}={chosen[name]} is neither true nor false")
    return _SWITCH[word]


def _is_known(name: str) -> bool:
    return (
        name in _DEFAULTS
        or name in TLS_SETTINGS
        or name.startswith((*_ROLES, *_FOR_ALL_CLIENTS, *_PLUGIN_SETTINGS, "listeners.https."))
    )


def _warning(name: str) -> str:
    close = difflib.get_close_matches(name, _DEFAULTS, n=1, cutoff=0.85)
    hint = f", did you mean {close[0]}?" if close else ""
    return f"{name} is not a setting this worker knows: it is ignored{hint}"
