"""The committed records of a topic from the first to the last there is now.

Through raw fetches: a consumer of librdkafka does not tell when it has passed the marker that ends
a partition written in transactions, so one would not know when to stop.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.fetched_records import committed_records
from penstock.client.wire.raw_cluster import cluster_for
from penstock.client.wire.raw_fetch import PartitionFetcher
from penstock.records.record import Record as StoredRecord


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
            after = at
            for header, records in committed_records(fetched):
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
