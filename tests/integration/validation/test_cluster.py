"""Three brokers: the leader of a partition checks, wherever it is, and dead letters find theirs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("authlib")

import confluent_kafka
from tests.integration.validation.world import BY_ID, DECODED, INVALID_RECORD, World
from tests.support.cluster import Cluster
from tests.support.registry import RegistryProcess
from tests.support.waiting import eventually

PARTITIONS = 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, World]]:
    directory: Path = tmp_path_factory.mktemp("cluster")
    cluster = Cluster(directory)
    settings = {"kafkastore.topic.replication.factor": "3"}
    registry = RegistryProcess(directory / "registry", cluster.bootstrap, settings)
    for broker in cluster.brokers:
        broker.settings["confluent.schema.registry.url"] = registry.url
    with cluster, registry:
        registry.start()
        yield cluster, World(cluster.bootstrap, registry)
        cluster.assert_no_tracebacks()


def test_every_leader_refuses_what_fails(cluster: tuple[Cluster, World]) -> None:
    _, world = cluster
    topic = world.create("refusing", DECODED, partitions=PARTITIONS, replicas=3)
    good = world.order(topic, 1)
    codes: dict[tuple[int, bytes], int] = {}
    producer = confluent_kafka.Producer({"bootstrap.servers": world.bootstrap})
    for partition in range(PARTITIONS):
        for value in (good, good[:-1]):

            def note(error: object, _: object, key: tuple[int, bytes] = (partition, value)) -> None:
                codes[key] = 0 if error is None else error.code()  # type: ignore[attr-defined]

            producer.produce(topic, value, partition=partition, on_delivery=note)
            assert producer.flush(90) == 0
    for partition in range(PARTITIONS):
        assert codes[partition, good] == 0
        assert codes[partition, good[:-1]] == INVALID_RECORD


def test_dead_letters_reach_a_topic_that_others_lead(cluster: tuple[Cluster, World]) -> None:
    running, world = cluster
    config = {**BY_ID, "penstock.validation.action": "dlq"}
    # One partition of dead letters for three leaders: two of them have to send theirs.
    world.create("sorting.dlq", {}, replicas=3)
    topic = world.create("sorting", config, partitions=PARTITIONS, replicas=3)
    running.until_in_sync(topic)
    leaders = {running.leader(topic, number) for number in range(PARTITIONS)}
    assert len(leaders) > 1
    good = world.order(topic, 1)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": world.bootstrap, "enable.idempotence": True, "linger.ms": 60_000}
    )
    failed: list[object] = []
    for partition in range(PARTITIONS):
        for value in (good, b"bad %d" % partition, good):
            producer.produce(
                topic,
                value,
                partition=partition,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
    assert producer.flush(90) == 0
    assert failed == []
    letters = world.read("sorting.dlq", PARTITIONS)
    assert {letter.value() for letter in letters} == {b"bad 0", b"bad 1", b"bad 2"}
    assert [message.offset() for message in world.read(topic, 2)] == [0, 2]


def test_followers_take_batches_with_gaps_and_lead_on(cluster: tuple[Cluster, World]) -> None:
    running, world = cluster
    config = {**BY_ID, "penstock.validation.action": "dlq", "min.insync.replicas": "2"}
    world.create("moving.dlq", {}, replicas=3)
    topic = world.create("moving", config, replicas=3)
    running.until_in_sync(topic)
    good = world.order(topic, 1)
    assert world.send(topic, good, b"bad", good, acks=-1).offsets == [0, 1, 2]
    assert world.send(topic, b"bad", acks=-1).offsets == [3]
    leader = running.leader(topic)
    running.brokers[leader].kill()
    try:
        eventually(lambda: running.leader(topic) != leader, timeout_s=120)
        assert [message.offset() for message in world.read(topic, 2)] == [0, 2]
        assert world.send(topic, good, acks=-1, message_timeout_ms=90_000).offsets == [4]
    finally:
        running.brokers[leader].start(timeout_s=120)
