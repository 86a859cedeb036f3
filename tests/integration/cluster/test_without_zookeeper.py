"""ZooKeeper goes away for a while: who leads what stays as it is, and records flow on."""

import pytest
from tests.integration.cluster.conftest import Topics
from tests.integration.cluster.writing import Stream, read_all
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
