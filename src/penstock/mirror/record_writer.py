"""Records of the mirror's own topics, stored plainly: each says again what its key stands for."""

import time
from collections.abc import Sequence

from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_produce import OutgoingBatch, ProduceSettings, RawProducer
from penstock.mirror.syncs import KeyValue
from penstock.records.batch import build_batch
from penstock.records.record import Record
from penstock.records.topic_partition import TopicPartition

_BATCH_RECORDS = 1_000


class InternalTopicWriter:
    """Writes to the first partition of topics of one cluster."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._producer = RawProducer(cluster, ProduceSettings())

    def write(self, topic: str, records: Sequence[KeyValue]) -> None:
        """Store the records in this order; returns when all are stored."""
        for first in range(0, len(records), _BATCH_RECORDS):
            some = records[first : first + _BATCH_RECORDS]
            self._producer.submit([OutgoingBatch(TopicPartition(topic, 0), _batch(some))])
        self._producer.flush()

    def close(self) -> None:
        """End the sending thread."""
        self._producer.close()


def _batch(records: Sequence[KeyValue]) -> bytearray:
    now_ms = time.time_ns() // 1_000_000
    return build_batch(Record(at, now_ms, one.key, one.value, ()) for at, one in enumerate(records))
