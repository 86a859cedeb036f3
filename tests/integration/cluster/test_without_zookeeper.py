"""ZooKeeper goes away for a while: who leads what stays as it is, and records flow on."""

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from tests.integration.cluster.conftest import Topics
from tests.integration.cluster.writing import QUIET, Stream, read_all
from tests.support.cluster import Cluster


@pytest.mark.parametrize("end", ["kill", "pause"])
def test_reads_and_writes_go_on_without_zookeeper(
    cluster: Cluster, topics: Topics, end: str
) -> None:
    topic = topics.create(f"no-zookeeper-{end}", partitions=3)
    leaders = [cluster.leader(topic, number) for number in range(3)]
    with Stream(cluster.bootstrap, topic) as stream:
        stream.until_more()
        getattr(cluster.zookeeper, end)()
        stream.until_more(300)
        found = {int(value) for value in read_all(cluster.bootstrap, topic)}
        assert len(found) > 200
        if end == "kill":
            cluster.zookeeper.start()
        else:
            cluster.zookeeper.resume()
        stream.until_more()
        # And what needs ZooKeeper works again.
        topics.create_eventually(f"after-{end}")
    assert stream.failed == []
    assert [cluster.leader(topic, number) for number in range(3)] == leaders
    assert set(stream.acked) <= {int(value) for value in read_all(cluster.bootstrap, topic)}


def test_what_an_administrator_asks_waits_for_zookeeper(cluster: Cluster, topics: Topics) -> None:
    """By way of the controller and of a broker that passes it on; each is done when it is back."""
    topics.create("grows-later", partitions=1)
    controller = cluster.controller
    others = [number for number in range(3) if number != controller]
    cluster.zookeeper.kill()
    admins = {
        number: AdminClient({"bootstrap.servers": cluster.brokers[number].address, **QUIET})
        for number in (controller, others[0])
    }
    asked = [
        made
        for number, admin in admins.items()
        for made in admin.create_topics(
            [NewTopic(f"asked-{number}", 1, 3)], operation_timeout=240, request_timeout=240
        ).values()
    ]
    grown = admins[others[0]].create_partitions(
        [NewPartitions("grows-later", 3)], operation_timeout=240, request_timeout=240
    )
    hasty = AdminClient({"bootstrap.servers": cluster.brokers[others[1]].address, **QUIET})
    soon = hasty.create_topics(
        [NewTopic("too-late", 1, 3)], operation_timeout=1, request_timeout=120
    )
    with pytest.raises(KafkaException) as refused:
        soon["too-late"].result()
    assert refused.value.args[0].code() == KafkaError.REQUEST_TIMED_OUT
    assert not any(made.done() for made in asked)
    cluster.zookeeper.start()
    for made in [*asked, *grown.values()]:
        made.result()
    for number in admins:
        cluster.until_in_sync(f"asked-{number}")
    assert len(cluster.metadata("grows-later").topics[0].partitions) == 3
