"""The settings of the REST proxy's process, under Confluent's names.

`client.` begins a setting of every Kafka client in the process, `producer.`, `consumer.` and
`admin.` one of those alone. What is not known is ignored and told.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.client.settings import as_bool, as_int
from penstock.errors import ConfigError
from penstock.http.access import (
    ACCESS_DEFAULTS,
    LISTENER_FORM,
    TLS_SETTINGS,
    AccessSettings,
    HttpListener,
    read_access,
    read_listeners,
    read_tls,
)
from penstock.security.tls.contexts import TlsSettings

_DEFAULTS = {
    "listeners": "http://127.0.0.1:8082",
    "advertised.listeners": "",
    "bootstrap.servers": "",
    "host.name": "",
    "id": "",
    "schema.registry.url": "",
    "api.v2.enable": "true",
    "api.v3.enable": "true",
    "consumer.instance.timeout.ms": "300000",
    "consumer.instances.max": "1000",
    "consumer.request.timeout.ms": "1000",
    "consumer.request.max.bytes": str(64 << 20),
    "fetch.min.bytes": "-1",
    "request.max.bytes": str(16 << 20),
    "record.max.bytes": str(2 << 20),
    "streams.max": "2000",
    "stream.buffer.bytes": str(1 << 20),
    **ACCESS_DEFAULTS,
}
# Settings of Confluent's own machinery, which is built differently here.
_IDLE = {
    "consumer.iterator.backoff.ms",
    "consumer.iterator.timeout.ms",
    "consumer.threads",
    "producer.threads",
    "simpleconsumer.pool.size.max",
    "simpleconsumer.pool.timeout.ms",
    "zookeeper.connect",
}
_REGISTRY = "schema.registry."
_FAMILIES = ("client.", "producer.", "consumer.", "admin.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestConfig:
    """What the process was told."""

    listeners: tuple[HttpListener, ...]
    producer: Mapping[str, str]  # Each with bootstrap.servers, in a client's own names.
    consumer: Mapping[str, str]
    admin: Mapping[str, str]
    advertised: str = ""  # Where consumers come back to; empty: where the request was sent.
    host_name: str = ""
    instance_id: str = ""  # A part of the names of consumers, where several proxies run.
    registry_url: str = ""  # Empty: no formats with schemas.
    registry: Mapping[str, str] = field(default_factory=dict)  # schema.registry. without it.
    v2_enabled: bool = True
    v3_enabled: bool = True
    consumer_timeout_s: float = 300.0  # Of a consumer that nobody asks.
    consumers_max: int = 1000
    consume_timeout_s: float = 1.0  # How long a request for records waits, if it does not say.
    consume_bytes_max: int = 64 << 20
    fetch_min_bytes: int = -1
    body_bytes_max: int = 16 << 20  # Of a body that is read whole.
    record_bytes_max: int = 2 << 20  # Of one record in a stream of them.
    streams_max: int = 2000
    stream_buffer_bytes: int = 1 << 20  # What a reader of a stream may be behind.
    tls: TlsSettings | None = None  # None: nothing is said about TLS.
    access: AccessSettings | None = None  # None: whoever reaches the port may use it.
    warnings: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "RestConfig":
        """From a properties file; ConfigError names the setting that is wrong."""
        chosen = {**_DEFAULTS, **{name: text.strip() for name, text in given.items()}}
        return cls(
            listeners=read_listeners(chosen["listeners"]),
            producer=_client(chosen, "producer."),
            consumer=_client(chosen, "consumer."),
            admin=_client(chosen, "admin."),
            advertised=_advertised(chosen["advertised.listeners"]),
            host_name=chosen["host.name"],
            instance_id=chosen["id"],
            registry_url=chosen["schema.registry.url"],
            registry=_below(chosen, _REGISTRY),
            v2_enabled=as_bool("api.v2.enable", chosen["api.v2.enable"]),
            v3_enabled=as_bool("api.v3.enable", chosen["api.v3.enable"]),
            consumer_timeout_s=_number(chosen, "consumer.instance.timeout.ms") / 1000,
            consumers_max=_number(chosen, "consumer.instances.max"),
            consume_timeout_s=_number(chosen, "consumer.request.timeout.ms") / 1000,
            consume_bytes_max=_number(chosen, "consumer.request.max.bytes"),
            fetch_min_bytes=as_int("fetch.min.bytes", chosen["fetch.min.bytes"]),
            body_bytes_max=_number(chosen, "request.max.bytes"),
            record_bytes_max=_number(chosen, "record.max.bytes"),
            streams_max=_number(chosen, "streams.max"),
            stream_buffer_bytes=_number(chosen, "stream.buffer.bytes"),
            tls=read_tls(chosen),
            access=read_access(chosen, "KafkaRest"),
            warnings=tuple(_warning(name) for name in given if not _is_known(name)),
        )


def _advertised(text: str) -> str:
    """The first of the addresses, without a slash at its end."""
    first = text.partition(",")[0].strip().rstrip("/")
    if first and "://" not in first:
        raise ConfigError(f"advertised.listeners has {first}: write {LISTENER_FORM}")
    return first


def _client(chosen: Mapping[str, str], family: str) -> dict[str, str]:
    servers = chosen["bootstrap.servers"]
    if not servers:
        raise ConfigError("bootstrap.servers is missing: write host:port of a broker")
    # Confluent's files write the protocol in front of each address.
    plain = [server.strip().rpartition("://")[2] for server in servers.split(",")]
    handed = {**_below(chosen, "client."), **_below(chosen, family)}
    return {"client.id": "kafka-rest", **handed, "bootstrap.servers": ",".join(plain)}


def _below(chosen: Mapping[str, str], family: str) -> dict[str, str]:
    """The settings of a family by the names that follow; the proxy's own are not among them."""
    return {
        name.removeprefix(family): text
        for name, text in chosen.items()
        if name.startswith(family) and name not in _DEFAULTS and name not in _IDLE and text
    }


def _number(chosen: Mapping[str, str], name: str) -> int:
    number = as_int(name, chosen[name])
    if number < 1:
        raise ConfigError(f"{name}={number} is less than 1")
    return number


def _is_known(name: str) -> bool:
    if name in _IDLE:
        return False
    families = (*_FAMILIES, _REGISTRY)
    return name in _DEFAULTS or name in TLS_SETTINGS or name.startswith(families)


def _warning(name: str) -> str:
    if name in _IDLE:
        return f"{name} does nothing here: this proxy has no such part"
    close = difflib.get_close_matches(name, _DEFAULTS, n=1, cutoff=0.85)
    hint = f", did you mean {close[0]}?" if close else ""
    return f"{name} is not a setting this proxy knows: it is ignored{hint}"
