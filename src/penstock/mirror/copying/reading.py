"""Many partitions of the source, fetched together: one request to each of their leaders.

An idle partition costs nothing but its line in the request. A leader that moves is looked for
again; what is lost, because the log no longer reaches back to where reading was to go on, or was
made anew, is told by `Displaced` and never passed over.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.client.errors import BrokerUnreachableError, KafkaTimeoutError
from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.connection import BrokerConnection, Posted
from penstock.errors import (
    ErrorCode,
    ProtocolError,
    RetriableError,
    UnknownTopicOrPartition,
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
from penstock.records.topic_partition import TopicPartition

_BY_NAME_MAX = 12  # The last version of Fetch with names of topics.
_ANSWER_EXTRA_BYTES = 256 * 1024  # Room for what an answer has besides records.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """How to fetch, in Kafka's terms."""

    read_committed: bool = True
    max_bytes: int = 16 * 1024 * 1024
    partition_bytes: int = 4 * 1024 * 1024
    max_wait_ms: int = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBatches:
    """What one fetch brought of a partition."""

    at: TopicPartition
    records: memoryview
    aborted: tuple[tuple[int, int], ...]
    log_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Displaced:
    """A partition that has nothing at the place to read from: its offsets are others now."""

    at: TopicPartition
    start: int
    end: int


class SourceReader:
    """Fetches from partitions, each from its place in `positions`, which the caller moves on."""

    def __init__(
        self,
        cluster: ClusterClient,
        positions: dict[TopicPartition, int],
        settings: ReadSettings,
    ) -> None:
        self._cluster = cluster
        self.positions = positions
        self._settings = settings
        self._leaders: dict[TopicPartition, int] = {}
        self._turn = 0

    def poll(self) -> list[SourceBatches | Displaced]:
        """What there is now; nothing where nothing came within the wait.

        Raises what will not pass; whatever may pass is seen again by the next poll.
        """
        try:
            posted = self._post_all()
        except (RetriableError, BrokerUnreachableError, KafkaTimeoutError) as error:
            if isinstance(error, UnknownTopicOrPartition):
                raise
            self._leaders.clear()
            return []
        # All answers are taken before anything else is asked on the same connections.
        parts = [part for leader, one in posted for part in self._take(leader, one)]
        answers = [self._answered(at, part) for at, part in parts]
        return [one for one in answers if one is not None]

    def bounds(self, at: TopicPartition) -> tuple[int, int]:
        """The first offset of a partition, and the one behind its last."""
        return bounds_of(self._cluster, [at])[at]

    def _post_all(self) -> list[tuple[BrokerConnection, Posted]]:
        wanted = self._in_turn()
        missing = [at for at in wanted if at not in self._leaders]
        if missing:
            self._leaders.update(self._cluster.leaders(missing))
        by_leader: dict[int, list[TopicPartition]] = {}
        for at in wanted:
            by_leader.setdefault(self._leaders[at], []).append(at)
        posted = []
        for node, partitions in by_leader.items():
            leader = self._cluster.node_connection(node)
            posted.append((leader, leader.post(self._request(partitions), _version(leader))))
        return posted

    def _in_turn(self) -> list[TopicPartition]:
        """Another one first each time: an answer that is full has nothing of the last."""
        every = list(self.positions)
        if every:
            self._turn = (self._turn + 1) % len(every)
        return every[self._turn :] + every[: self._turn]

    def _request(self, partitions: list[TopicPartition]) -> FetchRequest:
        settings = self._settings
        topics: dict[str, list[FetchPartition]] = {}
        for at in partitions:
            part = FetchPartition(
                partition=at.partition,
                fetch_offset=self.positions[at],
                partition_max_bytes=settings.partition_bytes,
            )
            topics.setdefault(at.topic, []).append(part)
        return FetchRequest(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=1,
            max_bytes=settings.max_bytes,
            isolation_level=int(settings.read_committed),
            topics=[FetchTopic(topic=name, partitions=its) for name, its in topics.items()],
        )

    def _take(
        self, leader: BrokerConnection, posted: Posted
    ) -> list[tuple[TopicPartition, PartitionData]]:
        timeout_s = leader.timeout_s + self._settings.max_wait_ms / 1000
        room = self._settings.max_bytes + _ANSWER_EXTRA_BYTES
        try:
            answer = leader.take(posted, timeout_s=timeout_s, bytes_expected=room)
        except (BrokerUnreachableError, KafkaTimeoutError):
            self._cluster.drop(leader)
            self._leaders.clear()
            return []
        assert isinstance(answer, FetchResponse)
        if answer.error_code:
            raise error_for(answer.error_code, f"Fetching from {leader.address} failed.")
        return [
            (TopicPartition(topic.topic, part.partition_index), part)
            for topic in answer.responses
            for part in topic.partitions
        ]

    def _answered(
        self, at: TopicPartition, part: PartitionData
    ) -> SourceBatches | Displaced | None:
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start, end = self.bounds(at)
            return Displaced(at=at, start=start, end=end)
        if part.error_code:
            error = error_for(part.error_code, f"fetching {at}: {error_for(part.error_code)}")
            self._leaders.pop(at, None)
            if not isinstance(error, RetriableError):
                raise error
            return None  # Whether the topic is gone, the next look for its leader tells.
        if not isinstance(part.records, memoryview) or not part.records:
            return None
        aborted = tuple(
            (one.producer_id, one.first_offset) for one in part.aborted_transactions or ()
        )
        return SourceBatches(
            at=at, records=part.records, aborted=aborted, log_start=part.log_start_offset
        )


def bounds_of(
    cluster: ClusterClient,
    partitions: list[TopicPartition],
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, tuple[int, int]]:
    """The first offset of each partition, and the one behind its last."""
    first = _edges(cluster, dict.fromkeys(partitions, int(OffsetSpec.EARLIEST)), False)
    last = _edges(cluster, dict.fromkeys(partitions, int(OffsetSpec.LATEST)), read_committed)
    return {at: (first[at], last[at]) for at in partitions}


def _edges(
    cluster: ClusterClient, wanted: Mapping[TopicPartition, int], read_committed: bool
) -> dict[TopicPartition, int]:
    edges: dict[TopicPartition, int] = {}
    found = list_offsets(cluster, wanted, timeout_ms=30_000, read_committed=read_committed)
    for at, edge in found.items():
        if isinstance(edge, ProtocolError):
            raise edge
        edges[at] = edge.offset if edge else 0
    return edges


def _version(leader: BrokerConnection) -> int:
    by_name = [one for one in leader.versions(ApiKey.FETCH) if one <= _BY_NAME_MAX]
    if not by_name:
        raise UnsupportedVersion(f"The broker {leader.address} takes no Fetch by names of topics.")
    return by_name[-1]
