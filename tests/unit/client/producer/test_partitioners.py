"""Which partition: Kafka's ways by name, round robin in turn, custom ones with their settings."""

from collections import Counter
from typing import Any

import pytest

from penstock.client.producer.partitioners import RoundRobinPartitioner, choose
from penstock.client.values import Node, PartitionInfo
from penstock.errors import ConfigError


class FourPartitions:
    """A cluster whose partition 2 has no leader."""

    def partitions_for_topic(self, topic: str, /) -> list[PartitionInfo]:
        node = Node(0, "h", 1)
        return [PartitionInfo(topic, i, None if i == 2 else node, (), ()) for i in range(4)]

    def available_partitions_for_topic(self, topic: str, /) -> list[PartitionInfo]:
        return [p for p in self.partitions_for_topic(topic) if p.leader is not None]


class NoLeaders(FourPartitions):
    def available_partitions_for_topic(self, topic: str, /) -> list[PartitionInfo]:
        return []


def chosen(partitioner: Any, cluster: Any, count: int, topic: str = "t") -> list[int]:
    return [partitioner.partition(topic, None, None, i, None, cluster) for i in range(count)]


def test_round_robin_goes_around_the_partitions_that_have_a_leader() -> None:
    found = chosen(RoundRobinPartitioner(), FourPartitions(), 9)
    assert found == [0, 1, 3] * 3


def test_round_robin_counts_each_topic_by_itself() -> None:
    partitioner = RoundRobinPartitioner()
    assert chosen(partitioner, FourPartitions(), 1, "a") == [0]
    assert chosen(partitioner, FourPartitions(), 1, "b") == [0]


def test_without_any_leader_all_partitions_take_turns() -> None:
    assert Counter(chosen(RoundRobinPartitioner(), NoLeaders(), 8)) == dict.fromkeys(range(4), 2)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (None, {"partitioner": "murmur2_random"}),
        (
            "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
            {"partitioner": "murmur2_random"},
        ),
        (
            "org.apache.kafka.clients.producer.UniformStickyPartitioner",
            {"partitioner": "random"},
        ),
        ("random", {"partitioner": "murmur2_random", "sticky.partitioning.linger.ms": 0}),
    ],
)
def test_kafkas_own_ways_are_librdkafkas(name: str | None, settings: dict[str, object]) -> None:
    assert choose(name, ignore_keys=False, settings={}) == (None, settings)


def test_keys_may_be_ignored() -> None:
    _, settings = choose(None, ignore_keys=True, settings={})
    assert settings == {"partitioner": "random"}


@pytest.mark.parametrize(
    "name", ["round-robin", "org.apache.kafka.clients.producer.RoundRobinPartitioner"]
)
def test_round_robin_has_two_names(name: str) -> None:
    made, _ = choose(name, ignore_keys=False, settings={})
    assert isinstance(made, RoundRobinPartitioner)


class ImportantStocks:
    """The tutorials' example: important keys have the last partition to themselves."""

    def configure(self, settings: Any) -> None:
        self.important = str(settings["importantStocks"]).split(",")

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Any,
        /,
    ) -> int:
        count = len(cluster.partitions_for_topic(topic))
        return count - 1 if key in self.important else hash(key) % (count - 1)


def test_a_custom_partitioner_gets_settings_of_its_own() -> None:
    made, settings = choose(
        ImportantStocks, ignore_keys=False, settings={"importantStocks": "IBM,UBER"}
    )
    assert settings == {}
    assert made is not None
    assert made.partition("t", "IBM", b"", None, None, FourPartitions()) == 3
    assert made.partition("t", "AAPL", b"", None, None, FourPartitions()) < 3


def test_what_cannot_partition_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no method partition"):
        choose(object(), ignore_keys=False, settings={})
