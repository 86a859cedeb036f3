"""Markers: where they are written, who hears of them, and what refuses them."""

from collections.abc import Callable
from typing import Any

from tests.unit.transactions.world import World

from penstock.errors import (
    InvalidProducerEpoch,
    NotLeaderOrFollower,
    ProtocolError,
    TransactionCoordinatorFenced,
)
from penstock.records.batch import read_records
from penstock.records.control import ControlType, read_marker
from penstock.records.control import Marker as ControlMarker
from penstock.transactions.markers import Marker

Play = Callable[[Any], None]

A, OFFSETS = ("orders", 0), ("offsets", 0)


async def written(
    world: World, marker: Marker, *partitions: tuple[str, int]
) -> list[type[ProtocolError] | None]:
    assert world.server is not None
    outcome = await world.server.markers.write(marker, partitions)
    return [None if outcome[where] is None else type(outcome[where]) for where in partitions]


def marker(epoch: int = 0, *, is_commit: bool = True, coordinator: int = 0) -> Marker:
    return Marker(7, epoch, is_commit, coordinator, 0)


def test_a_marker_says_how_it_ended_and_who_says_so(play: Play) -> None:
    async def story(world: World) -> None:
        assert await written(world, marker(3, is_commit=False, coordinator=9), A) == [None]
        ((header, batch),) = world.batches(A)
        assert header.is_control
        assert header.is_transactional
        assert (header.producer_id, header.producer_epoch) == (7, 3)
        record = next(iter(read_records(batch)))
        assert read_marker(record) == ControlMarker(ControlType.ABORT, 9)

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
