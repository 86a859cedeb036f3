"""A partition read as raw record batches, fetch after fetch, with the next one already asked for.

For Spark's workers, which decode many records at once; programs use `consumer`. Follows the leader
when it moves, waits out elections, and says what is lost with topic, partition and offset. What is
in the batches is for the caller.
"""

import time
from dataclasses import dataclass

from penstock.client.errors import BrokerUnreachableError, ClientError, KafkaTimeoutError
from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.connection import BrokerConnection, Posted
from penstock.errors import (
    ErrorCode,
    LeaderNotAvailable,
    PenstockError,
    ProtocolError,
    RetriableError,
    UnsupportedVersion,
    error_for,
)
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

FETCH_BYTES = 8 * 1024 * 1024
NO_TOPIC_ID = bytes(16)
_TOPIC_IDS_FROM = 13  # The first version of Fetch that names topics by id alone.
_GONE_AFTER_S = 3.0
_ANSWER_EXTRA_BYTES = 64 * 1024  # Room for what an answer has besides records.


class OffsetGone(PenstockError):
    """The partition does not reach to where one wants to read, or no longer begins there."""

    def __init__(
        self, partition: TopicPartition, offset: int, start: int | None, end: int | None
    ) -> None:
        self.partition = partition
        self.offset = offset
        self.start = start  # None: the broker did not say.
        self.end = end
        there = f"[{start}, {end})" if start is not None else "unknown"
        super().__init__(
            f"offset {offset} of topic {partition.topic!r}, partition {partition.partition} is "
            f"out of range: the partition's offsets are {there}"
        )


class TopicGone(PenstockError):
    """The topic was deleted, or deleted and created anew under its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What one fetch brought."""

    offset: int  # The one asked for; the first batch may begin before it.
    records: memoryview
    aborted: tuple[tuple[int, int], ...]  # Producer id and first offset.
    log_start: int
    high_watermark: int
    last_stable: int


class PartitionFetcher:
    """Fetches from one partition, from the offset where the last fetch ended."""

    def __init__(
        self,
        cluster: ClusterClient,
        partition: TopicPartition,
        *,
        topic_id: bytes = NO_TOPIC_ID,
        read_committed: bool = False,
        fetch_bytes: int = FETCH_BYTES,
        max_wait_ms: int = 500,
        timeout_s: float = 120.0,
    ) -> None:
        self.cluster = cluster
        self.partition = partition
        self.topic_id = topic_id
        self.read_committed = read_committed
        self.fetch_bytes = fetch_bytes
        self.max_wait_ms = max_wait_ms
        self.timeout_s = timeout_s
        self._leader: BrokerConnection | None = None
        self._under_way: tuple[int, Posted] | None = None

    def fetch(self, offset: int) -> Fetched:
        """Batches from the one that holds the offset; maybe none, where the log ends.

        Raises OffsetGone and TopicGone; anything that may pass is tried again within the timeout.
        """
        started_s = time.monotonic()
        while True:
            try:
                return self._attempt(offset)
            except (RetriableError, BrokerUnreachableError, KafkaTimeoutError, TopicGone) as error:
                self.close()
                # A broker that just started may not have heard of the topic yet.
                limit_s = _GONE_AFTER_S if isinstance(error, TopicGone) else self.timeout_s
                if time.monotonic() - started_s > limit_s:
                    raise self._gave_up(offset, error) from error
                time.sleep(self.cluster.retry_backoff_s)

    def ask_ahead(self, offset: int) -> None:
        """Send the request for the next fetch, to be under way while this one is decoded."""
        if self._leader is None or self._under_way is not None:
            return
        try:
            self._under_way = (offset, self._post(self._leader, offset))
        except (BrokerUnreachableError, KafkaTimeoutError):
            self.close()  # The fetch itself will find out whether it passes.

    def close(self) -> None:
        """Leave the leader; a connection on which an answer may still come is of no more use."""
        if self._leader is not None and (self._under_way is not None or not self._leader.is_open):
            self.cluster.drop(self._leader)
        self._leader = self._under_way = None

    def _attempt(self, offset: int) -> Fetched:
        if self._under_way is not None and self._under_way[0] != offset:
            self.close()
        leader = self._leader = self._leader or self._find_leader()
        self._under_way = self._under_way or (offset, self._post(leader, offset))
        answer = self._take(leader, self._under_way[1])
        self._under_way = None
        if answer.error_code:
            raise self._error(answer, offset)
        return Fetched(
            offset=offset,
            records=_view(answer.records),
            aborted=tuple(
                (entry.producer_id, entry.first_offset)
                for entry in answer.aborted_transactions or ()
            ),
            log_start=answer.log_start_offset,
            high_watermark=answer.high_watermark,
            last_stable=answer.last_stable_offset,
        )

    def _find_leader(self) -> BrokerConnection:
        name, index = self.partition
        (topic,) = self.cluster.metadata([name]).topics
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise TopicGone(f"topic {name!r} does not exist any more")
        if topic.error_code:
            raise error_for(topic.error_code, f"topic {name!r}")
        if NO_TOPIC_ID not in (self.topic_id, topic.topic_id) and topic.topic_id != self.topic_id:
            raise TopicGone(f"topic {name!r} was deleted and created anew")
        leaders = {part.partition_index: part.leader_id for part in topic.partitions}
        if index not in leaders:
            raise TopicGone(f"topic {name!r} has no partition {index} any more")
        if leaders[index] < 0:
            raise LeaderNotAvailable(f"partition {self.partition} has no leader now")
        return self.cluster.node_connection(leaders[index])

    def _post(self, leader: BrokerConnection, offset: int) -> Posted:
        part = FetchPartition(
            partition=self.partition.partition,
            fetch_offset=offset,
            partition_max_bytes=self.fetch_bytes,
        )
        topic = FetchTopic(topic=self.partition.topic, topic_id=self.topic_id, partitions=[part])
        request = FetchRequest(
            max_wait_ms=self.max_wait_ms,
            min_bytes=1,
            max_bytes=self.fetch_bytes,
            isolation_level=int(self.read_committed),
            topics=[topic],
        )
        return leader.post(request, self._version(leader))

    def _version(self, leader: BrokerConnection) -> int:
        """The newest both speak; by name where the topic's id is not known."""
        shared = leader.versions(ApiKey.FETCH)
        by_name = [version for version in shared if version < _TOPIC_IDS_FROM]
        if self.topic_id == NO_TOPIC_ID and by_name:
            return by_name[-1]
        if not shared:
            raise UnsupportedVersion(f"The broker {leader.address} does not serve Fetch requests.")
        return shared[-1]

    def _take(self, leader: BrokerConnection, posted: Posted) -> PartitionData:
        room = self.fetch_bytes + _ANSWER_EXTRA_BYTES
        timeout_s = leader.timeout_s + self.max_wait_ms / 1000
        answer = leader.take(posted, timeout_s=timeout_s, bytes_expected=room)
        assert isinstance(answer, FetchResponse)
        if answer.error_code:
            raise error_for(answer.error_code, f"fetching {self.partition}")
        for topic in answer.responses:
            for part in topic.partitions:
                return part
        raise ClientError(f"{leader.address} answered a fetch of {self.partition} with nothing.")

    def _error(self, answer: PartitionData, offset: int) -> PenstockError:
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start, end = self.bounds()
            return OffsetGone(self.partition, offset, start, end)
        return error_for(
            answer.error_code, f"fetching {self.partition} at offset {offset}: {answer.error_code}"
        )

    def bounds(self) -> tuple[int, int]:
        """The first offset of the partition now, and the one after its last."""
        edges = []
        for edge in (OffsetSpec.EARLIEST, OffsetSpec.LATEST):
            found = list_offsets(self.cluster, {self.partition: edge}, timeout_ms=30_000)[
                self.partition
            ]
            if isinstance(found, ProtocolError):
                raise found
            edges.append(found.offset if found else 0)
        return edges[0], edges[1]

    def _gave_up(self, offset: int, error: PenstockError) -> PenstockError:
        if isinstance(error, TopicGone):
            return error
        return ClientError(
            f"offset {offset} of topic {self.partition.topic!r}, partition "
            f"{self.partition.partition} could not be fetched within {self.timeout_s:g} s: {error}"
        )


def _view(records: object) -> memoryview:
    return records if isinstance(records, memoryview) else memoryview(b"")
