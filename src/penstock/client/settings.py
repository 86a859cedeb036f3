"""Kafka's configuration names, turned into librdkafka's.

A user writes what Kafka's documentation says: `buffer.memory`, `max.poll.records`, Java class
names. The table below says for every such key what becomes of it: the same in librdkafka, another
name or unit there, served by Penstock itself, or without a meaning outside Java. librdkafka's own
names are taken too; it knows them all, so a key that neither knows is a mistake and is told.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from penstock.errors import ConfigError
from penstock.security.sasl.jaas import user_and_password
from penstock.security.sasl.kerberos_login import KERBEROS_MODULE, kerberos_login_of

Role: TypeAlias = Literal["producer", "consumer"]
Settings: TypeAlias = Mapping[str, object]

_BOTH: tuple[Role, ...] = ("producer", "consumer")


def _words(text: str) -> list[str]:
    return text.split()


# The same name and meaning in librdkafka.
_SAME: dict[str, tuple[Role, ...]] = {
    **dict.fromkeys(
        _words(
            "bootstrap.servers client.id client.rack client.dns.lookup metadata.max.age.ms "
            "metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms "
            "reconnect.backoff.ms reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms "
            "connections.max.idle.ms socket.connection.setup.timeout.ms allow.auto.create.topics "
            "security.protocol ssl.cipher.suites ssl.key.password sasl.mechanism "
            "sasl.kerberos.service.name enable.metrics.push "
            "sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.scope statistics.interval.ms"
        ),
        _BOTH,
    ),
    **dict.fromkeys(
        _words(
            "linger.ms compression.type retries enable.idempotence "
            "max.in.flight.requests.per.connection delivery.timeout.ms transactional.id "
            "transaction.timeout.ms"
        ),
        ("producer",),
    ),
    **dict.fromkeys(
        _words(
            "group.id group.instance.id group.protocol group.remote.assignor session.timeout.ms "
            "heartbeat.interval.ms max.poll.interval.ms enable.auto.commit "
            "auto.commit.interval.ms isolation.level fetch.min.bytes fetch.max.bytes "
            "max.partition.fetch.bytes check.crcs"
        ),
        ("consumer",),
    ),
}

# Served by Penstock itself, with Kafka's default. Plug-ins are built by `plugins`.
_OURS: dict[Role, dict[str, object]] = {
    "producer": {
        "key.serializer": None,
        "value.serializer": None,
        "partitioner.class": None,
        "partitioner.ignore.keys": False,
        "interceptor.classes": (),
        "max.block.ms": 60_000,
    },
    "consumer": {
        "key.deserializer": None,
        "value.deserializer": None,
        "interceptor.classes": (),
        "max.poll.records": 500,
        "default.api.timeout.ms": 60_000,
        "exclude.internal.topics": True,
    },
}

# What Kafka's clients default to and librdkafka does not.
_DEFAULTS: dict[Role, dict[str, object]] = {
    "producer": {
        "delivery.timeout.ms": 120_000,
        "max.in.flight.requests.per.connection": 5,
        "queue.buffering.max.kbytes": 32 * 1024,
        "queue.buffering.max.messages": 0,  # No limit of its own: buffer.memory is the limit.
        "batch.size": 16_384,
        "batch.num.messages": 1_000_000,  # Again: bytes are the limit, as in Kafka.
        "statistics.interval.ms": 1_000,
    },
    "consumer": {
        "enable.auto.offset.store": False,  # An offset counts when the next poll asks for more.
        "check.crcs": True,
        "fetch.queue.backoff.ms": 10,  # librdkafka's own second of rest would halve the speed.
        "statistics.interval.ms": 1_000,
    },
}

# Keys that speak of the Java virtual machine or of Kafka's own metrics library.
_WITHOUT_EFFECT = frozenset(
    _words(
        "metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms "
        "auto.include.jmx.reporter config.providers metadata.max.idle.ms security.providers "
        "partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms "
        "socket.connection.setup.timeout.max.ms ssl.protocol ssl.provider ssl.enabled.protocols "
        "ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.keymanager.algorithm "
        "ssl.engine.factory.class ssl.truststore.type ssl.truststore.password "
        "ssl.keystore.type sasl.login.class sasl.login.callback.handler.class "
        "sasl.client.callback.handler.class sasl.login.connect.timeout.ms "
        "sasl.login.read.timeout.ms sasl.login.retry.backoff.ms sasl.login.retry.backoff.max.ms "
        "sasl.login.refresh.window.factor sasl.login.refresh.window.jitter "
        "sasl.login.refresh.min.period.seconds sasl.login.refresh.buffer.seconds "
        "sasl.kerberos.kinit.cmd sasl.kerberos.ticket.renew.jitter "
        "sasl.kerberos.ticket.renew.window.factor sasl.kerberos.min.time.before.relogin "
        "internal.throw.on.fetch.stable.offset.unsupported "
        "specific.avro.reader json.value.type json.key.type"
    )
)

# What serializers with a schema registry take, under Confluent's names.
_OF_REGISTRY = frozenset(
    _words(
        "basic.auth.credentials.source basic.auth.user.info bearer.auth.token "
        "auto.register.schemas use.latest.version use.latest.with.metadata use.schema.id "
        "normalize.schemas latest.cache.ttl.sec subject.name.strategy key.subject.name.strategy "
        "value.subject.name.strategy key.schema value.schema validate.strict.allow.default "
        "json.fail.invalid.schema skip.known.types specific.protobuf.key.type "
        "specific.protobuf.value.type"
    )
)
_REGISTRY_PREFIX = "schema.registry."

# A key of the other side, which old texts mix up: what was meant.
_MEANT: dict[Role, dict[str, str]] = {
    "producer": {
        "key.deserializer": "key.serializer",
        "value.deserializer": "value.serializer",
        "broker.list": "bootstrap.servers",
        "metadata.broker.list": "bootstrap.servers",
        "request.required.acks": "acks",
        "compression.codec": "compression.type",
        "serializer.class": "value.serializer",
    },
    "consumer": {
        "key.serializer": "key.deserializer",
        "value.serializer": "value.deserializer",
        "zookeeper.connect": "bootstrap.servers",
        "metadata.broker.list": "bootstrap.servers",
    },
}


@dataclass(slots=True, kw_only=True)
class ClientSettings:
    """A configuration, sorted by who serves it."""

    librdkafka: dict[str, object] = field(default_factory=dict)
    ours: dict[str, object] = field(default_factory=dict)
    given: dict[str, object] = field(default_factory=dict)  # As written; plug-ins get all of it.
    without_effect: tuple[str, ...] = ()

    def ms(self, key: str) -> int:
        """A time of ours in milliseconds."""
        return as_int(key, self.ours[key])


def translate(settings: Settings, role: Role) -> ClientSettings:
    """Sort a configuration written with Kafka's names; ConfigError names what cannot be."""
    given = {key: value for key, value in settings.items() if value is not None}
    result = ClientSettings(ours=dict(_OURS[role]), given=given)
    ignored: list[str] = []
    for key, value in given.items():
        if key in _OURS[role]:
            result.ours[key] = value
        elif key in _CHANGED and role in _CHANGED[key][0]:
            result.librdkafka.update(_CHANGED[key][1](key, value))
        elif key in _WITHOUT_EFFECT:
            ignored.append(key)
        elif _is_of_serializer(key):
            continue
        else:
            _check_side(key, role)
            result.librdkafka[key] = value
    result.without_effect = tuple(ignored)
    for key, value in _DEFAULTS[role].items():
        result.librdkafka.setdefault(key, value)
    if role == "producer":
        _settle_idempotence(result.librdkafka, given)
        _settle_delivery_timeout(result.librdkafka)
    return result


def unknown_key(message: str) -> str | None:
    """The key that librdkafka says it does not know, if that is what it says."""
    found = re.search(r'No such configuration property: "([^"]*)"', message)
    return found.group(1) if found else None


def unknown_key_error(key: str, role: Role) -> ConfigError:
    """Tell a key that nobody knows, with the nearest one that exists."""
    known = known_keys(role) | _OF_REGISTRY | {f"{_REGISTRY_PREFIX}url"}
    near = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.7)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ConfigError(f"{key!r} is not a setting of a {role}.{hint}")


def known_keys(role: Role) -> set[str]:
    """Every key of Kafka's documentation that a client of this role takes."""
    changed = {key for key, (roles, _) in _CHANGED.items() if role in roles}
    same = {key for key, roles in _SAME.items() if role in roles}
    return changed | same | set(_OURS[role]) | _WITHOUT_EFFECT


def without_effect(key: str) -> bool:
    """Whether a key of Kafka's documentation has no meaning outside Java."""
    return key in _WITHOUT_EFFECT


def dotted(name: str) -> str:
    """`bootstrap_servers`, as a keyword argument is written, for bootstrap.servers."""
    return name.replace("_", ".")


def as_int(key: str, value: object) -> int:
    """A whole number, however it was written."""
    try:
        return int(str(value))
    except ValueError:
        raise ConfigError(f"{key}={value} is not a whole number") from None


def as_bool(key: str, value: object) -> bool:
    """A boolean, however it was written."""
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{key}={value} is neither true nor false")
    return text == "true"


def as_list(value: object) -> list[object]:
    """A list, or a comma-separated text as properties files have it."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",") if word.strip()]
    if isinstance(value, list | tuple):
        return list(value)
    return [value]


def _check_side(key: str, role: Role) -> None:
    meant = _MEANT[role].get(key)
    if meant is not None:
        raise ConfigError(f"{key!r} is not a setting of a {role}: write {meant!r}")
    if (key in _SAME and role not in _SAME[key]) or key in _CHANGED:
        other = "consumer" if role == "producer" else "producer"
        raise ConfigError(f"{key!r} is a setting of a {other}, not of a {role}")


def _is_of_serializer(key: str) -> bool:
    """`key.serializer.encoding`, `schema.registry.url`: they are for the plug-in alone."""
    if key in _OF_REGISTRY or key.startswith(_REGISTRY_PREFIX):
        return True
    word = key.removeprefix("key.").removeprefix("value.")
    return word.startswith(("serializer.", "deserializer.")) and word != "serializer.class"


def _settle_idempotence(settings: dict[str, object], given: Settings) -> None:
    """On by default; a setting that rules it out switches it off unless it was asked for."""
    if "enable.idempotence" in given or "transactional.id" in given:
        return
    acks = str(settings.get("acks", "all")).lower()
    in_flight = as_int("max.in.flight.requests.per.connection", settings[_IN_FLIGHT])
    retries = as_int("retries", settings.get("retries", 1))
    settings["enable.idempotence"] = acks in ("all", "-1") and in_flight <= 5 and retries > 0


def _settle_delivery_timeout(settings: dict[str, object]) -> None:
    """librdkafka refuses to try longer than the transaction lives; Kafka just never gets there."""
    if "transactional.id" not in settings:
        return
    life_ms = as_int("transaction.timeout.ms", settings.get("transaction.timeout.ms", 60_000))
    timeout_ms = as_int("delivery.timeout.ms", settings["delivery.timeout.ms"])
    settings["delivery.timeout.ms"] = min(timeout_ms, life_ms)


_IN_FLIGHT = "max.in.flight.requests.per.connection"


def _renamed(name: str) -> Callable[[str, object], dict[str, object]]:
    return lambda _, value: {name: value}


def _buffer_memory(key: str, value: object) -> dict[str, object]:
    return {"queue.buffering.max.kbytes": max(1, as_int(key, value) // 1024)}


def _acks(key: str, value: object) -> dict[str, object]:
    text = str(value).lower()
    if text not in ("all", "-1", "0", "1"):
        raise ConfigError(f"{key}={value} is not one of all, -1, 0 and 1")
    return {key: text}


def _batch_size(key: str, value: object) -> dict[str, object]:
    size = as_int(key, value)
    # In Kafka a batch size of 0 means a request per record.
    return {"batch.num.messages": 1} if size == 0 else {"batch.size": size}


def _socket_buffer(name: str) -> Callable[[str, object], dict[str, object]]:
    # -1 is Kafka's word for the system's default, 0 is librdkafka's.
    return lambda key, value: {name: max(0, as_int(key, value))}


def _request_timeout(key: str, value: object) -> dict[str, object]:
    timeout_ms = as_int(key, value)
    return {"request.timeout.ms": timeout_ms, "socket.timeout.ms": max(timeout_ms, 10)}


def _offset_reset(key: str, value: object) -> dict[str, object]:
    text = str(value).lower()
    if text not in ("earliest", "latest", "none"):
        raise ConfigError(f"{key}={value} is not one of earliest, latest and none")
    return {"auto.offset.reset": "error" if text == "none" else text}


_ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def _assignors(key: str, value: object) -> dict[str, object]:
    names = [_ASSIGNORS.get(str(word), str(word)) for word in as_list(value)]
    unknown = [name for name in names if name not in _ASSIGNORS.values()]
    if unknown:
        known = ", ".join(sorted(_ASSIGNORS.values()))
        raise ConfigError(f"{key}={unknown[0]} is not known here: choose from {known}")
    eager = [name for name in names if name != "cooperative-sticky"]
    # A member that offers both kinds is served eagerly until all members offer only the new one;
    # librdkafka wants the choice made, and this is the one Kafka makes.
    return {key: ",".join(eager or names)}


def _jaas(_: str, value: object) -> dict[str, object]:
    if KERBEROS_MODULE in str(value):
        return _kerberos(str(value))
    username, password = user_and_password(str(value))
    return {"sasl.username": username, "sasl.password": password}


def _kerberos(text: str) -> dict[str, object]:
    """For a librdkafka that was built with Kerberos; others say that they were not."""
    login = kerberos_login_of(text, service=None, is_service_elsewhere=True)
    names = {"keytab": login.keytab, "principal": login.principal, "service.name": login.service}
    return {f"sasl.kerberos.{name}": value for name, value in names.items() if value}


def _identification(key: str, value: object) -> dict[str, object]:
    return {key: str(value).lower() or "none"}  # Kafka's empty word is librdkafka's none.


def _pem_store(
    names: Sequence[str], *, pkcs12: bool = False
) -> Callable[[str, object], dict[str, object]]:
    def check(key: str, value: object) -> dict[str, object]:
        path = str(value).lower()
        is_pkcs12 = path.endswith((".p12", ".pfx"))
        if path.endswith((".jks", ".keystore", ".truststore")) or (is_pkcs12 and not pkcs12):
            raise ConfigError(
                f"{key}={value} looks like a Java key store: convert it to PEM with "
                "`keytool -exportcert -rfc` and give that file"
            )
        # librdkafka reads PKCS#12 by Kafka's own name, and PEM by others.
        return {key: value} if is_pkcs12 else dict.fromkeys(names, value)

    return check


_CHANGED: dict[str, tuple[tuple[Role, ...], Callable[[str, object], dict[str, object]]]] = {
    "buffer.memory": (("producer",), _buffer_memory),
    "acks": (("producer",), _acks),
    "batch.size": (("producer",), _batch_size),
    "max.request.size": (("producer",), _renamed("message.max.bytes")),
    "compression.gzip.level": (("producer",), _renamed("compression.level")),
    "compression.lz4.level": (("producer",), _renamed("compression.level")),
    "compression.zstd.level": (("producer",), _renamed("compression.level")),
    "request.timeout.ms": (_BOTH, _request_timeout),
    "timeout.ms": (("producer",), _request_timeout),  # Its name before Kafka 0.9.
    "send.buffer.bytes": (_BOTH, _socket_buffer("socket.send.buffer.bytes")),
    "receive.buffer.bytes": (_BOTH, _socket_buffer("socket.receive.buffer.bytes")),
    "fetch.max.wait.ms": (("consumer",), _renamed("fetch.wait.max.ms")),
    "auto.offset.reset": (("consumer",), _offset_reset),
    "partition.assignment.strategy": (("consumer",), _assignors),
    "sasl.jaas.config": (_BOTH, _jaas),
    "ssl.endpoint.identification.algorithm": (_BOTH, _identification),
    "sasl.oauthbearer.client.credentials.client.id": (
        _BOTH,
        _renamed("sasl.oauthbearer.client.id"),
    ),
    "sasl.oauthbearer.client.credentials.client.secret": (
        _BOTH,
        _renamed("sasl.oauthbearer.client.secret"),
    ),
    "ssl.truststore.location": (_BOTH, _pem_store(["ssl.ca.location"])),
    "ssl.truststore.certificates": (_BOTH, _renamed("ssl.ca.pem")),
    "ssl.keystore.location": (
        _BOTH,
        _pem_store(["ssl.certificate.location", "ssl.key.location"], pkcs12=True),
    ),
    "ssl.keystore.password": (_BOTH, _renamed("ssl.keystore.password")),
    "ssl.keystore.certificate.chain": (_BOTH, _renamed("ssl.certificate.pem")),
    "ssl.keystore.key": (_BOTH, _renamed("ssl.key.pem")),
}
