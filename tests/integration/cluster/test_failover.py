"""Brokers die by kill -9 while clients write: nothing that was acknowledged is lost."""

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer
from tests.integration.cluster.conftest import Topics
from tests.integration.cluster.writing import OVERALL_S, QUIET, Stream, read_all
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

Write = Callable[[str, str, list[bytes]], None]


def _confluent(bootstrap: str, topic: str, values: list[bytes]) -> None:
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **QUIET})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(OVERALL_S) == 0
    assert failed == []


def _kafka_python(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap.split(","), acks="all", retries=100)
    for future in [producer.send(topic, value) for value in values]:
        future.get(OVERALL_S)
    producer.close()


def _aiokafka(bootstrap: str, topic: str, values: list[bytes]) -> None:
    async def write() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer:
            for sent in [await producer.send(topic, value) for value in values]:
                await asyncio.wait_for(sent, OVERALL_S)

    asyncio.run(write())


@pytest.mark.parametrize("write", [_confluent, _kafka_python, _aiokafka])
def test_a_client_writes_before_and_after_its_leader_was_killed(
    cluster: Cluster, topics: Topics, write: Write
) -> None:
    topic = topics.create(f"failover-{write.__name__.strip('_')}")
    before = [b"before-%d" % number for number in range(50)]
    after = [b"after-%d" % number for number in range(50)]
    write(cluster.bootstrap, topic, before)
    cluster.brokers[cluster.leader(topic)].kill()
    write(cluster.bootstrap, topic, after)
    assert set(read_all(cluster.bootstrap, topic)) == {*before, *after}


def test_nothing_acknowledged_is_lost_or_doubled_when_leaders_die_one_after_the_other(
    cluster: Cluster, topics: Topics
) -> None:
    topic = topics.create("one-after-the-other", partitions=3)
    with Stream(cluster.bootstrap, topic) as stream:
        for _ in range(3):
            stream.until_more()
            victim = cluster.brokers[cluster.leader(topic)]
            victim.kill()
            stream.until_more()
            victim.start(timeout_s=120)
            cluster.until_in_sync(topic)
    assert stream.failed == []
    found = [int(value) for value in read_all(cluster.bootstrap, topic)]
    assert set(stream.acked) <= set(found)
    assert len(found) == len(set(found))


def test_writes_and_topics_go_on_when_the_controller_dies(cluster: Cluster, topics: Topics) -> None:
    topic = topics.create("without-controller", partitions=3)
    with Stream(cluster.bootstrap, topic) as stream:
        stream.until_more()
        before = cluster.controller
        cluster.brokers[before].kill()
        stream.until_more()
        # The partitions of the others take writes before there is another controller.
        eventually(lambda: cluster.controller != before, what="another controller")
        topics.create("made-by-the-next", replicas=2)
    assert stream.failed == []
    assert set(stream.acked) <= {int(v) for v in read_all(cluster.bootstrap, topic)}


def test_all_brokers_killed_at_once_come_back_with_all_that_was_acknowledged(
    cluster: Cluster, topics: Topics
) -> None:
    topic = topics.create("all-at-once", partitions=3)
    with Stream(cluster.bootstrap, topic) as stream:
        stream.until_more()
        for broker in cluster.brokers:
            broker.kill()
        for broker in cluster.brokers:
            broker.launch()
        for broker in cluster.brokers:
            broker.wait_until_ready(timeout_s=120)
        stream.until_more()
    assert stream.failed == []
    cluster.until_in_sync(topic)
    found = [int(value) for value in read_all(cluster.bootstrap, topic)]
    assert set(stream.acked) <= set(found)
    assert len(found) == len(set(found))


def test_a_rolling_restart_costs_no_write(cluster: Cluster, topics: Topics) -> None:
    topic = topics.create("rolling", partitions=3)
    with Stream(cluster.bootstrap, topic) as stream:
        for broker in cluster.brokers:
            stream.until_more()
            assert broker.stop(timeout_s=120) == 0
            stream.until_more()
            broker.start(timeout_s=120)
            cluster.until_in_sync(topic)
    assert stream.failed == []
    found = [int(value) for value in read_all(cluster.bootstrap, topic)]
    assert set(stream.acked) <= set(found)
    assert len(found) == len(set(found))


def test_a_stopped_broker_leads_nothing_while_others_can(cluster: Cluster, topics: Topics) -> None:
    topic = topics.create("handed-over", partitions=6)
    cluster.brokers[1].stop()

    def is_handed_over() -> bool:  # Whom we ask is told of it soon after.
        (found,) = cluster.metadata(topic).topics
        return all(p.leader_id in (0, 2) and 1 not in p.isr_nodes for p in found.partitions)

    eventually(is_handed_over)
    assert "shut down completed" in cluster.brokers[1].log_end
    assert "without a controlled shutdown" not in cluster.brokers[1].log_end


def test_a_cluster_that_was_stopped_in_good_order_starts_with_all_it_had(
    cluster: Cluster, topics: Topics
) -> None:
    topic = topics.create("good-night", partitions=3)
    with Stream(cluster.bootstrap, topic) as stream:
        stream.until_more()
    for broker in cluster.brokers:
        assert broker.stop(timeout_s=120) == 0
    for broker in cluster.brokers:
        broker.launch()
    for broker in cluster.brokers:
        broker.wait_until_ready(timeout_s=120)
        assert "clean before" in broker.log.rpartition("registered with epoch")[2]
    cluster.until_in_sync(topic)
    assert stream.failed == []
    assert sorted(int(v) for v in read_all(cluster.bootstrap, topic)) == sorted(stream.acked)
