"""How this broker reaches the rest of the cluster for transactions.

Two questions leave it. A partition's leader asks the coordinator of a transactional id whether a
batch belongs to an open transaction, or adds its partition to one (KIP-890): AddPartitionsToTxn,
with what many producers want in one request. And a coordinator tells the leaders of partitions how
a transaction ended: WriteTxnMarkers, with the markers of many transactions in one request. What
this broker leads itself it asks and tells without a detour.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

from penstock.broker.transactions.outbox import Outboxes
from penstock.cluster.image.image import NO_LEADER, ClusterImage
from penstock.cluster.topics.names import TRANSACTION_STATE
from penstock.errors import (
    CoordinatorNotAvailable,
    ErrorCode,
    NotLeaderOrFollower,
    ProtocolError,
    UnknownTopicOrPartition,
    error_for,
)
from penstock.net.peers import Peers, PeerUnreachable
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from penstock.replica.state_log import partition_for
from penstock.transactions.admission import Verifier, Wait
from penstock.transactions.markers import LocalMarkers, Outcome, TransactionMarker
from penstock.transactions.transaction import ProducerIdentity, TopicPartition

# Well below the timeouts of producers and transactions: what a peer that went away without a word
# holds up is every transaction that begins with its coordinator. Asking twice does no harm.
_VERIFICATION_S = 5.0
_MARKERS_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReach:
    """Who this broker is, what it knows of the others, and how it speaks to them."""

    broker_id: int
    image: Callable[[], ClusterImage]  # As it is now.
    peers: Peers

    def markers(self, local: LocalMarkers) -> "ClusterMarkers":
        return ClusterMarkers(local, self)

    def verifier(self, local: Verifier) -> "ClusterVerifier":
        return ClusterVerifier(local, self)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Each partition once, in the order in which they came."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, number in dict.fromkeys(partitions):
        found[topic].append(number)
    return found


# Asking coordinators


class _Wish(NamedTuple):
    """What a leader wants of a coordinator."""

    transactional_id: str
    identity: ProducerIdentity
    partitions: tuple[TopicPartition, ...]
    verify_only: bool


_Answer = ProtocolError | None  # None: granted.
_Codes = dict[tuple[str, TopicPartition], int]  # By transactional id and partition.


class ClusterVerifier:
    """A Verifier that knows where each coordinator is."""

    def __init__(self, local: Verifier, reach: ClusterReach) -> None:
        self._local = local
        self._reach = reach
        self._outboxes: Outboxes[_Wish, _Answer] = Outboxes(self._send)

    def add_partitions(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        *,
        client_version: int,
    ) -> Wait:
        coordinator = self._coordinator(transactional_id)
        if coordinator == self._reach.broker_id:
            return self._local.add_partitions(
                transactional_id, identity, partitions, client_version=client_version
            )
        wish = _Wish(transactional_id, identity, tuple(partitions), verify_only=False)
        return partial(self._ask, coordinator, wish)

    def verify(
        self, transactional_id: str, identity: ProducerIdentity, partition: TopicPartition
    ) -> Wait:
        coordinator = self._coordinator(transactional_id)
        if coordinator == self._reach.broker_id:
            return self._local.verify(transactional_id, identity, partition)
        wish = _Wish(transactional_id, identity, (partition,), verify_only=True)
        return partial(self._ask, coordinator, wish)

    def _coordinator(self, transactional_id: str) -> int:
        image = self._reach.image()
        made = image.topics.get(TRANSACTION_STATE)
        if made is None or not made.partitions:
            raise CoordinatorNotAvailable(f"{TRANSACTION_STATE} is not there yet")
        number = partition_for(transactional_id, len(made.partitions))
        leader = made.partitions[number].state.leader
        if leader == NO_LEADER:
            raise CoordinatorNotAvailable(f"nobody leads {TRANSACTION_STATE}-{number} now")
        return leader

    async def _ask(self, coordinator: int, wish: _Wish) -> None:
        error = await self._outboxes.put(coordinator, wish)
        if error is not None:
            raise error

    async def _send(
        self, coordinator: int, lane: int, wishes: Sequence[_Wish]
    ) -> Sequence[_Answer]:
        channel = f"transactions {lane}"
        answers: list[_Answer] = [None] * len(wishes)
        for request in _gather(wishes):
            codes = await self._codes(coordinator, channel, request.by_id.values())
            for at in request.answers:
                answers[at] = (
                    codes if isinstance(codes, ProtocolError) else _answer_to(codes, wishes[at])
                )
        return answers

    async def _codes(
        self, coordinator: int, channel: str, wishes: Iterable[_Wish]
    ) -> _Codes | ProtocolError:
        request = AddPartitionsToTxnRequest(transactions=[_transaction_of(wish) for wish in wishes])
        try:
            asked = await self._reach.peers.ask(
                coordinator, request, timeout_s=_VERIFICATION_S, channel=channel
            )
        except PeerUnreachable as error:
            return CoordinatorNotAvailable(str(error))
        answer = cast(AddPartitionsToTxnResponse, asked)
        if answer.error_code != ErrorCode.NONE:
            return error_for(answer.error_code)
        return {
            (result.transactional_id, (topic.name, partition.partition_index)): (
                partition.partition_error_code
            )
            for result in answer.results_by_transaction
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }


class _Request(NamedTuple):
    """What goes out together."""

    by_id: dict[str, _Wish]  # An answer names transactions by their ids alone.
    answers: list[int]  # Which of the wishes it answers.


def _gather(wishes: Sequence[_Wish]) -> list[_Request]:
    """Wishes for one transaction become one; those of another epoch of its id wait their turn."""
    made: list[_Request] = []
    for at, wish in enumerate(wishes):
        fitting = (each for each in made if _fits(each.by_id.get(wish.transactional_id), wish))
        request = next(fitting, None)
        if request is None:
            request = _Request({}, [])
            made.append(request)
        known = request.by_id.get(wish.transactional_id)
        partitions = wish.partitions if known is None else known.partitions + wish.partitions
        request.by_id[wish.transactional_id] = wish._replace(partitions=partitions)
        request.answers.append(at)
    return made


def _fits(known: _Wish | None, wish: _Wish) -> bool:
    return known is None or known._replace(partitions=wish.partitions) == wish


def _transaction_of(wish: _Wish) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=wish.transactional_id,
        producer_id=wish.identity.producer_id,
        producer_epoch=wish.identity.producer_epoch,
        verify_only=wish.verify_only,
        topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=numbers)
            for topic, numbers in _by_topic(wish.partitions).items()
        ],
    )


def _answer_to(codes: _Codes, wish: _Wish) -> _Answer:
    """The first error among the partitions of a wish."""
    for where in wish.partitions:
        code = codes.get((wish.transactional_id, where))
        if code is None:
            return CoordinatorNotAvailable("the coordinator did not answer for the transaction")
        if code == ErrorCode.OPERATION_NOT_ATTEMPTED:
            # The coordinator does not know a partition that somebody else asked for.
            return CoordinatorNotAvailable("nothing was added with a partition that is not there")
        if code != ErrorCode.NONE:
            return error_for(code, "told by the transaction's coordinator")
    return None


# Telling leaders

_Sent = tuple[TransactionMarker, tuple[TopicPartition, ...]]


class ClusterMarkers:
    """A MarkerSink that knows the leaders.

    Whether to try again is the coordinator's to decide, so whatever may pass is told as an error
    that passes.
    """

    def __init__(self, local: LocalMarkers, reach: ClusterReach) -> None:
        self._local = local
        self._reach = reach
        self._outboxes: Outboxes[_Sent, Outcome] = Outboxes(self._send)

    async def write(
        self, marker: TransactionMarker, partitions: Iterable[TopicPartition]
    ) -> Outcome:
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
        found = self._reach.image().partition(*where)
        if found is None:
            # Certain: this broker became the coordinator by an image that is newer than the one
            # by which the partition was added.
            return UnknownTopicOrPartition(f"there is no partition {where[0]}-{where[1]}")
        if found.state.leader == NO_LEADER:
            return NotLeaderOrFollower(f"nobody leads {where[0]}-{where[1]} now")
        return found.state.leader

    async def _write_at(
        self, leader: int, marker: TransactionMarker, wanted: Sequence[TopicPartition]
    ) -> Outcome:
        if leader == self._reach.broker_id:
            written = await self._local.write(marker, wanted)
            return {where: _passing(error) for where, error in written.items()}
        return await self._outboxes.put(leader, (marker, tuple(wanted)))

    async def _send(self, leader: int, lane: int, sent: Sequence[_Sent]) -> Sequence[Outcome]:
        request = WriteTxnMarkersRequest(markers=[_marker_of(*one) for one in sent])
        try:
            answer = await self._reach.peers.ask(
                leader, request, timeout_s=_MARKERS_S, channel=f"markers {lane}"
            )
        except PeerUnreachable as error:
            lost = NotLeaderOrFollower(str(error))
            return [dict.fromkeys(wanted, lost) for _, wanted in sent]
        results = cast(WriteTxnMarkersResponse, answer).markers
        return [_outcome(wanted, result) for (_, wanted), result in zip(sent, results, strict=True)]


def _marker_of(
    marker: TransactionMarker, partitions: Sequence[TopicPartition]
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.is_commit,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in _by_topic(partitions).items()
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
