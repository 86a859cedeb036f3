"""The coordinator: what it waits for, what it tries again, and what a restart finds."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.unit.transactions.world import EXPIRATION_MS, STATE, Server, World

from penstock.cluster.image.image import PartitionImage
from penstock.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidPidMapping,
    InvalidProducerEpoch,
    InvalidRequest,
    InvalidTxnTimeout,
    KafkaStorage,
    NotCoordinator,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    ProducerFenced,
    ProtocolError,
    RetriableError,
    TransactionAbortable,
    TransactionalIdNotFound,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)
from penstock.replica.partition import Partition
from penstock.transactions.coordinator import TransactionCoordinator
from penstock.transactions.markers import TransactionMarker
from penstock.transactions.stored import to_record
from penstock.transactions.transaction import (
    TV1,
    TV2,
    ProducerIdentity,
    Transaction,
    TransactionState,
)

Play = Callable[[Any], None]

A, B = ("orders", 0), ("orders", 1)
NOBODY = None


def server_of(world: World) -> Server:
    assert world.server is not None
    return world.server


def coordinator_of(world: World) -> TransactionCoordinator:
    return server_of(world).coordinator


async def owner_of(world: World, transactional_id: str = "t") -> ProducerIdentity:
    return await coordinator_of(world).initialize(
        transactional_id, timeout_ms=5_000, expected=NOBODY
    )


def add(world: World, identity: ProducerIdentity, *partitions: tuple[str, int]) -> Any:
    return coordinator_of(world).add_partitions(
        "t", identity, partitions or [A, B], client_version=TV1
    )


async def end(
    world: World, identity: ProducerIdentity, *, is_commit: bool = True, version: int = TV1
) -> ProducerIdentity:
    return await coordinator_of(world).end(
        "t", identity, is_commit=is_commit, client_version=version
    )


def state_of(world: World) -> TransactionState:
    return coordinator_of(world).describe("t").state


def markers_in(world: World, *partitions: tuple[str, int]) -> list[int]:
    return [
        sum(header.is_control for header, _ in world.batches(partition))
        for partition in partitions or (A, B)
    ]


async def turns(count: int = 20) -> None:
    """Let everything that can go on now go on, while the clock stands still."""
    for _ in range(count):
        await asyncio.sleep(0)


async def confirmed_owner(world: World) -> ProducerIdentity:
    """An owner that the replicas know of."""
    asked = asyncio.ensure_future(owner_of(world))
    await turns()
    world.confirm()
    return await asked


class Sink:
    """Takes markers, or says what it is told to say."""

    def __init__(self, *answers: ProtocolError | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[TransactionMarker, list[tuple[str, int]]]] = []

    async def write(self, marker: TransactionMarker, partitions: Iterable[tuple[str, int]]) -> Any:
        wanted = list(partitions)
        self.asked.append((marker, wanted))
        answer = self.answers.pop(0) if self.answers else None
        return {where: answer if where == A else None for where in wanted}


# A transaction from its beginning to its end


def test_a_commit_reaches_every_partition_and_only_then_is_complete(play: Play) -> None:
    async def story(world: World) -> None:
        owner = await owner_of(world)
        assert add(world, owner) is None
        assert await end(world, owner) == owner
        assert state_of(world) is TransactionState.PREPARE_COMMIT
        await turns()
        assert state_of(world) is TransactionState.COMPLETE_COMMIT
        assert markers_in(world) == [1, 1]

    play(story)


def test_verification_knows_which_partitions_were_added(play: Play) -> None:
    async def story(world: World) -> None:
        owner = await owner_of(world)
        add(world, owner, A)
        coordinator = coordinator_of(world)
        assert coordinator.verify("t", owner, A) is None
        with pytest.raises(TransactionAbortable):
            coordinator.verify("t", owner, B)
        with pytest.raises(InvalidPidMapping):
            coordinator.verify("unknown", owner, A)

    play(story)


def test_a_new_owner_gets_its_identity_as_soon_as_the_old_transaction_is_aborted(
    play: Play,
) -> None:
    async def story(world: World) -> None:
        old = await owner_of(world)
        add(world, old)
        new = await owner_of(world)
        assert new.producer_epoch > old.producer_epoch
        assert markers_in(world) == [1, 1]
        with pytest.raises(ProducerFenced):
            await end(world, old)

    play(story)


def test_a_new_owner_is_sent_away_when_the_abort_takes_long(play: Play) -> None:
    async def story(world: World) -> None:
        old = await owner_of(world)
        add(world, old)
        coordinator_of(world)._markers = Sink(*[NotLeaderOrFollower("moved")] * 20)
        with pytest.raises(ConcurrentTransactions):
            await owner_of(world)

    play(story)


def test_epochs_run_out_over_one_id_and_go_on_under_another(play: Play) -> None:
    async def story(world: World) -> None:
        owner = await owner_of(world)
        shard = coordinator_of(world)._led[0].shard
        known = shard.transactions["t"]
        shard.store(
            Transaction(
                transactional_id="t",
                state=TransactionState.EMPTY,
                producer_id=known.producer_id,
                producer_epoch=32_766,
                timeout_ms=5_000,
                updated_ms=0,
            )
        )
        last = ProducerIdentity(owner.producer_id, 32_766)
        add(world, last, A)
        after = await end(world, last, version=TV2)
        assert after == (owner.producer_id + 1, 0)
        await turns()
        assert coordinator_of(world).describe("t").identity == after

    play(story)


# Waiting for replicas


def test_nothing_is_answered_before_it_is_safe(play_replicated: Play) -> None:
    async def story(world: World) -> None:
        asked = asyncio.ensure_future(owner_of(world))
        await turns()
        assert not asked.done()
        world.confirm()
        owner = await asked
        wait = add(world, owner)
        assert wait is not None
        verified = coordinator_of(world).verify("t", owner, A)
        assert verified is not None, "what is not safe yet must not let anybody in"
        world.confirm()
        await wait()
        assert coordinator_of(world).verify("t", owner, A) is None

    play_replicated(story)


def test_no_marker_is_sent_before_the_decision_is_safe(play_replicated: Play) -> None:
    async def story(world: World) -> None:
        owner = await confirmed_owner(world)
        add(world, owner)
        ended = asyncio.ensure_future(end(world, owner))
        await turns()
        assert not ended.done()
        assert markers_in(world) == [0, 0]
        world.confirm()
        await turns()
        assert ended.done()
        assert markers_in(world) == [1, 1]
        assert state_of(world) is TransactionState.PREPARE_COMMIT, "the markers could still be lost"
        world.confirm()
        await turns()
        assert state_of(world) is TransactionState.COMPLETE_COMMIT

    play_replicated(story)


def test_a_leader_that_is_replaced_answers_nothing_any_more(play_replicated: Play) -> None:
    async def story(world: World) -> None:
        asked = asyncio.ensure_future(owner_of(world))
        await turns()
        partition = server_of(world).partitions[STATE]
        assert partition.state is not None
        newer = partition.state._replace(leader=1, leader_epoch=9)
        partition.apply(PartitionImage((0, 1), newer), {})
        with pytest.raises(NotCoordinator):
            await asked
        with pytest.raises(NotCoordinator):
            coordinator_of(world).describe("t")
        coordinator_of(world).take_image(server_of(world).broker.image)
        assert coordinator_of(world)._led == {}

    play_replicated(story)


def test_a_refusal_is_told_once_replicas_still_follow(play_replicated: Play) -> None:
    async def story(world: World) -> None:
        owner = await confirmed_owner(world)
        stranger = ProducerIdentity(owner.producer_id, owner.producer_epoch + 1)
        for refused in (
            lambda: end(world, stranger),
            lambda: end(world, owner),
            lambda: coordinator_of(world).initialize("t", timeout_ms=5_000, expected=stranger),
            lambda: add(world, stranger)(),
            lambda: coordinator_of(world).verify("t", stranger, A)(),
            lambda: coordinator_of(world).verify("t", owner, B)(),
            lambda: coordinator_of(world).verify("unknown", owner, A)(),
        ):
            told = asyncio.ensure_future(refused())
            await turns()
            assert not told.done(), "whoever was deposed unnoticed would refuse as well"
            world.confirm()
            with pytest.raises(ProtocolError) as error:
                await told
            assert not isinstance(error.value, RetriableError)
        assert coordinator_of(world).describe("t").identity == owner

    play_replicated(story)


def test_a_deposed_coordinator_refuses_nobody(play_replicated: Play) -> None:
    async def story(world: World) -> None:
        owner = await confirmed_owner(world)
        wait = add(world, ProducerIdentity(owner.producer_id, owner.producer_epoch + 1))
        told = asyncio.ensure_future(end(world, owner))
        await turns()
        partition = server_of(world).partitions[STATE]
        assert partition.state is not None
        newer = partition.state._replace(leader=1, leader_epoch=9)
        partition.apply(PartitionImage((0, 1), newer), {})
        with pytest.raises(NotCoordinator):
            await told
        with pytest.raises(NotCoordinator):
            await wait()

    play_replicated(story)


def lose_follower(world: World) -> None:
    """The in-sync set falls below the minimum: whoever waits for it is told so."""
    partition = server_of(world).partitions[STATE]
    partition._waits.fail(NotEnoughReplicasAfterAppend("1 in-sync replica, and 2 are needed"))


def test_a_decision_is_carried_out_once_enough_replicas_are_back(play_replicated: Play) -> None:
    async def story(world: World) -> None:
        owner = await confirmed_owner(world)
        add(world, owner)
        ended = asyncio.ensure_future(end(world, owner))
        await turns()
        lose_follower(world)
        with pytest.raises(CoordinatorNotAvailable):
            await ended
        await asyncio.sleep(5)
        assert markers_in(world) == [0, 0]
        world.confirm()
        await asyncio.sleep(5)
        assert markers_in(world) == [1, 1]
        world.confirm()
        await turns()
        assert state_of(world) is TransactionState.COMPLETE_COMMIT

    play_replicated(story)


def test_a_log_is_served_once_enough_replicas_are_back(play_replicated: Play) -> None:
    async def story(world: World) -> None:
        asked = asyncio.ensure_future(owner_of(world))
        await turns()
        coordinator = coordinator_of(world)
        coordinator._resign(0)
        coordinator.take_image(server_of(world).broker.image)
        await turns()
        lose_follower(world)
        await asyncio.sleep(5)
        with pytest.raises(CoordinatorLoadInProgress):
            coordinator.describe("t")
        world.confirm()
        await asyncio.sleep(5)
        assert coordinator.describe("t").identity.producer_id >= 0
        with pytest.raises(CoordinatorNotAvailable):
            await asked

    play_replicated(story)


# Markers that do not arrive


@pytest.mark.parametrize("error", [NotLeaderOrFollower, KafkaStorage])
def test_a_marker_is_sent_until_it_arrives(play: Play, error: type[ProtocolError]) -> None:
    async def story(world: World) -> None:
        sink = Sink(error("no"), error("still no"))
        coordinator_of(world)._markers = sink
        owner = await owner_of(world)
        add(world, owner)
        await end(world, owner)
        await turns()
        assert state_of(world) is TransactionState.PREPARE_COMMIT
        await asyncio.sleep(1)
        assert state_of(world) is TransactionState.COMPLETE_COMMIT
        assert [partitions for _, partitions in sink.asked] == [[A, B], [A], [A]]

    play(story)


@pytest.mark.parametrize("error", [UnknownTopicOrPartition, InvalidProducerEpoch])
def test_a_partition_that_is_gone_or_went_on_needs_no_marker(
    play: Play, error: type[ProtocolError]
) -> None:
    async def story(world: World) -> None:
        coordinator_of(world)._markers = Sink(error("gone"))
        owner = await owner_of(world)
        add(world, owner)
        await end(world, owner)
        await turns()
        assert state_of(world) is TransactionState.COMPLETE_COMMIT

    play(story)


def test_a_coordinator_that_was_replaced_leaves_the_rest_to_its_successor(play: Play) -> None:
    async def story(world: World) -> None:
        sink = Sink(TransactionCoordinatorFenced("there is a newer one"))
        coordinator_of(world)._markers = sink
        owner = await owner_of(world)
        add(world, owner)
        await end(world, owner)
        await asyncio.sleep(10)
        assert state_of(world) is TransactionState.PREPARE_COMMIT
        assert len(sink.asked) == 1

    play(story)


def test_the_completion_is_written_when_there_is_room_again(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> None:
        owner = await owner_of(world)
        add(world, owner)
        await end(world, owner)
        partition = server_of(world).partitions[STATE]
        write = partition.append

        def full(*_: Any, **__: Any) -> Any:
            raise NotLeaderOrFollower("not now")

        monkeypatch.setattr(partition, "append", full)
        await turns()
        assert state_of(world) is TransactionState.PREPARE_COMMIT
        monkeypatch.setattr(partition, "append", write)
        await asyncio.sleep(1)
        assert state_of(world) is TransactionState.COMPLETE_COMMIT

    play(story)


# Restarts


def test_a_restart_finds_everything_and_ends_what_was_decided(play: Play) -> None:
    async def story(world: World) -> None:
        owner = await owner_of(world)
        add(world, owner)
        coordinator_of(world)._markers = Sink(*[NotLeaderOrFollower("no")] * 9)
        await end(world, owner)
        await turns()
        world.crash()
        await asyncio.sleep(2)
        assert state_of(world) is TransactionState.COMPLETE_COMMIT
        assert markers_in(world) == [1, 1]
        add(world, owner, A)
        world.crash()
        await asyncio.sleep(2)
        assert coordinator_of(world).describe("t").partitions == {A}

    play(story)


def test_nobody_is_served_while_a_log_is_being_loaded(play: Play) -> None:
    async def story(world: World) -> None:
        owner = await owner_of(world)
        coordinator = coordinator_of(world)
        coordinator._resign(0)
        coordinator.take_image(server_of(world).broker.image)
        with pytest.raises(CoordinatorLoadInProgress):
            coordinator.verify("t", owner, A)
        with pytest.raises(CoordinatorLoadInProgress):
            list(coordinator.transactions())
        await turns()
        assert [known.transactional_id for known in coordinator.transactions()] == ["t"]

    play(story)


def test_records_that_cannot_be_read_change_nothing(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(world: World) -> None:
        owner = await owner_of(world)
        key, value = to_record(coordinator_of(world).describe("t"))
        assert value is not None
        state_log = coordinator_of(world)._led[0].log
        state_log.write([(key, b"\x00\x63" + value[2:])])  # A version of the future.
        state_log.write([(key, value[:-4])])  # Cut short.
        state_log.write([(b"\x00\x09" + key[2:], value)])  # Another kind of record.
        world.crash()
        await asyncio.sleep(2)
        assert coordinator_of(world).describe("t").identity == owner

    with caplog.at_level(logging.WARNING):
        play(story)
    assert sum("left out" in line for line in caplog.messages) == 3


# Time


def test_a_transaction_open_for_too_long_is_aborted(play: Play) -> None:
    async def story(world: World) -> None:
        owner = await owner_of(world)
        add(world, owner)
        await asyncio.sleep(4.9)
        assert coordinator_of(world).abort_timed_out() == 0
        await asyncio.sleep(0.2)
        assert coordinator_of(world).abort_timed_out() == 1
        await turns()
        assert state_of(world) is TransactionState.COMPLETE_ABORT
        assert markers_in(world) == [1, 1]
        with pytest.raises(ProducerFenced):
            await end(world, owner)

    play(story)


def test_a_transaction_begun_by_a_clock_that_was_ahead_is_aborted_in_time(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> None:
        owner = await owner_of(world)
        real_now_ms = world.now_ms
        coordinator = coordinator_of(world)
        monkeypatch.setattr(coordinator, "_now_ms", lambda: real_now_ms() + 3_600_000)
        add(world, owner)
        monkeypatch.setattr(coordinator, "_now_ms", real_now_ms)
        assert coordinator.abort_timed_out() == 0
        await asyncio.sleep(4.9)
        assert coordinator.abort_timed_out() == 0
        await asyncio.sleep(0.2)
        assert coordinator.abort_timed_out() == 1

    play(story)


def test_an_unused_id_is_forgotten_for_good(play: Play) -> None:
    async def story(world: World) -> None:
        first = await owner_of(world)
        await owner_of(world, "used")
        await asyncio.sleep(EXPIRATION_MS / 1000 - 1)
        await owner_of(world, "used")
        assert coordinator_of(world).forget_expired() == 0
        await asyncio.sleep(1)
        assert coordinator_of(world).forget_expired() == 1
        with pytest.raises(TransactionalIdNotFound):
            state_of(world)
        world.crash()
        await asyncio.sleep(2)
        with pytest.raises(TransactionalIdNotFound):
            state_of(world)
        assert (await owner_of(world)).producer_id != first.producer_id

    play(story)


# Bad requests


@pytest.mark.parametrize("timeout_ms", [0, -1, 60_001])
def test_a_timeout_beyond_the_bounds_is_refused(play: Play, timeout_ms: int) -> None:
    async def story(world: World) -> None:
        with pytest.raises(InvalidTxnTimeout):
            await coordinator_of(world).initialize("t", timeout_ms=timeout_ms, expected=NOBODY)

    play(story)


def test_without_an_id_there_is_no_transaction(play: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(InvalidRequest):
            await owner_of(world, "")

    play(story)


def test_without_its_topic_the_coordinator_is_not_available(play: Play) -> None:
    async def story(world: World) -> None:
        server = server_of(world)
        server.coordinator.close()

        class Nowhere:
            def get(self, topic: str, partition: int) -> Partition | None:
                return None

        coordinator = TransactionCoordinator(
            producer_ids=world,
            partitions=Nowhere(),
            markers=server.markers,
            settings=server.coordinator._settings,
            now_ms=world.now_ms,
        )
        with pytest.raises(CoordinatorNotAvailable):
            coordinator.describe("t")
        coordinator.take_image(server.broker.image)
        with pytest.raises(NotCoordinator):
            coordinator.describe("t")

    play(story)
