"""The proxy on a cluster of three: replicas, and producing while a leader dies."""

from pathlib import Path

import httpx
from tests.integration.rest.v3.talk import OpenRequest, receipts, record
from tests.support.cluster import Cluster
from tests.support.rest import RestProcess
from tests.support.waiting import eventually


def test_a_stream_of_records_outlives_the_leader_of_its_partition(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster") as brokers,
        RestProcess(tmp_path / "rest", brokers.bootstrap) as proxy,
    ):
        proxy.start()
        (found,) = httpx.get(f"{proxy.url}/v3/clusters", timeout=120).json()["data"]
        with httpx.Client(base_url=found["metadata"]["self"], timeout=120) as cluster:
            _check(brokers, cluster)
        assert proxy.stop() == 0
        assert proxy.tracebacks() == {}


def _check(brokers: Cluster, cluster: httpx.Client) -> None:
    body = {
        "topic_name": "t",
        "partitions_count": 1,
        "replication_factor": 3,
        "configs": [{"name": "min.insync.replicas", "value": "2"}],
    }
    assert cluster.post("/topics", json=body).status_code == 201
    brokers.until_in_sync("t")
    replicas = cluster.get("/topics/t/partitions/0/replicas").json()["data"]
    assert {one["broker_id"] for one in replicas} == {0, 1, 2}
    assert all(one["is_in_sync"] for one in replicas)
    (leader,) = (one["broker_id"] for one in replicas if one["is_leader"])
    with OpenRequest(cluster, "/topics/t/records") as request:
        request.socket.settimeout(300)
        request.send(record(0))
        request.head()
        offsets = [one["offset"] for one in receipts(request.chunk())]
        brokers.brokers[leader].kill()
        for number in range(1, 50):
            request.send(record(number))
        request.end()
        told = receipts(request.rest())
    assert [one["error_code"] for one in told] == [200] * 49
    offsets += [one["offset"] for one in told]
    assert offsets == list(range(50))
    eventually(lambda: _leader(cluster) != leader)
    page = cluster.get("/topics/t/partitions/0/records").json()
    assert [one["value"]["data"] for one in page["data"]] == list(range(50))
    eventually(lambda: leader not in _brokers(cluster))


def _brokers(cluster: httpx.Client) -> set[int]:
    return {one["broker_id"] for one in cluster.get("/brokers").json()["data"]}


def _leader(cluster: httpx.Client) -> int:
    replicas = cluster.get("/topics/t/partitions/0/replicas").json()["data"]
    return next((int(one["broker_id"]) for one in replicas if one["is_leader"]), -1)
