"""The settings of the SQL server's process, under ksqlDB's names.

`ksql.streams.` begins a setting of the queries, which Kafka Streams' names say; what is a client's
(security, timeouts) stands without a prefix. What is not known is ignored and told.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.client.settings import as_int
from penstock.config.properties import parse_properties
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
from penstock.sql.service.property_names import check_name
from penstock.streams.running.settings import streams_settings

SQL_DEFAULTS: Final = {
    "listeners": "http://127.0.0.1:8088",
    "bootstrap.servers": "",
    "ksql.service.id": "default_",
    "ksql.advertised.listener": "",
    "ksql.schema.registry.url": "",
    "ksql.connect.url": "",
    "ksql.connect.basic.auth.credentials.source": "NONE",
    "ksql.connect.basic.auth.credentials.file": "",
    "ksql.extension.dir": "",
    "ksql.streams.state.dir": "",
    "ksql.internal.topic.replicas": "-1",
    "ksql.max.push.queries": "100",
    "ksql.query.pull.table.scan.enabled": "true",
    "ksql.output.topic.name.prefix": "",
    "ksql.persistence.default.format.value": "",
    "ksql.fail.on.deserialization.error": "false",
    "ksql.logging.processing.rows.include": "false",
    "ksql.logging.processing.stream.auto.create": "false",
    "ksql.logging.processing.stream.name": "KSQL_PROCESSING_LOG",
    "ksql.logging.processing.topic.auto.create": "true",
    "ksql.logging.processing.topic.name": "",
    "ksql.logging.processing.topic.partitions": "1",
    "ksql.logging.processing.topic.replication.factor": "",
    "request.max.bytes": str(4 << 20),
    "penstock.sql.push.spark.max": "8",
    "penstock.sql.push.client.timeout.ms": "30000",
    "penstock.sql.spark.master": "",
    **ACCESS_DEFAULTS,
}
# What statements go by unless SET says otherwise.
_PROPERTIES: Final = (
    "ksql.query.pull.table.scan.enabled",
    "ksql.output.topic.name.prefix",
    "ksql.persistence.default.format.value",
)
# Settings of ksqlDB's own machinery, which is built differently here.
_IDLE: Final = frozenset(
    {
        "ksql.connect.worker.config",
        "ksql.heartbeat.enable",
        "ksql.lag.reporting.enable",
        "ksql.query.pull.enable.standby.reads",
        "ksql.queries.file",
        "ksql.sink.partitions",
        "ksql.sink.replicas",
        "ksql.server.ui.enabled",
        "ksql.udfs.enabled",
        "confluent.support.metrics.enable",
    }
)
_REGISTRY: Final = "ksql.schema.registry."
_STREAMS: Final = "ksql.streams."
DEAD_LETTERS: Final = "errors.dead.letter.queue.topic.name"
SPARK_CONF: Final = "penstock.sql.spark.conf."
_CLIENT: Final = ("sasl.", "security.", "ssl.", "client.", "request.timeout", "default.api")
_SERVICE_ID: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_STATE: Final = Path("~/.penstock/sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingLogConfig:
    """Where what fails for single records is told."""

    topic: str
    partitions: int = 1
    replicas: int = -1
    creates_topic: bool = True  # False: nothing is told unless the topic is there.
    stream: str | None = None  # None: nobody makes a stream of it.
    shows_rows: bool = False

    @classmethod
    def of(cls, chosen: Mapping[str, str]) -> "ProcessingLogConfig":
        """From the settings below ksql.logging.processing."""
        family = "ksql.logging.processing."
        replicas = chosen[f"{family}topic.replication.factor"]
        name = chosen[f"{family}stream.name"]
        if not name.isidentifier():
            raise ConfigError(f"{family}stream.name={name} is no name of a stream")
        return cls(
            topic=chosen[f"{family}topic.name"]
            or f"{chosen['ksql.service.id']}ksql_processing_log",
            partitions=_number(chosen, f"{family}topic.partitions"),
            replicas=as_int(
                f"{family}topic.replication.factor",
                replicas or chosen["ksql.internal.topic.replicas"],
            ),
            creates_topic=_truth(chosen, f"{family}topic.auto.create"),
            stream=name if _truth(chosen, f"{family}stream.auto.create") else None,
            shows_rows=_truth(chosen, f"{family}rows.include"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlConfig:
    """What the process was told."""

    listeners: tuple[HttpListener, ...]
    client: Mapping[str, str]  # With bootstrap.servers, in a client's own names.
    service_id: str
    url: str  # Where other servers of the service reach this one.
    state_dir: Path  # Checkpoints of queries, one folder for each.
    properties: Mapping[str, str]  # What statements go by unless SET says otherwise.
    streams: Mapping[str, str] = field(default_factory=dict)  # ksql.streams. without it.
    registry_url: str = ""  # Empty: no formats with schemas.
    registry: Mapping[str, str] = field(default_factory=dict)
    connect_urls: tuple[str, ...] = ()  # Empty: statements about connectors are refused.
    connect_user: str | None = field(default=None, repr=False)  # user:password
    extension_dir: Path | None = None  # None: no functions of the user's.
    internal_replicas: int = -1
    processing_log: ProcessingLogConfig
    dead_letters: str | None = None  # None: a query stops at a record that it cannot read.
    pushes_max: int = 100
    pushes_on_spark_max: int = 8
    slow_client_s: float = 30.0
    body_bytes_max: int = 4 << 20
    master: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    tls: TlsSettings | None = None
    access: AccessSettings | None = None  # None: whoever reaches the port may use it.
    shown: Mapping[str, str] = field(default_factory=dict)  # For SHOW PROPERTIES.
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "SqlConfig":
        """From a properties file; ConfigError names the setting that is wrong."""
        chosen = {**SQL_DEFAULTS, **{name: text.strip() for name, text in given.items()}}
        service_id = _service_id(chosen["ksql.service.id"])
        extensions = chosen["ksql.extension.dir"]
        return cls(
            listeners=read_listeners(chosen["listeners"]),
            client=_client(chosen),
            service_id=service_id,
            url=_advertised(chosen),
            state_dir=_state_dir(chosen, service_id),
            properties={name: chosen[name] for name in _PROPERTIES if chosen[name]},
            streams=_below(chosen, _STREAMS),
            registry_url=chosen["ksql.schema.registry.url"],
            registry=_below(chosen, _REGISTRY),
            connect_urls=_connect_urls(chosen),
            connect_user=_connect_user(chosen),
            extension_dir=Path(extensions).expanduser() if extensions else None,
            internal_replicas=as_int(
                "ksql.internal.topic.replicas", chosen["ksql.internal.topic.replicas"]
            ),
            processing_log=ProcessingLogConfig.of(chosen),
            dead_letters=_dead_letters(chosen),
            pushes_max=_number(chosen, "ksql.max.push.queries"),
            pushes_on_spark_max=_number(chosen, "penstock.sql.push.spark.max"),
            slow_client_s=_number(chosen, "penstock.sql.push.client.timeout.ms") / 1000,
            body_bytes_max=_number(chosen, "request.max.bytes"),
            master=chosen["penstock.sql.spark.master"] or None,
            spark_conf=_below(chosen, SPARK_CONF),
            tls=read_tls(chosen),
            access=read_access(chosen, "KsqlServer"),
            shown={
                name: text
                for name, text in sorted(chosen.items())
                if name.startswith(("ksql.", "penstock.")) and text and not _is_secret(name)
            },
            warnings=tuple(_warning(name) for name in given if not _is_known(name)),
        )


def is_property(name: str) -> bool:
    """Whether SET may name it: what statements and queries go by."""
    plain = name.removeprefix(_STREAMS)
    return name in _PROPERTIES or name in SQL_DEFAULTS or plain in _QUERY_SETTINGS


_QUERY_SETTINGS: Final = frozenset(
    {
        "auto.offset.reset",
        "commit.interval.ms",
        "max.records.per.batch",
        "processing.guarantee",
        "shuffle.partitions",
        "statestore.cache.max.bytes",
        "windowstore.changelog.additional.retention.ms",
        "repartition.purge.interval.ms",
    }
)
_NEW_NAMES: Final = {"cache.max.bytes.buffering": "statestore.cache.max.bytes"}


def query_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """What of some properties is said to queries, in Kafka Streams' names."""
    plain = {name.removeprefix(_STREAMS): value for name, value in properties.items()}
    found = {_NEW_NAMES.get(name, name): value for name, value in plain.items()}
    return {name: value for name, value in found.items() if name in _QUERY_SETTINGS}


def check_property(name: str, value: str) -> None:
    """ConfigError for a name or value that no query could go by: it would change nothing."""
    if name not in _QUERY_SETTINGS:
        check_name(name)
    streams_settings(
        {"application.id": "any", "bootstrap.servers": "any", **query_settings({name: value})}
    )


def _service_id(text: str) -> str:
    if not text or not _SERVICE_ID.issuperset(text):
        raise ConfigError(
            f"ksql.service.id={text} must be of letters, digits, '.', '_' and '-': topics are "
            "named after it"
        )
    return text


def _advertised(chosen: Mapping[str, str]) -> str:
    said = chosen["ksql.advertised.listener"].rstrip("/")
    if said:
        read_listeners(said)  # ConfigError for what is no address.
        return said
    first = read_listeners(chosen["listeners"])[0]
    host = f"[{first.host}]" if ":" in first.host else first.host
    return f"{first.scheme}://{host}:{first.port}"


def _state_dir(chosen: Mapping[str, str], service_id: str) -> Path:
    said = chosen["ksql.streams.state.dir"]
    return (Path(said) if said else _STATE).expanduser() / service_id


def _client(chosen: Mapping[str, str]) -> dict[str, str]:
    servers = chosen["bootstrap.servers"]
    if not servers:
        raise ConfigError("bootstrap.servers is missing: write host:port of a broker")
    plain = [server.strip().rpartition("://")[2] for server in servers.split(",")]
    is_tls = "SSL" in chosen.get("security.protocol", "")
    handed = {
        name: text
        for name, text in chosen.items()
        if name.startswith(_CLIENT) and text and (is_tls or not name.startswith("ssl."))
    }
    return {"client.id": "ksql-server", **handed, "bootstrap.servers": ",".join(plain)}


def _connect_urls(chosen: Mapping[str, str]) -> tuple[str, ...]:
    urls = tuple(one.strip().rstrip("/") for one in chosen["ksql.connect.url"].split(","))
    for url in filter(None, urls):
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"ksql.connect.url={url} does not begin with http:// or https://")
    return tuple(filter(None, urls))


def _connect_user(chosen: Mapping[str, str]) -> str | None:
    """A user and a password from a file of properties, where a worker asks for them."""
    source = chosen["ksql.connect.basic.auth.credentials.source"].upper()
    if source not in ("NONE", "FILE"):
        raise ConfigError(f"ksql.connect.basic.auth.credentials.source={source} is neither NONE "
                          "nor FILE")  # fmt: skip
    if source == "NONE":
        return None
    path = Path(chosen["ksql.connect.basic.auth.credentials.file"]).expanduser()
    try:
        found = parse_properties(path.read_text("utf-8"))
        return f"{found['username']}:{found['password']}"
    except (OSError, KeyError, ValueError) as error:
        raise ConfigError(
            f"ksql.connect.basic.auth.credentials.file={path} has no username and password: {error}"
        ) from None


def _below(chosen: Mapping[str, str], family: str) -> dict[str, str]:
    return {
        name.removeprefix(family): text
        for name, text in chosen.items()
        if name.startswith(family) and name not in SQL_DEFAULTS and text
    }


def _dead_letters(chosen: Mapping[str, str]) -> str | None:
    if _truth(chosen, "ksql.fail.on.deserialization.error"):
        return None
    own = chosen.get(f"{_STREAMS}{DEAD_LETTERS}")
    return own or f"{chosen['ksql.service.id']}ksql_dead_letters"


def _truth(chosen: Mapping[str, str], name: str) -> bool:
    text = chosen[name].lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name}={chosen[name]} is neither true nor false")
    return text == "true"


def _number(chosen: Mapping[str, str], name: str) -> int:
    number = as_int(name, chosen[name])
    if number < 1:
        raise ConfigError(f"{name}={number} is less than 1")
    return number


def _is_secret(name: str) -> bool:
    return any(word in name for word in ("password", "secret", "auth.user.info", "jaas"))


def _is_known(name: str) -> bool:
    if name in _IDLE:
        return False
    families = (_STREAMS, _REGISTRY, SPARK_CONF, *_CLIENT)
    return name in SQL_DEFAULTS or name in TLS_SETTINGS or name.startswith(families)


def _warning(name: str) -> str:
    if name in _IDLE:
        return f"{name} does nothing here: this server has no such part"
    close = difflib.get_close_matches(name, SQL_DEFAULTS, n=1, cutoff=0.85)
    hint = f", did you mean {close[0]}?" if close else ""
    return f"{name} is not a setting this server knows: it is ignored{hint}"
