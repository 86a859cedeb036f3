"""Who may write into a partition: asked once, in order, and never for what is over."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.unit.transactions.world import DATA, Server, World

from penstock.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidPidMapping,
    InvalidProducerEpoch,
    InvalidTxnState,
    NotCoordinator,
    NotEnoughReplicas,
    OutOfOrderSequence,
    ProducerFenced,
    ProtocolError,
    TransactionAbortable,
    TransactionalIdAuthorization,
)
from penstock.records.batch import Record, build_batch, read_header
from penstock.replica.partition import Partition
from penstock.transactions.admission import (
    Admission,
    AdmissionSettings,
    BatchClaim,
    PlaceInLine,
    Wait,
)
from penstock.transactions.markers import TransactionMarker
from penstock.transactions.transaction import TV1, TV2, ProducerIdentity

Play = Callable[[Any], None]

A = ("orders", 0)
WHO = ProducerIdentity(5, 1)


class Verifier:
    """A coordinator that answers what and when the test says."""

    def __init__(self, *answers: ProtocolError | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.answered: asyncio.Event | None = None  # None: at once.

    def add_partitions(
        self, transactional_id: str, identity: ProducerIdentity, partitions: Iterable[Any], **_: Any
    ) -> Wait:
        return self._answer(f"add {list(partitions)}")

    def verify(self, transactional_id: str, identity: ProducerIdentity, partition: Any) -> Wait:
        return self._answer(f"verify {partition}")

    def _answer(self, question: str) -> Wait:
        self.asked.append(question)
        error = self.answers.pop(0) if self.answers else None
        if self.answered is None:
            if error is not None:
                raise error
            return None
        return lambda: self._later(error)

    async def _later(self, error: ProtocolError | None) -> None:
        assert self.answered is not None
        await self.answered.wait()
        if error is not None:
            raise error


class Door:
    """An admission, and the partition behind it."""

    def __init__(self, world: World, *answers: ProtocolError | None) -> None:
        assert world.server is not None
        self.server: Server = world.server
        self.partition: Partition = self.server.partitions[A]
        self.verifier = Verifier(*answers)
        self.verifies = True
        self.now_ms = world.now_ms
        self.admission = Admission(
            self.verifier,
            guards=self.server.guards,
            settings=lambda: AdmissionSettings(
                verifies=self.verifies, retry_pause_ms=20, retry_ms_max=100
            ),
            now_ms=world.now_ms,
        )

    def is_admitted(self, claim: BatchClaim) -> bool:
        return self.admission.is_admitted(self.partition, claim)

    def later(self, claim: BatchClaim) -> "asyncio.Task[int]":
        turn = self.admission.line_up(self.partition, claim)
        task = asyncio.create_task(self._append_in_turn(turn))
        task.add_done_callback(turn.end)
        return task

    async def _append_in_turn(self, turn: PlaceInLine) -> int:
        async with turn:
            return self.append(turn.claim)

    def append(self, claim: BatchClaim) -> int:
        batch = memoryview(
            build_batch(
                [Record(0, self.now_ms(), None, b"v")],
                producer_id=claim.identity.producer_id,
                producer_epoch=claim.identity.producer_epoch,
                base_sequence=claim.first_sequence,
                is_transactional=True,
            )
        )
        return self.partition.append(
            [(read_header(batch), batch)], required_acks=-1, now_ms=self.now_ms()
        ).base_offset

    async def mark(
        self, identity: ProducerIdentity = WHO, *, version: int = TV1
    ) -> ProtocolError | None:
        outcome = await self.server.markers.write(
            TransactionMarker(*identity, True, 0, version), [A]
        )
        return outcome[A]


def claim(
    sequence: int = 0, *, version: int = 1, identity: ProducerIdentity = WHO, **kw: Any
) -> BatchClaim:
    return BatchClaim(
        transactional_id=kw.get("transactional_id", "t"),
        identity=identity,
        first_sequence=sequence,
        adds_partition=version == 2,
        knows_abortable=kw.get("knows_abortable", True),
        busy=NotEnoughReplicas,
    )


def test_the_coordinator_is_asked_once_for_each_transaction(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        for sequence in range(3):
            assert door.is_admitted(claim(sequence))
            door.append(claim(sequence))
        assert door.verifier.asked == [f"verify {A}"]
        await door.mark()
        assert door.is_admitted(claim(3))
        assert door.verifier.asked == [f"verify {A}"] * 2
        assert len(door.server.guards) == 0

    play(story)


def test_a_newer_client_leaves_it_to_the_leader_to_add_the_partition(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        assert door.is_admitted(claim(version=2))
        assert door.verifier.asked == [f"add {[A]}"]

    play(story)


def test_several_partitions_are_announced_in_one_go(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        partitions = [door.server.partitions[key] for key in DATA]
        claims = [(partition, claim(version=2)) for partition in partitions]
        door.admission.announce(claims[:1])
        assert door.verifier.asked == []
        door.admission.announce(claims)
        assert door.verifier.asked == [f"add {list(DATA)}"]

    play(story)


def test_an_announcement_that_fails_is_met_again_by_the_batch(play: Play) -> None:
    async def story(world: World) -> None:
        fenced = ProducerFenced("old")
        door = Door(world, fenced, fenced)
        door.admission.announce([(door.partition, claim(version=2))] * 2)
        with pytest.raises(InvalidProducerEpoch):
            door.is_admitted(claim(version=2))

    play(story)


def test_an_epoch_that_the_open_transaction_does_not_have_is_asked_about(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world, None, ProducerFenced("old"))
        assert door.is_admitted(claim())
        door.append(claim())
        with pytest.raises(InvalidProducerEpoch):
            door.is_admitted(claim(1, identity=ProducerIdentity(5, 0)))
        with pytest.raises(InvalidProducerEpoch):
            door.is_admitted(claim(0, identity=ProducerIdentity(5, 2)))

    play(story)


def test_verification_can_be_switched_off_for_older_clients_only(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        door.verifies = False
        assert door.is_admitted(claim())
        assert door.verifier.asked == []
        assert door.is_admitted(claim(version=2))
        assert door.verifier.asked == [f"add {[A]}"]

    play(story)


def test_a_batch_of_a_transaction_needs_its_id(play: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(TransactionalIdAuthorization):
            Door(world).is_admitted(claim(transactional_id=None))

    play(story)


@pytest.mark.parametrize(
    ("error", "version", "told"),
    [
        (ProducerFenced, 1, InvalidProducerEpoch),
        (ProducerFenced, 2, InvalidProducerEpoch),
        (InvalidPidMapping, 1, InvalidPidMapping),
        (TransactionAbortable, 1, TransactionAbortable),
        (CoordinatorLoadInProgress, 1, NotEnoughReplicas),
        (CoordinatorNotAvailable, 2, NotEnoughReplicas),
        (NotCoordinator, 1, NotEnoughReplicas),
        (ConcurrentTransactions, 1, NotEnoughReplicas),
    ],
)
def test_a_coordinators_error_is_told_in_words_for_producers(
    play: Play, error: type[ProtocolError], version: int, told: type[ProtocolError]
) -> None:
    async def story(world: World) -> None:
        with pytest.raises(told):
            Door(world, error("no")).is_admitted(claim(version=version))

    play(story)


def test_a_client_that_does_not_know_abortable_is_told_of_the_state(play: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(InvalidTxnState):
            Door(world, TransactionAbortable("no")).is_admitted(claim(knows_abortable=False))

    play(story)


# Answers that take time


def test_a_marker_that_comes_before_the_answer_shuts_the_door(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        door.verifier.answered = asyncio.Event()
        assert not door.is_admitted(claim())
        task = door.later(claim())
        await asyncio.sleep(0.1)
        await door.mark()
        door.verifier.answered.set()
        with pytest.raises(InvalidTxnState):
            await task
        assert world.open_transactions(A) == {}

    play(story)


def test_a_batch_behind_the_one_that_asks_belongs_to_the_transaction_that_ended_too(
    play: Play,
) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        door.verifier.answered = asyncio.Event()
        tasks = [door.later(claim(sequence)) for sequence in range(2)]
        await asyncio.sleep(0.1)
        await door.mark()
        next_one = door.later(claim(0))
        door.verifier.answered.set()
        for task in tasks:
            with pytest.raises(InvalidTxnState):
                await task
        await next_one
        assert door.verifier.asked == [f"verify {A}"] * 2

    play(story)


# What a marker may end


@pytest.mark.parametrize("version", [1, 2])
def test_the_end_of_the_transaction_before_leaves_the_door_of_the_next_open(
    play: Play, version: int
) -> None:
    """The marker of a transaction of version 2 carries the epoch that the next one has."""

    async def story(world: World) -> None:
        door = Door(world)
        before = claim(identity=ProducerIdentity(5, 0), version=2)
        assert door.is_admitted(before)
        door.append(before)
        door.verifier.answered = asyncio.Event()
        assert not door.is_admitted(claim(version=version))
        tasks = [door.later(claim(sequence, version=version)) for sequence in range(2)]
        await asyncio.sleep(0.1)
        assert await door.mark(WHO, version=TV2) is None
        door.verifier.answered.set()
        assert await asyncio.gather(*tasks) == [2, 3]
        assert world.open_transactions(A) == {2: 5}
        assert len(door.server.guards) == 0

    play(story)


def test_a_marker_that_comes_again_does_not_end_the_next_transaction(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        assert await door.mark(version=TV2) is None
        assert await door.mark(version=TV2) is None  # Of an answer that was lost.
        assert door.is_admitted(claim(version=2))
        door.append(claim(version=2))
        assert isinstance(await door.mark(version=TV2), InvalidProducerEpoch)
        assert list(world.open_transactions(A).values()) == [5]
        door.append(claim(1, version=2))

    play(story)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("marker_version", [TV1, TV2])
@pytest.mark.parametrize("behind", [1, 2])
def test_a_batch_that_waits_is_refused_once_its_producer_is_fenced_off(
    play: Play, version: int, marker_version: int, behind: int
) -> None:
    """By its epoch: the same batch would be told so if it came a moment later."""

    async def story(world: World) -> None:
        door = Door(world)
        door.verifier.answered = asyncio.Event()
        task = door.later(claim(version=version))
        await asyncio.sleep(0.1)
        await door.mark(ProducerIdentity(5, WHO.producer_epoch + behind), version=marker_version)
        door.verifier.answered.set()
        with pytest.raises(InvalidProducerEpoch):
            await task
        assert world.open_transactions(A) == {}

    play(story)


def test_a_client_of_version_2_that_ends_as_one_of_version_1_ends_its_own_epoch(
    play: Play,
) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        door.verifier.answered = asyncio.Event()
        task = door.later(claim(version=2))
        await asyncio.sleep(0.1)
        await door.mark(version=TV1)
        door.verifier.answered.set()
        with pytest.raises(InvalidTxnState):
            await task

    play(story)


@pytest.mark.parametrize("marker_version", [TV1, TV2])
def test_a_late_marker_of_an_older_epoch_ends_nothing_of_a_later_one(
    play: Play, marker_version: int
) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        door.verifier.answered = asyncio.Event()
        task = door.later(claim())
        await asyncio.sleep(0.1)
        await door.mark(ProducerIdentity(5, 0), version=marker_version)
        door.verifier.answered.set()
        assert await task == 1

    play(story)


def test_a_new_producer_id_is_not_touched_by_the_end_of_the_one_before(play: Play) -> None:
    """The epochs of the old id ran out: its last transaction ends with the last epoch of all."""

    async def story(world: World) -> None:
        door = Door(world)
        door.verifier.answered = asyncio.Event()
        task = door.later(claim(identity=ProducerIdentity(6, 0), version=2))
        await asyncio.sleep(0.1)
        await door.mark(ProducerIdentity(5, 32_767), version=TV2)
        door.verifier.answered.set()
        assert await task == 1

    play(story)


def test_what_an_earlier_leadership_asked_for_must_be_asked_again(play: Play) -> None:
    """Another leader may have written the marker meanwhile, and knew of no guard."""

    async def story(world: World) -> None:
        door = Door(world)
        door.verifier.answered = asyncio.Event()
        task = door.later(claim())
        await asyncio.sleep(0.1)
        door.partition.leader_epoch += 2
        door.verifier.answered.set()
        with pytest.raises(NotEnoughReplicas):
            await task
        assert await door.later(claim()) == 0

    play(story)


def test_a_guard_that_was_taken_down_by_the_clock_must_be_put_up_again(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        door.verifier.answered = asyncio.Event()
        task = door.later(claim())
        await asyncio.sleep(0.1)
        door.server.guards.drop_older(world.now_ms() + 1)
        door.verifier.answered.set()
        with pytest.raises(NotEnoughReplicas):
            await task
        assert await door.later(claim()) == 0

    play(story)


def test_a_guard_of_one_epoch_does_not_stand_for_another(play: Play) -> None:
    """Whoever claims a later epoch has not proved it, and must not shield the one that has."""

    async def story(world: World) -> None:
        door = Door(world, CoordinatorLoadInProgress("loading"))
        with pytest.raises(NotEnoughReplicas):
            door.is_admitted(claim(identity=ProducerIdentity(5, 9)))
        door.verifier.answered = asyncio.Event()
        task = door.later(claim())
        await asyncio.sleep(0.1)
        await door.mark()
        door.verifier.answered.set()
        with pytest.raises(InvalidTxnState):
            await task

    play(story)


# Lines


def test_batches_that_wait_are_written_in_the_order_they_came(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        door.verifier.answered = asyncio.Event()
        tasks = []
        for sequence in range(4):
            assert not door.is_admitted(claim(sequence))
            tasks.append(door.later(claim(sequence)))
        await asyncio.sleep(0.1)
        door.verifier.answered.set()
        assert await asyncio.gather(*tasks) == [0, 1, 2, 3]
        assert door.is_admitted(claim(4))

    play(story)


def test_a_batch_given_up_while_it_waits_does_not_hold_up_the_next(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        door.verifier.answered = asyncio.Event()
        first, second = door.later(claim(0)), door.later(claim(0))
        first.cancel()
        await asyncio.sleep(0.1)
        door.verifier.answered.set()
        assert await second == 0
        assert door.is_admitted(claim(1))

    play(story)


def test_an_error_that_takes_time_is_told_in_the_same_words(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world, None, ProducerFenced("old"))
        door.verifier.answered = asyncio.Event()
        door.verifier.answered.set()
        assert not door.is_admitted(claim())
        with pytest.raises(InvalidProducerEpoch):
            await door.later(claim())

    play(story)


def test_a_newer_client_waits_a_little_for_its_last_transaction_to_end(play: Play) -> None:
    async def story(world: World) -> None:
        busy = ConcurrentTransactions("ending")
        door = Door(world, busy, busy, busy, None)
        assert not door.is_admitted(claim(version=2))
        began_ms = world.now_ms()
        assert await door.later(claim(version=2)) == 0
        assert world.now_ms() - began_ms == 40

    play(story)


def test_a_newer_client_is_told_when_that_takes_too_long(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world, *[ConcurrentTransactions("ending")] * 20)
        assert not door.is_admitted(claim(version=2))
        began_ms = world.now_ms()
        with pytest.raises(ConcurrentTransactions):
            await door.later(claim(version=2))
        assert world.now_ms() - began_ms == 100

    play(story)


# Sequence numbers of producers that the partition does not know


def test_a_later_batch_does_not_slip_in_before_a_refused_one(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world, CoordinatorLoadInProgress("loading"))
        with pytest.raises(NotEnoughReplicas):
            door.is_admitted(claim(0))
        with pytest.raises(OutOfOrderSequence):
            door.is_admitted(claim(5))
        assert door.is_admitted(claim(0))
        door.append(claim(0))

    play(story)


def test_with_a_new_epoch_numbers_begin_anew(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world, *[CoordinatorLoadInProgress("loading")] * 2)
        with pytest.raises(NotEnoughReplicas):
            door.is_admitted(claim(0))
        with pytest.raises(NotEnoughReplicas):
            door.is_admitted(claim(7, identity=ProducerIdentity(5, 2)))
        assert door.is_admitted(claim(7, identity=ProducerIdentity(5, 2)))

    play(story)


def test_a_transaction_of_a_newer_client_begins_with_zero(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world)
        with pytest.raises(OutOfOrderSequence):
            door.is_admitted(claim(3, version=2))
        assert door.is_admitted(claim(0, version=2))

    play(story)


def test_guards_nobody_came_back_for_are_taken_down(play: Play) -> None:
    async def story(world: World) -> None:
        door = Door(world, TransactionAbortable("no"))
        with pytest.raises(TransactionAbortable):
            door.is_admitted(claim())
        guards = door.server.guards
        guards.drop_older(world.now_ms())
        assert len(guards) == 1
        guards.drop_older(world.now_ms() + 1)
        assert len(guards) == 0

    play(story)
