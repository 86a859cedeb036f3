"""The committed records of a topic from the first to the last there is now.

Through raw fetches: a consumer of librdkafka does not tell when it has passed the marker that ends
a partition written in transactions, so one would not know when to stop.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import cluster_for
from penstock.client.wire.raw_fetch import Fetched, PartitionFetcher
from penstock.records.batch import LOG_OVERHEAD, BatchHeader, check_batch, read_header, read_records
from penstock.records.batch import Record as StoredRecord
from penstock.records.control import ControlType, read_marker


class Stored(NamedTuple):
    """A record and where it is."""

    topic: str
    partition: int
    record: StoredRecord
    since: int  # The first offset behind the record before; between them there are only markers.


def read_topic(settings: Mapping[str, object], topic: str) -> Iterator[Stored]:
    """All records that are there now, partition by partition."""
    texts = {key: str(value) for key, value in settings.items()}
    with cluster_for({"client.id": "penstock-tools", **texts}) as cluster:
        (found,) = cluster.metadata([topic]).topics
        for number in sorted(part.partition_index for part in found.partitions):
            yield from _partition(cluster, TopicPartition(topic, number))


def _partition(cluster: ClusterClient, place: TopicPartition) -> Iterator[Stored]:
    fetcher = PartitionFetcher(cluster, place, read_committed=True, max_wait_ms=100)
    at, end = fetcher.bounds()
    since = at
    try:
        while at < end:
            fetched = fetcher.fetch(at)
            end = min(end, fetched.last_stable)  # What is not decided yet comes next time.
            aborted = sorted(fetched.aborted, key=lambda one: one[1])
            after = at
            for header, records in _data_batches(fetched, aborted):
                after = max(after, header.next_offset)
                for record in records:
                    if at <= record.offset < end:
                        yield Stored(place.topic, place.partition, record, since)
                        since = record.offset + 1
            if after == at:
                return  # Nothing more is to be had.
            at = after
    finally:
        fetcher.close()


def _data_batches(
    fetched: Fetched, aborted: list[tuple[int, int]]
) -> Iterator[tuple[BatchHeader, list[StoredRecord]]]:
    """Every whole batch; without records where it is a marker or was aborted."""
    void: set[int] = set()  # Producers whose transaction here ends with an abort.
    for header, batch in _whole_batches(fetched.records):
        while aborted and aborted[0][1] <= header.base_offset:
            void.add(aborted.pop(0)[0])
        if header.is_control:
            markers = (read_marker(record) for record in read_records(batch))
            if any(one is not None and one.type is ControlType.ABORT for one in markers):
                void.discard(header.producer_id)
            yield header, []
        elif header.is_transactional and header.producer_id in void:
            yield header, []
        else:
            yield header, list(read_records(batch))


def _whole_batches(data: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """A fetch may end inside a batch; that one comes again."""
    at = 0
    while at + LOG_OVERHEAD <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big") + LOG_OVERHEAD
        if at + size > len(data):
            return
        check_batch(data, at)
        yield read_header(data, at), data[at : at + size]
        at += size
