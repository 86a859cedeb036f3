"""Markers: where they are written, who hears of them, and what refuses them."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.unit.transactions.world import World

from penstock.errors import (
    InvalidProducerEpoch,
    NotLeaderOrFollower,
    ProtocolError,
    TransactionCoordinatorFenced,
)
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from penstock.records.batch import read_records
from penstock.records.control import ControlType, EndTransactionMarker, read_marker
from penstock.transactions.markers import TransactionMarker

Play = Callable[[Any], None]

A, B, OFFSETS = ("orders", 0), ("orders", 1), ("offsets", 0)


async def written(
    world: World, marker: TransactionMarker, *partitions: tuple[str, int]
) -> list[type[ProtocolError] | None]:
    assert world.server is not None
    outcome = await world.server.markers.write(marker, partitions)
    return [None if outcome[where] is None else type(outcome[where]) for where in partitions]


def marker(epoch: int = 0, *, is_commit: bool = True, coordinator: int = 0) -> TransactionMarker:
    return TransactionMarker(7, epoch, is_commit, coordinator, 0)


def test_a_marker_says_how_it_ended_and_who_says_so(play: Play) -> None:
    async def story(world: World) -> None:
        assert await written(world, marker(3, is_commit=False, coordinator=9), A) == [None]
        ((header, batch),) = world.batches(A)
        assert header.is_control
        assert header.is_transactional
        assert (header.producer_id, header.producer_epoch) == (7, 3)
        record = next(iter(read_records(batch)))
        assert read_marker(record) == EndTransactionMarker(ControlType.ABORT, 9)

    play(story)


def test_whoever_keeps_state_by_transactions_hears_of_the_end(play: Play) -> None:
    async def story(world: World) -> None:
        assert world.server is not None
        await written(world, marker(), A)
        assert world.server.completed == []
        await written(world, marker(), OFFSETS)
        await written(world, marker(is_commit=False), OFFSETS)
        assert world.server.completed == [(7, True), (7, False)]

    play(story)


def test_an_older_coordinator_and_an_older_epoch_are_refused(play: Play) -> None:
    async def story(world: World) -> None:
        assert await written(world, marker(4, coordinator=5), A) == [None]
        fenced = await written(world, marker(4, coordinator=4), A, OFFSETS)
        assert fenced == [TransactionCoordinatorFenced, None]
        assert await written(world, marker(3, coordinator=5), A) == [InvalidProducerEpoch]

    play(story)


def test_a_partition_led_elsewhere_is_left_to_its_leader(play: Play) -> None:
    async def story(world: World) -> None:
        assert world.server is not None
        world.server.partitions[A].is_leader = False
        assert await written(world, marker(), A, OFFSETS) == [NotLeaderOrFollower, None]

    play(story)


def test_markers_of_one_request_do_not_wait_for_each_others_replicas(
    play_replicated: Play,
) -> None:
    async def story(world: World) -> None:
        markers = [
            WritableTxnMarker(
                producer_id=number,
                producer_epoch=1,
                transaction_result=True,
                topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[number % 2])],
                coordinator_epoch=0,
                transaction_version=2,
            )
            for number in range(4)
        ]
        asking = asyncio.ensure_future(world.ask(WriteTxnMarkersRequest(markers=markers), 2))
        await asyncio.sleep(0.1)
        assert not asking.done()
        assert [header.producer_id for header, _ in world.batches(A)] == [0, 2]
        assert [header.producer_id for header, _ in world.batches(B)] == [1, 3]
        world.confirm()
        answer = await asking
        assert [result.producer_id for result in answer.markers] == [0, 1, 2, 3]

    play_replicated(story)
