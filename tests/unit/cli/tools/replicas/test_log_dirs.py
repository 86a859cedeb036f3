"""kafka-log-dirs: one line of JSON, as Kafka's."""

from penstock.cli.tools.replicas.log_dirs import as_json
from penstock.client.operations.brokers import LogDirDescription, ReplicaSize
from penstock.client.values import TopicPartition
from penstock.errors import KafkaStorage


def test_the_document_is_kafkas() -> None:
    replicas = tuple(
        ReplicaSize(
            partition=TopicPartition(topic, 0), size_bytes=72, offset_lag=0, is_future=False
        )
        for topic in ("my-topic", "other")
    )
    good = LogDirDescription(
        path="/data", error=None, replicas=replicas, total_bytes=None, usable_bytes=None
    )
    bad = LogDirDescription(
        path="/bad", error=KafkaStorage(), replicas=(), total_bytes=None, usable_bytes=None
    )
    assert as_json({1: [good, bad]}, ["my-topic"]) == (
        '{"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"my-topic-0","size":72,'
        '"offsetLag":0,"isFuture":false}],"error":null,"logDir":"/data"},{"partitions":[],'
        '"error":"KafkaStorage","logDir":"/bad"}]}],"version":1}'
    )
