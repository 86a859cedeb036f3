"""The door to librdkafka: make a client of it, and turn its errors and metadata into ours.

Only this package imports confluent_kafka, its binding.
"""

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import confluent_kafka

from penstock.client.connection_log import ConnectionLog
from penstock.client.errors import FatalError, from_librdkafka
from penstock.client.metrics.statistics import Statistics
from penstock.client.settings import (
    ClientSettings,
    Role,
    translate,
    unknown_key,
    unknown_key_error,
)
from penstock.client.values import Node, OffsetAndMetadata, PartitionInfo, TopicPartition
from penstock.client.wire.secrets import resolve_any
from penstock.errors import ConfigError, PenstockError

log = logging.getLogger("penstock.client")

C = TypeVar("C", confluent_kafka.Producer, confluent_kafka.Consumer)

_ERROR = confluent_kafka.KafkaError
_PASSING = frozenset(
    {
        _ERROR._PARTITION_EOF,
        _ERROR._ALL_BROKERS_DOWN,
        _ERROR._TRANSPORT,
        _ERROR._RESOLVE,
        _ERROR._MAX_POLL_EXCEEDED,
        _ERROR._UNKNOWN_TOPIC,
        _ERROR._UNKNOWN_PARTITION,
        _ERROR.UNKNOWN_TOPIC_OR_PART,
    }
)
_FENCING = (_ERROR._FENCED, _ERROR.PRODUCER_FENCED, _ERROR.FENCED_INSTANCE_ID)
_numbers = {"producer": itertools.count(1), "consumer": itertools.count(1)}


def settings_of(
    config: Mapping[str, object] | None, keywords: Mapping[str, object], role: Role
) -> ClientSettings:
    """A configuration, written either way, sorted and completed."""
    given = {**(config or {}), **{name.replace("_", "."): v for name, v in keywords.items()}}
    settings = translate(resolve_any(given), role)
    # Plug-ins are told where a secret is, not what it is.
    settings.given = {key: given[key] for key in settings.given}
    if not settings.librdkafka.get("bootstrap.servers"):
        raise ConfigError("bootstrap.servers is missing: write host:port of a broker")
    servers = settings.librdkafka["bootstrap.servers"]
    if isinstance(servers, list | tuple):
        settings.librdkafka["bootstrap.servers"] = ",".join(str(server) for server in servers)
    settings.librdkafka.setdefault("client.id", f"{role}-{next(_numbers[role])}")
    if settings.without_effect:
        log.debug("Settings without effect here: %s", ", ".join(settings.without_effect))
    return settings


def create(
    kind: Callable[..., C],
    settings: ClientSettings,
    statistics: Statistics,
    role: Role,
    *,
    connections: ConnectionLog,
    has_plugins: bool,
) -> C:
    """A client of librdkafka. Keys it does not know are the plug-ins', if there are any."""
    config = dict(settings.librdkafka)
    config["stats_cb"] = connections.watch(statistics.add)
    config["error_cb"] = _note_error
    while True:
        try:
            return kind(config, logger=connections)
        except confluent_kafka.KafkaException as error:
            text = error.args[0].str()
            key = unknown_key(text)
            if key is None:
                raise ConfigError(text.strip()) from error
            if not has_plugins:
                raise unknown_key_error(key, role) from error
            del config[key]


def translated(error: confluent_kafka.KafkaException) -> PenstockError:
    """The exception of ours for one of librdkafka."""
    return translated_error(error.args[0])


def translated_error(error: confluent_kafka.KafkaError) -> PenstockError:
    """The exception for an error value, as callbacks get it."""
    if error.fatal() and error.code() not in _FENCING:
        return FatalError(error.str())
    return from_librdkafka(error.code(), error.str())


def is_passing(error: confluent_kafka.KafkaError) -> bool:
    """Whether librdkafka goes on by itself, so that a consumer need only log it."""
    return error.code() in _PASSING or error.retriable()


def call(function: Callable[..., Any], *arguments: object, **named: object) -> Any:
    """Call into librdkafka; what it raises comes out as an exception of ours."""
    try:
        return function(*arguments, **named)
    except confluent_kafka.KafkaException as error:
        raise translated(error) from error


def rd_partitions(
    partitions: Iterable[TopicPartition],
) -> list[confluent_kafka.TopicPartition]:
    """Partitions in librdkafka's form."""
    return [confluent_kafka.TopicPartition(one.topic, one.partition) for one in partitions]


def rd_offsets(
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> list[confluent_kafka.TopicPartition]:
    """Offsets to commit in librdkafka's form, which would end an empty note with a null byte."""
    found = []
    for at, one in offsets.items():
        noted: dict[str, Any] = {"metadata": one.metadata} if one.metadata else {}
        if one.leader_epoch is not None:
            noted["leader_epoch"] = one.leader_epoch
        found.append(confluent_kafka.TopicPartition(at.topic, at.partition, one.offset, **noted))
    return found


def our_partitions(
    partitions: Iterable[confluent_kafka.TopicPartition],
) -> list[TopicPartition]:
    """Partitions in our form."""
    return [TopicPartition(one.topic, one.partition) for one in partitions]


def our_offset(one: confluent_kafka.TopicPartition) -> OffsetAndMetadata | None:
    """A committed offset in our form; None where there is none."""
    if one.offset < 0:
        return None
    epoch = one.leader_epoch
    known = None if epoch is None or epoch < 0 else epoch
    return OffsetAndMetadata(one.offset, one.metadata or "", known)


def partitions_of(metadata: Any, topic: str) -> list[PartitionInfo]:
    """The partitions of a topic in librdkafka's metadata, in order."""
    nodes = {b.id: Node(b.id, b.host, b.port) for b in metadata.brokers.values()}

    def named(ids: list[int]) -> tuple[Node, ...]:
        return tuple(nodes.get(node_id) or Node(node_id, "", -1) for node_id in ids)

    found = metadata.topics[topic].partitions.values()
    return [
        PartitionInfo(topic, p.id, nodes.get(p.leader), named(p.replicas), named(p.isrs))
        for p in sorted(found, key=lambda p: p.id)
    ]


def _note_error(error: confluent_kafka.KafkaError) -> None:
    """Errors of no single call: librdkafka goes on trying by itself."""
    log.debug("%s", error.str())  # It has logged the same, with its own level.
