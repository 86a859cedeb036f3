"""The coordinator of a transactional id, asked by a partition's leader wherever it is.

A leader makes sure that a batch belongs to an open transaction, or adds its partition to one
(KIP-890). When the coordinator is another broker that is AddPartitionsToTxn, with what many
producers want in one request.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, cast

from penstock.broker.outbox import Outbox
from penstock.cluster.image import NO_LEADER, ClusterImage
from penstock.errors import CoordinatorNotAvailable, ErrorCode, ProtocolError, error_for
from penstock.net.peers import Peers, PeerUnreachable
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.replica.state_log import partition_for
from penstock.transactions.admission import Verifier, Wait
from penstock.transactions.coordinator import STATE_TOPIC
from penstock.transactions.transaction import Identity, TopicPartition

_CHANNEL = "transactions"
# Well below the timeouts of producers and transactions: what a peer that went away without a word
# holds up is every transaction that begins with its coordinator. Asking twice does no harm.
_ANSWER_S = 5.0


class _Wish(NamedTuple):
    """What a leader wants of a coordinator."""

    transactional_id: str
    identity: Identity
    partitions: tuple[TopicPartition, ...]
    verify_only: bool


_Answer = ProtocolError | None  # None: granted.


class ClusterVerifier:
    """A Verifier that knows where each coordinator is."""

    def __init__(
        self,
        local: Verifier,
        *,
        broker_id: int,
        image: Callable[[], ClusterImage],
        peers: Peers,
    ) -> None:
        self._local = local
        self._broker_id = broker_id
        self._image = image
        self._peers = peers
        self._outboxes: dict[int, Outbox[_Wish, _Answer]] = {}

    def add_partitions(
        self,
        transactional_id: str,
        identity: Identity,
        partitions: Iterable[TopicPartition],
        *,
        client_version: int,
    ) -> Wait:
        coordinator = self._coordinator(transactional_id)
        if coordinator == self._broker_id:
            return self._local.add_partitions(
                transactional_id, identity, partitions, client_version=client_version
            )
        wish = _Wish(transactional_id, identity, tuple(partitions), verify_only=False)
        return partial(self._ask, coordinator, wish)

    def verify(self, transactional_id: str, identity: Identity, partition: TopicPartition) -> Wait:
        coordinator = self._coordinator(transactional_id)
        if coordinator == self._broker_id:
            return self._local.verify(transactional_id, identity, partition)
        wish = _Wish(transactional_id, identity, (partition,), verify_only=True)
        return partial(self._ask, coordinator, wish)

    def _coordinator(self, transactional_id: str) -> int:
        image = self._image()
        made = image.topics.get(STATE_TOPIC)
        if made is None or not made.partitions:
            raise CoordinatorNotAvailable(f"{STATE_TOPIC} is not there yet")
        number = partition_for(transactional_id, len(made.partitions))
        leader = made.partitions[number].state.leader
        if leader == NO_LEADER:
            raise CoordinatorNotAvailable(f"nobody leads {STATE_TOPIC}-{number} now")
        return leader

    async def _ask(self, coordinator: int, wish: _Wish) -> None:
        outbox = self._outboxes.get(coordinator)
        if outbox is None:
            outbox = self._outboxes[coordinator] = Outbox(partial(self._send, coordinator))
        error = await outbox.put(wish)
        if error is not None:
            raise error

    async def _send(self, coordinator: int, wishes: Sequence[_Wish]) -> Sequence[_Answer]:
        """An answer names transactions by their ids alone, so each id goes once per request."""
        answers: dict[int, _Answer] = {}
        left = dict(enumerate(wishes))
        while left:
            first_of_each: dict[str, int] = {}
            for at, wish in left.items():
                first_of_each.setdefault(wish.transactional_id, at)
            batch = {at: left.pop(at) for at in first_of_each.values()}
            answers.update(await self._send_distinct(coordinator, batch))
        return [answers[at] for at in range(len(wishes))]

    async def _send_distinct(
        self, coordinator: int, wishes: dict[int, _Wish]
    ) -> dict[int, _Answer]:
        request = AddPartitionsToTxnRequest(transactions=[_asked(wish) for wish in wishes.values()])
        try:
            asked = await self._peers.ask(
                coordinator, request, timeout_s=_ANSWER_S, channel=_CHANNEL
            )
        except PeerUnreachable as error:
            return dict.fromkeys(wishes, CoordinatorNotAvailable(str(error)))
        answer = cast(AddPartitionsToTxnResponse, asked)
        if answer.error_code != ErrorCode.NONE:
            return dict.fromkeys(wishes, error_for(answer.error_code))
        codes = {
            result.transactional_id: [
                partition.partition_error_code
                for topic in result.topic_results
                for partition in topic.results_by_partition
            ]
            for result in answer.results_by_transaction
        }
        return {at: _first_error(codes.get(wish.transactional_id)) for at, wish in wishes.items()}


def _asked(wish: _Wish) -> AddPartitionsToTxnTransaction:
    by_topic: dict[str, list[int]] = {}
    for topic, number in wish.partitions:
        by_topic.setdefault(topic, []).append(number)
    return AddPartitionsToTxnTransaction(
        transactional_id=wish.transactional_id,
        producer_id=wish.identity.producer_id,
        producer_epoch=wish.identity.producer_epoch,
        verify_only=wish.verify_only,
        topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=numbers)
            for topic, numbers in by_topic.items()
        ],
    )


def _first_error(codes: Sequence[int] | None) -> _Answer:
    if not codes:
        return CoordinatorNotAvailable("the coordinator did not answer for the transaction")
    code = next((code for code in codes if code != ErrorCode.NONE), None)
    return None if code is None else error_for(code, "told by the transaction's coordinator")
