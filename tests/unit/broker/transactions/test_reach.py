"""Markers and verification beyond this broker: who is asked, and what becomes of the answers."""

import asyncio
from collections.abc import Iterable

import pytest
from tests.unit.broker.fake_peers import FakePeers

from penstock.broker.transactions.reach import ClusterMarkers, ClusterReach, ClusterVerifier
from penstock.cluster.image.image import ClusterImage, PartitionImage, PartitionState, TopicImage
from penstock.errors import (
    CoordinatorNotAvailable,
    ErrorCode,
    InvalidTxnState,
    NotLeaderOrFollower,
    ProducerFenced,
    ProtocolError,
    UnknownTopicOrPartition,
)
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from penstock.transactions.admission import Wait
from penstock.transactions.markers import Outcome, TransactionMarker
from penstock.transactions.transaction import ProducerIdentity, TopicPartition

ME = 1
MARKER = TransactionMarker(
    producer_id=7, producer_epoch=3, is_commit=True, coordinator_epoch=5, transaction_version=2
)


def _image(**leaders: list[int]) -> ClusterImage:
    """Topics by name, with the leader of each partition."""
    topics = {}
    for name, ids in leaders.items():
        partitions = {
            number: PartitionImage(
                replicas=(1, 2, 3),
                state=PartitionState(leader=leader, leader_epoch=0, isr=(1, 2, 3), min_isr=1),
            )
            for number, leader in enumerate(ids)
        }
        topics[name] = TopicImage(name=name, topic_id=b"t" * 16, partitions=partitions)
    return ClusterImage(cluster_id="c", topics=topics)


def _reach(image: ClusterImage, peers: FakePeers) -> ClusterReach:
    return ClusterReach(broker_id=ME, image=lambda: image, peers=peers)


class _LocalMarkers:
    def __init__(self) -> None:
        self.written: list[TopicPartition] = []
        self.error: ProtocolError | None = None

    async def write(
        self, _marker: TransactionMarker, partitions: Iterable[TopicPartition]
    ) -> Outcome:
        wanted = list(partitions)
        self.written += wanted
        return dict.fromkeys(wanted, self.error)


def _markers(image: ClusterImage, peers: FakePeers) -> tuple[ClusterMarkers, _LocalMarkers]:
    local = _LocalMarkers()
    return ClusterMarkers(local, _reach(image, peers)), local  # type: ignore[arg-type]


def _written(request: WriteTxnMarkersRequest, code: int = 0) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=n, error_code=code)
                            for n in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def test_each_leader_gets_the_markers_of_its_partitions() -> None:
    peers = FakePeers(lambda _id, request: _written(request))
    sink, local = _markers(_image(t=[1, 2, 3, 2]), peers)
    wanted = [("t", number) for number in range(4)]
    assert asyncio.run(sink.write(MARKER, wanted)) == dict.fromkeys(wanted)
    assert local.written == [("t", 0)]
    asked = {
        broker_id: request.markers[0].topics[0].partition_indexes
        for broker_id, request in peers.asked
    }
    assert asked == {2: [1, 3], 3: [2]}


def test_what_nobody_leads_or_nobody_knows_is_told_apart() -> None:
    sink, _ = _markers(_image(t=[-1]), FakePeers())
    outcome = asyncio.run(sink.write(MARKER, [("t", 0), ("gone", 0)]))
    assert isinstance(outcome["t", 0], NotLeaderOrFollower)
    assert isinstance(outcome["gone", 0], UnknownTopicOrPartition)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None])
def test_a_leader_that_is_behind_or_away_does_not_end_the_matter(code: int | None) -> None:
    peers = FakePeers(None if code is None else lambda _id, request: _written(request, code))
    sink, _ = _markers(_image(t=[2]), peers)
    outcome = asyncio.run(sink.write(MARKER, [("t", 0)]))
    assert isinstance(outcome["t", 0], NotLeaderOrFollower)


def test_a_partition_that_moves_away_from_here_does_not_end_the_matter() -> None:
    sink, local = _markers(_image(t=[ME]), FakePeers())
    local.error = UnknownTopicOrPartition("dropped while the marker waited for its replicas")
    outcome = asyncio.run(sink.write(MARKER, [("t", 0)]))
    assert local.written == [("t", 0)]
    assert isinstance(outcome["t", 0], NotLeaderOrFollower)


def test_markers_gather_while_a_request_is_under_way() -> None:
    peers = FakePeers(lambda _id, request: _written(request))
    sink, _ = _markers(_image(t=[2]), peers)

    async def write_many() -> None:
        markers = [MARKER._replace(producer_id=number) for number in range(10)]
        await asyncio.gather(*(sink.write(marker, [("t", 0)]) for marker in markers))

    asyncio.run(write_many())
    sizes = [len(request.markers) for _, request in peers.asked]
    assert sum(sizes) == 10
    assert len(sizes) < 4


class _LocalCoordinator:
    def add_partitions(self, *_: object, client_version: int) -> Wait:
        raise InvalidTxnState("asked here")

    def verify(self, *_: object) -> Wait:
        raise InvalidTxnState("asked here")


def _verifier(image: ClusterImage, peers: FakePeers) -> ClusterVerifier:
    return ClusterVerifier(_LocalCoordinator(), _reach(image, peers))


def _granted(request: AddPartitionsToTxnRequest, codes: dict[str, int]) -> Response:
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=t.transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=n,
                                partition_error_code=codes.get(t.transactional_id, 0),
                            )
                            for n in topic.partitions
                        ],
                    )
                    for topic in t.topics
                ],
            )
            for t in request.transactions
        ]
    )


def test_a_coordinator_here_is_asked_here() -> None:
    verifier = _verifier(_image(__transaction_state=[ME]), FakePeers())
    with pytest.raises(InvalidTxnState, match="asked here"):
        verifier.verify("id", ProducerIdentity(7, 3), ("t", 0))


def test_many_wishes_go_in_few_requests_and_each_gets_its_own_answer() -> None:
    def answer(_broker_id: int, request: Request) -> Response:
        assert isinstance(request, AddPartitionsToTxnRequest)
        ids = [t.transactional_id for t in request.transactions]
        assert len(ids) == len(set(ids))
        return _granted(request, {"bad": int(ErrorCode.INVALID_TXN_STATE)})

    peers = FakePeers(answer)
    verifier = _verifier(_image(__transaction_state=[2]), peers)

    async def ask() -> list[object]:
        waits = [
            verifier.verify("good", ProducerIdentity(7, 3), ("t", 0)),
            verifier.verify("good", ProducerIdentity(7, 3), ("t", 1)),
            verifier.add_partitions("bad", ProducerIdentity(8, 0), [("t", 0)], client_version=2),
        ]
        return await asyncio.gather(
            *(wait() for wait in waits if wait is not None), return_exceptions=True
        )

    first, second, third = asyncio.run(ask())
    assert (first, second) == (None, None)
    assert isinstance(third, InvalidTxnState)
    ((_, request),) = peers.asked
    assert [
        (t.transactional_id, t.verify_only, [topic.partitions for topic in t.topics])
        for t in request.transactions
    ] == [("good", True, [[0, 1]]), ("bad", False, [[0]])]


def test_two_epochs_of_one_id_are_never_mistaken_for_each_other() -> None:
    """An answer names a transaction by its id alone."""

    def answer(_broker_id: int, request: Request) -> Response:
        assert isinstance(request, AddPartitionsToTxnRequest)
        (one,) = request.transactions
        is_old = one.producer_epoch == 3
        return _granted(request, {"id": int(ErrorCode.PRODUCER_FENCED) if is_old else 0})

    verifier = _verifier(_image(__transaction_state=[2]), FakePeers(answer))

    async def ask() -> list[object]:
        waits = [
            verifier.add_partitions("id", ProducerIdentity(7, epoch), [("t", 0)], client_version=2)
            for epoch in (3, 4)
        ]
        return await asyncio.gather(
            *(wait() for wait in waits if wait is not None), return_exceptions=True
        )

    old, new = asyncio.run(ask())
    assert isinstance(old, ProducerFenced)
    assert new is None


def test_a_partition_the_coordinator_does_not_know_yet_is_nobody_elses_error() -> None:
    """Clients do not know the error of what was not tried, and would not come again for it."""

    def answer(_broker_id: int, request: Request) -> Response:
        assert isinstance(request, AddPartitionsToTxnRequest)
        granted = _granted(request, {})
        assert isinstance(granted, AddPartitionsToTxnResponse)
        known, new = granted.results_by_transaction[0].topic_results[0].results_by_partition
        known.partition_error_code = int(ErrorCode.OPERATION_NOT_ATTEMPTED)
        new.partition_error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return granted

    verifier = _verifier(_image(__transaction_state=[2]), FakePeers(answer))

    async def ask() -> list[object]:
        waits = [
            verifier.add_partitions("id", ProducerIdentity(7, 3), [("t", number)], client_version=2)
            for number in (0, 1)
        ]
        return await asyncio.gather(
            *(wait() for wait in waits if wait is not None), return_exceptions=True
        )

    known, new = asyncio.run(ask())
    assert isinstance(known, CoordinatorNotAvailable)
    assert isinstance(new, UnknownTopicOrPartition)


def test_a_coordinator_out_of_reach_is_one_to_come_back_to() -> None:
    verifier = _verifier(_image(__transaction_state=[2]), FakePeers())
    wait = verifier.verify("id", ProducerIdentity(7, 3), ("t", 0))
    assert wait is not None

    async def ask() -> None:
        await wait()

    with pytest.raises(CoordinatorNotAvailable):
        asyncio.run(ask())
    with pytest.raises(CoordinatorNotAvailable):
        _verifier(_image(), FakePeers()).verify("id", ProducerIdentity(7, 3), ("t", 0))
