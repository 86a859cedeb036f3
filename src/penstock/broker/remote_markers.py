"""Markers of transactions for partitions wherever they are led.

This broker's own are written here; the others go to their leaders with WriteTxnMarkers, those of
many transactions in one request. Whether to try again is the coordinator's to decide, so whatever
may pass is told as an error that passes.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import cast

from penstock.broker.outbox import Outbox
from penstock.cluster.image import NO_LEADER, ClusterImage
from penstock.errors import (
    ErrorCode,
    NotLeaderOrFollower,
    ProtocolError,
    UnknownTopicOrPartition,
    error_for,
)
from penstock.net.peers import Peers, PeerUnreachable
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from penstock.transactions.markers import LocalMarkers, Marker, Outcome
from penstock.transactions.transaction import TopicPartition

_CHANNEL = "markers"
_ANSWER_S = 30.0

_Sent = tuple[Marker, tuple[TopicPartition, ...]]


class ClusterMarkers:
    """A MarkerSink that knows the leaders."""

    def __init__(
        self,
        local: LocalMarkers,
        *,
        broker_id: int,
        image: Callable[[], ClusterImage],
        peers: Peers,
    ) -> None:
        self._local = local
        self._broker_id = broker_id
        self._image = image
        self._peers = peers
        self._outboxes: dict[int, Outbox[_Sent, Outcome]] = {}

    async def write(self, marker: Marker, partitions: Iterable[TopicPartition]) -> Outcome:
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        outcome: dict[TopicPartition, ProtocolError | None] = {}
        for where in partitions:
            leader = self._leader(where)
            if isinstance(leader, ProtocolError):
                outcome[where] = leader
            else:
                by_leader[leader].append(where)
        written = await asyncio.gather(
            *(self._write_at(leader, marker, wanted) for leader, wanted in by_leader.items())
        )
        for part in written:
            outcome.update(part)
        return outcome

    def _leader(self, where: TopicPartition) -> int | ProtocolError:
        found = self._image().partition(*where)
        if found is None:
            # Certain: this broker became the coordinator by an image that is newer than the one
            # by which the partition was added.
            return UnknownTopicOrPartition(f"there is no partition {where[0]}-{where[1]}")
        if found.state.leader == NO_LEADER:
            return NotLeaderOrFollower(f"nobody leads {where[0]}-{where[1]} now")
        return found.state.leader

    async def _write_at(
        self, leader: int, marker: Marker, wanted: Sequence[TopicPartition]
    ) -> Outcome:
        if leader == self._broker_id:
            written = await self._local.write(marker, wanted)
            return {where: _passing(error) for where, error in written.items()}
        outbox = self._outboxes.get(leader)
        if outbox is None:
            outbox = self._outboxes[leader] = Outbox(partial(self._send, leader))
        return await outbox.put((marker, tuple(wanted)))

    async def _send(self, leader: int, sent: Sequence[_Sent]) -> Sequence[Outcome]:
        request = WriteTxnMarkersRequest(markers=[_asked(*one) for one in sent])
        try:
            answer = await self._peers.ask(leader, request, timeout_s=_ANSWER_S, channel=_CHANNEL)
        except PeerUnreachable as error:
            lost = NotLeaderOrFollower(str(error))
            return [dict.fromkeys(wanted, lost) for _, wanted in sent]
        results = cast(WriteTxnMarkersResponse, answer).markers
        return [_outcome(wanted, result) for (_, wanted), result in zip(sent, results, strict=True)]


def _asked(marker: Marker, partitions: Sequence[TopicPartition]) -> WritableTxnMarker:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        by_topic[topic].append(number)
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.is_commit,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic.items()
        ],
    )


def _outcome(wanted: Sequence[TopicPartition], result: WritableTxnMarkerResult) -> Outcome:
    codes = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in result.topics
        for partition in topic.partitions
    }
    return {where: _error(codes.get(where)) for where in wanted}


def _error(code: int | None) -> ProtocolError | None:
    if code == ErrorCode.NONE:
        return None
    if code is None:
        return NotLeaderOrFollower("the leader has not answered for the partition")
    return _passing(error_for(code))


def _passing(error: ProtocolError | None) -> ProtocolError | None:
    """Only the image of this broker can say that a partition is gone.

    Another leader's may be behind ours, and a partition that is moved away while a marker waits
    for its replicas is gone from here only.
    """
    if isinstance(error, UnknownTopicOrPartition):
        return NotLeaderOrFollower(f"its leader does not have the partition: {error}")
    return error
