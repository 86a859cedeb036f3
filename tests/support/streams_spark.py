"""Applications of tests on the one Spark session that all tests share."""

import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import confluent_kafka
from pyspark.sql import SparkSession

from penstock.client.operations.topics import NewTopic, create_topics
from penstock.client.wire.raw_cluster import cluster_for
from penstock.streams import KafkaStreams, StreamsTopology


@dataclass
class SharedSpark:
    """The session of all tests, which outlives an application's."""

    spark: SparkSession
    is_alive: bool = True

    def stop(self) -> None:
        self.is_alive = False


def application(
    spark: SparkSession,
    topology: StreamsTopology,
    address: str,
    state: Path,
    name: str,
    modules: tuple[str, ...] = (),
    **settings: Any,
) -> KafkaStreams:
    """An application on the tests' session; its functions travel by value."""
    config: Mapping[str, object] = {
        "application.id": name,
        "bootstrap.servers": address,
        "state.dir": str(state),
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    return KafkaStreams(
        topology,
        config,
        modules=[_module(each) for each in modules],
        start_engine=lambda stop: SharedSpark(spark),
        restarts_max=2,
    )


def _module(name: str) -> ModuleType:
    return sys.modules[name]


def create(address: str, *topics: str, partitions: int = 1) -> None:
    """Topics for a test, which keep records of any time."""
    for_ever = {"retention.ms": "-1"}
    wanted = [NewTopic(name=topic, partitions=partitions, configs=for_ever) for topic in topics]
    with cluster_for({"bootstrap.servers": address}) as cluster:
        create_topics(cluster, wanted, timeout_ms=30_000)


class Feed:
    """Writes records with times of their own, by Kafka's own partitioner."""

    def __init__(self, address: str) -> None:
        self.producer = confluent_kafka.Producer(
            {"bootstrap.servers": address, "partitioner": "murmur2_random", "linger.ms": 5}
        )

    def put(
        self, topic: str, key: str | None, value: str | bytes | None, at_ms: int, **options: Any
    ) -> None:
        data = value.encode() if isinstance(value, str) else value
        self.producer.produce(
            topic, data, None if key is None else key.encode(), timestamp=at_ms, **options
        )

    def flush(self) -> None:
        assert self.producer.flush(60) == 0


def long_of(data: bytes) -> int:
    """A LONG as Kafka writes it."""
    (number,) = struct.unpack(">q", data)
    return int(number)
