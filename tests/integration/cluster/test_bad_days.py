"""What people do to clusters: each mistake gets a sentence, and costs no record."""

import shutil
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from tests.integration.cluster.conftest import Topics
from tests.integration.cluster.writing import Stream, read_all
from tests.support.broker import BrokerProcess
from tests.support.cluster import Cluster
from tests.support.waiting import eventually


def test_a_second_broker_with_the_same_id_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    settings = {
        **cluster.settings,
        "zookeeper.connect": cluster.zookeeper.connect,
        "zookeeper.session.timeout.ms": "1500",
    }
    with BrokerProcess(tmp_path, settings, broker_id=1) as second:
        second.launch()
        assert second.wait(timeout_s=120) == 1
        assert "Another broker is registered with broker.id 1" in second.log_end
    assert {b.node_id for b in cluster.metadata(broker=1).brokers} == {0, 1, 2}


def test_a_directory_of_another_cluster_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, broker_id=7) as alone:
        alone.start()
        alone.stop()
        alone.settings |= {"zookeeper.connect": cluster.zookeeper.connect}
        alone.launch()
        assert alone.wait(timeout_s=120) == 1
        assert "cluster" in alone.log_end.splitlines()[-1]
        assert "penstock: " in alone.log_end


def test_a_zookeeper_that_is_not_there_is_told(tmp_path: Path) -> None:
    settings = {
        "zookeeper.connect": "127.0.0.1:9",
        "zookeeper.connection.timeout.ms": "500",
    }
    with BrokerProcess(tmp_path, settings) as broker:
        broker.launch()
        assert broker.wait(timeout_s=120) == 1
        assert "127.0.0.1:9" in broker.log_end


def test_more_replicas_than_brokers_are_refused(topics: Topics) -> None:
    with pytest.raises(KafkaException, match="INVALID_REPLICATION_FACTOR"):
        topics.create("too-many", replicas=4)


def test_a_broker_that_comes_back_with_an_empty_disk_copies_all_and_loses_nothing(
    cluster: Cluster, topics: Topics
) -> None:
    topic = topics.create("empty-disk", partitions=3)
    with Stream(cluster.bootstrap, topic) as stream:
        stream.until_more()
        emptied = cluster.brokers[cluster.leader(topic)]
        emptied.kill()
        shutil.rmtree(emptied.data)
        emptied.start(timeout_s=120)
        stream.until_more()
        cluster.until_in_sync(topic)
        assert "lossy before" in emptied.log
        # What is written now may be read from any of them, the emptied one included.
        for broker in cluster.brokers:
            if broker is not emptied:
                broker.kill()
                stream.until_more()
                broker.start(timeout_s=120)
                cluster.until_in_sync(topic)
    assert stream.failed == []
    assert set(stream.acked) <= {int(value) for value in read_all(cluster.bootstrap, topic)}


def test_a_fourth_broker_joins_a_running_cluster_and_takes_new_topics(
    cluster: Cluster, topics: Topics
) -> None:
    fourth = cluster.new_broker()
    try:
        fourth.start(timeout_s=120)
        eventually(
            lambda: len(cluster.metadata(broker=0).brokers) == 4, timeout_s=120, what="four brokers"
        )
        topics.create("on-four", partitions=8, replicas=4)
        (found,) = cluster.metadata("on-four", broker=3).topics
        assert {p.leader_id for p in found.partitions} == {0, 1, 2, 3}
    finally:
        fourth.kill()
        cluster.brokers.remove(fourth)  # The other tests are about three.


def highest_id(cluster: Cluster) -> int:
    return max(b.node_id for b in cluster.metadata(broker=0).brokers)


def test_a_broker_without_an_id_gets_one_above_the_reserved_and_keeps_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    settings = {**cluster.settings, "zookeeper.connect": cluster.zookeeper.connect}
    with BrokerProcess(tmp_path, settings, broker_id=-1) as broker:
        ids: set[int] = set()
        for _ in range(2):
            broker.start(timeout_s=120)
            eventually(lambda: highest_id(cluster) > 1000, what="the broker among the others")
            ids.add(highest_id(cluster))
            broker.stop()
        assert len(ids) == 1
        assert f"[KafkaServer id={max(ids)}] started" in broker.log.rpartition("shut down")[0]
