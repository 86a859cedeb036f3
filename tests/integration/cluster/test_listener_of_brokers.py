"""Brokers with a listener of their own: they meet there, and no client can pass for one."""

from pathlib import Path

from confluent_kafka import Producer
from tests.integration.cluster.writing import QUIET
from tests.support.broker import BrokerProcess
from tests.support.cluster import Cluster
from tests.support.processes import HOST, free_port
from tests.support.wire import RawConnection, frame

from penstock.client.wire.connection import BrokerConnection
from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.headers import encode_request_header
from penstock.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from penstock.protocol.messages.image_fetch import ImageFetchRequest


def test_replicas_are_copied_between_brokers_and_not_for_whoever_says_so(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, brokers=2)
    inside = [_set_apart(broker) for broker in cluster.brokers]
    with cluster:
        topic_id = _create(cluster, "t")
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", **QUIET})
        producer.produce("t", b"v", partition=0)
        assert producer.flush(60) == 0  # Both have it: they fetch on their own listener.
        leader = cluster.leader("t")
        assert _fetch_as_broker(cluster.brokers[leader].port, topic_id, 1 - leader) == [
            ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ]
        pull = ImageFetchRequest(broker_id=5, broker_epoch=1, controller_epoch=-1, seq=-1)
        sent = frame(encode_request_header(ApiKey.IMAGE_FETCH, 0, 7, "raw") + pull.encode(0))
        with RawConnection(cluster.brokers[0].port) as connection:
            connection.send(sent)
            assert connection.is_closed_by_peer()
        with RawConnection(inside[0]) as connection:
            connection.send(sent)
            assert connection.read_frame()


def _set_apart(broker: BrokerProcess) -> int:
    """A second listener for other brokers; its port."""
    port = free_port()
    client = f"CLIENTS://{broker.address}"
    broker.settings |= {
        "listeners": f"{client},BROKERS://{HOST}:{port}",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
    }
    return port


def _create(cluster: Cluster, name: str) -> bytes:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=2)
    with BrokerConnection(HOST, cluster.brokers[0].port, timeout_s=60) as connection:
        made = connection.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
    assert made.topics[0].error_code == ErrorCode.NONE, made.topics[0].error_message
    return made.topics[0].topic_id


def _fetch_as_broker(port: int, topic_id: bytes, replica_id: int) -> list[int]:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    asked = FetchRequest(
        replica_state=ReplicaState(replica_id=replica_id),
        topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
    )
    with BrokerConnection(HOST, port, timeout_s=60) as connection:
        answer = connection.ask(asked, FetchResponse)
    return [found.error_code for topic in answer.responses for found in topic.partitions]
