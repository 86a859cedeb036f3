"""A broker that was silent for too long finds itself replaced, and comes in again by the door."""

import signal

import pytest
from tests.integration.cluster.conftest import Topics
from tests.integration.cluster.writing import Stream, read_all
from tests.support.cluster import Cluster
from tests.support.waiting import eventually


@pytest.mark.parametrize("who", ["leader", "controller"])
def test_a_broker_that_hung_is_replaced_and_joins_again_in_the_same_process(
    cluster: Cluster, topics: Topics, who: str
) -> None:
    topic = topics.create(f"hung-{who}", partitions=3)
    with Stream(cluster.bootstrap, topic) as stream:
        stream.until_more()
        number = cluster.leader(topic) if who == "leader" else cluster.controller
        hung = cluster.brokers[number]
        registered, lost = hung.log.count("registered with"), hung.log.count("the session is over")
        hung.send_signal(signal.SIGSTOP)
        try:
            others = [n for n in range(3) if n != number]

            def replaced() -> bool:
                (found,) = cluster.metadata(topic, broker=others[0]).topics
                return all(p.leader_id in others for p in found.partitions)

            eventually(replaced, timeout_s=120, what="other leaders")
            stream.until_more()
        finally:
            hung.send_signal(signal.SIGCONT)
        # It may still tell of the time before it hung, so look at what it does first.
        eventually(
            lambda: hung.log.count("registered with") > registered,
            timeout_s=120,
            what="a new registration",
        )
        cluster.until_in_sync(topic)
        stream.until_more()
    # Once for each session it lost: on a busy machine that may be another one.
    registered = hung.log.count("registered with") - registered
    assert registered <= hung.log.count("the session is over") - lost
    assert stream.failed == []
    found = [int(value) for value in read_all(cluster.bootstrap, topic)]
    assert set(stream.acked) <= set(found)
    assert len(found) == len(set(found))


def test_a_registration_that_somebody_removed_is_made_again(
    cluster: Cluster, topics: Topics
) -> None:
    from kazoo.client import KazooClient

    topic = topics.create("deregistered", partitions=3)
    client = KazooClient(cluster.zookeeper.connect)
    client.start()
    try:
        with Stream(cluster.bootstrap, topic) as stream:
            stream.until_more()
            epoch = client.exists("/brokers/ids/1").czxid
            client.delete("/brokers/ids/1")

            def is_back() -> bool:
                node = client.exists("/brokers/ids/1")
                return node is not None and node.czxid > epoch

            eventually(is_back, timeout_s=120, what="another registration")
            cluster.until_in_sync(topic)
            stream.until_more()
    finally:
        client.stop()
        client.close()
    assert stream.failed == []
    assert set(stream.acked) <= {int(value) for value in read_all(cluster.bootstrap, topic)}
