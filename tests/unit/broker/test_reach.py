"""Markers and verification beyond this broker: who is asked, and what becomes of the answers."""

import asyncio
from collections.abc import Iterable

import pytest
from tests.unit.broker.fake_peers import FakePeers

from penstock.broker.remote_coordinator import ClusterVerifier
from penstock.broker.remote_markers import ClusterMarkers
from penstock.cluster.image import ClusterImage, PartitionImage, PartitionState, TopicImage
from penstock.errors import (
    CoordinatorNotAvailable,
    ErrorCode,
    InvalidTxnState,
    NotLeaderOrFollower,
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
from penstock.transactions.markers import Marker, Outcome
from penstock.transactions.transaction import Identity, TopicPartition

ME = 1
MARKER = Marker(
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


class _LocalMarkers:
    def __init__(self) -> None:
        self.written: list[TopicPartition] = []
        self.error: ProtocolError | None = None

    async def write(self, _marker: Marker, partitions: Iterable[TopicPartition]) -> Outcome:
        wanted = list(partitions)
        self.written += wanted
        return dict.fromkeys(wanted, self.error)


def _markers(image: ClusterImage, peers: FakePeers) -> tuple[ClusterMarkers, _LocalMarkers]:
    local = _LocalMarkers()
    sink = ClusterMarkers(local, broker_id=ME, image=lambda: image, peers=peers)  # type: ignore[arg-type]
    return sink, local


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
    return ClusterVerifier(_LocalCoordinator(), broker_id=ME, image=lambda: image, peers=peers)


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
        verifier.verify("id", Identity(7, 3), ("t", 0))


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
            verifier.verify("good", Identity(7, 3), ("t", 0)),
            verifier.verify("good", Identity(7, 3), ("t", 1)),
            verifier.add_partitions("bad", Identity(8, 0), [("t", 0)], client_version=2),
        ]
        return await asyncio.gather(
            *(wait() for wait in waits if wait is not None), return_exceptions=True
        )

    first, second, third = asyncio.run(ask())
    assert (first, second) == (None, None)
    assert isinstance(third, InvalidTxnState)
    assert len(peers.asked) <= 2


def test_a_coordinator_out_of_reach_is_one_to_come_back_to() -> None:
    verifier = _verifier(_image(__transaction_state=[2]), FakePeers())
    wait = verifier.verify("id", Identity(7, 3), ("t", 0))
    assert wait is not None

    async def ask() -> None:
        await wait()

    with pytest.raises(CoordinatorNotAvailable):
        asyncio.run(ask())
    with pytest.raises(CoordinatorNotAvailable):
        _verifier(_image(), FakePeers()).verify("id", Identity(7, 3), ("t", 0))
