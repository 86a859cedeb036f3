"""The door to librdkafka: make a client of it, and turn its errors and metadata into ours.

Only this package imports confluent_kafka, its binding.
"""

import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import confluent_kafka

from penstock.client.errors import FatalError, from_librdkafka
from penstock.client.settings import (
    ClientSettings,
    Role,
    translate,
    unknown_key,
    unknown_key_error,
)
from penstock.client.statistics import Statistics
from penstock.client.values import Node, PartitionInfo
from penstock.errors import ConfigError, PenstockError

log = logging.getLogger("penstock.client")

C = TypeVar("C", confluent_kafka.Producer, confluent_kafka.Consumer)

_numbers = {"producer": itertools.count(1), "consumer": itertools.count(1)}


def settings_of(
    config: Mapping[str, object] | None, keywords: Mapping[str, object], role: Role
) -> ClientSettings:
    """A configuration, written either way, sorted and completed."""
    given = {**(config or {}), **{name.replace("_", "."): v for name, v in keywords.items()}}
    settings = translate(given, role)
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
    has_plugins: bool,
) -> C:
    """A client of librdkafka. Keys it does not know are the plug-ins', if there are any."""
    config = dict(settings.librdkafka)
    config["stats_cb"] = statistics.add
    config["error_cb"] = _note_error
    while True:
        try:
            return kind(config, logger=log)
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
    if error.fatal():
        return FatalError(error.str())
    return from_librdkafka(error.code(), error.str())


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
