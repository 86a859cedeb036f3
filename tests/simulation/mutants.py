"""The product with one guard removed: each of these must be noticed, or the simulator is blind.

`python -m tests.simulation --mutant NAME` runs one. The seeds beside them are those that noticed
it last; they are where the search begins, for a change of the product moves them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.simulation.coordinator_checks_mutants import (
    COORDINATOR_MUTANTS,
    believing_another_leaders_high_watermark,
    leaving_guards_up,
    refusing_from_memory,
)

from penstock.broker.fetching.follower_sessions import FollowerSession, FollowerSessions
from penstock.broker.membership.cluster_member import ClusterMember
from penstock.cluster import registration, transition
from penstock.cluster.control import membership, partition_changes, reassignment
from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.image.image import ClusterImage, PartitionState
from penstock.cluster.transition import TransitionFacts
from penstock.cluster.znodes import PreviousShutdown
from penstock.errors import FetchSessionIdNotFound
from penstock.meta.store import ANY_VERSION, Check, Op
from penstock.replica import following, in_sync, isr_writer
from penstock.replica.fetch_book import FetchBook, Followed
from penstock.replica.in_sync import InSync
from penstock.replica.isr_writer import IsrWriter
from penstock.replica.partition import Partition
from penstock.storage.directories.checkpoints import PARTITION_METADATA
from penstock.storage.directories.log_dir import LogDir
from penstock.storage.producers import producers


class Mutant(NamedTuple):
    apply: Callable[[], None]
    seed: int  # Where the search begins.


def _without_fence_check() -> None:
    real = isr_writer._ops

    def ops(*work: Any) -> list[Op]:
        return [op for op in real(*work) if not isinstance(op, Check)]

    isr_writer._ops = ops
    in_sync.is_eligible = lambda follower, brokers: follower.broker_id in brokers


def _electing_without_a_look_at_fences() -> None:
    partition_changes.fence_checks = lambda *_: []
    reassignment.fence_checks = lambda *_: []


def _without_epoch_start() -> None:
    real = InSync.may_join

    def may_join(self: InSync, *arguments: Any) -> bool:
        start, self.epoch_start_offset = self.epoch_start_offset, 0
        try:
            return real(self, *arguments)
        finally:
            self.epoch_start_offset = start

    InSync.may_join = may_join  # type: ignore[method-assign]


def _without_maximal_isr() -> None:
    def recount(self: InSync) -> None:
        self.maximal = frozenset(self.state.isr)

    InSync._recount = recount  # type: ignore[method-assign]


def _without_min_isr_gate() -> None:
    real = InSync.high_watermark

    def high_watermark(self: InSync, *arguments: Any, **named: Any) -> int:
        state, self.state = self.state, self.state._replace(min_isr=0)
        try:
            return real(self, *arguments, **named)
        finally:
            self.state = state

    InSync.high_watermark = high_watermark  # type: ignore[method-assign]


def _without_leader_epoch_check() -> None:
    Partition.check_leader_epoch = lambda self, _: None  # type: ignore[method-assign]


def _truncating_to_the_high_watermark() -> None:
    """As Kafka did before leader epochs: what is committed reaches a follower late (KIP-101)."""
    real = Partition._follow
    followed: dict[Partition, int] = {}

    def follow(self: Partition, was_leader: bool) -> None:
        real(self, was_leader)
        if followed.get(self) != self.leader_epoch:
            followed[self] = self.leader_epoch
            self.log.truncate_to(min(self.log.high_watermark, self.log.log_end_offset))

    Partition._follow = follow  # type: ignore[method-assign]


def _without_truncation() -> None:
    Partition.diverging_epoch = lambda self, *_: None  # type: ignore[method-assign]


def _acknowledging_at_once() -> None:
    Partition.replicated = lambda self, _: None  # type: ignore[method-assign]


def _taking_loss_for_a_crash() -> None:
    real = registration.judge_previous_shutdown

    def judge(**facts: Any) -> PreviousShutdown:
        found = real(**facts)
        return PreviousShutdown.CRASH if found is PreviousShutdown.LOSSY else found

    registration.judge_previous_shutdown = judge


def _forgetting_a_loss() -> None:
    """Lossy is not sticky: a second crash, before the controller acted, hides the first."""
    real = registration._starting_fence

    def closed(newcomer: Any, _: Any) -> Any:
        return real(newcomer, None)

    real_judge = registration.judge_previous_shutdown

    def judge(*, last_boot_id: Any, boot_id: Any, fence: Any, **facts: Any) -> PreviousShutdown:
        if fence is not None and fence.prev_shutdown is PreviousShutdown.LOSSY:
            return PreviousShutdown.CRASH
        return real_judge(last_boot_id=last_boot_id, boot_id=boot_id, fence=fence, **facts)

    registration._starting_fence = closed
    registration.judge_previous_shutdown = judge


def _going_by_what_was_heard() -> None:
    """Both guards: leaders tell of what they wrote, and it is read before a broker is admitted.

    Either is enough in nearly all cases: a notice is seldom late for as long as a broker takes to
    go and come back.
    """
    membership._versions = lambda fences: dict.fromkeys(fences, 0)
    ClusterMember._note_changed = lambda self, _: None  # type: ignore[method-assign]


def _electing_anybody() -> None:
    def elected(state: PartitionState, facts: TransitionFacts) -> PartitionState:
        active = [replica for replica in facts.replicas if replica in facts.active]
        return transition._led_by(state, active[0]) if active else state

    transition._elected = elected


def _without_controller_fence() -> None:
    real = FencedWrites.__init__

    def new(self: FencedWrites, *arguments: Any) -> None:
        real(self, *arguments)
        self._check = self._check._replace(version=ANY_VERSION)

    FencedWrites.__init__ = new  # type: ignore[method-assign]


def _without_session_order() -> None:
    def continue_session(
        self: FollowerSessions, session_id: int, epoch: int, replica_id: int, _: int
    ) -> FollowerSession:
        session = self._sessions.get(session_id)
        if session is None or session.replica_id != replica_id:
            raise FetchSessionIdNotFound(f"there is no fetch session {session_id}")
        session.epoch = epoch
        session.seen.at_ms = self._clock_ms()
        return session

    FollowerSessions.continue_session = continue_session  # type: ignore[method-assign]


def _with_min_isr_of_the_topic() -> None:
    """The high watermark obeys the topic's setting, which others may not know yet."""
    real = Partition._advance

    def advance(self: Partition) -> None:
        in_sync = self.in_sync
        if in_sync is None:
            return real(self)
        state, in_sync.state = in_sync.state, in_sync.state._replace(min_isr=self.isr_needed)
        try:
            real(self)
        finally:
            in_sync.state = state

    Partition._advance = advance  # type: ignore[method-assign]


def _taking_any_answer() -> None:
    """Both guards: of the epoch, and that a partition that is led by another is asked for no more.

    Either is enough in nearly all cases. A partition whose leader changes leaves the fetcher's
    book, so its late answer finds nobody; only where the same broker leads on in a later epoch,
    and within the 20 ms in which a request is not given up for it, is the epoch itself looked at.
    """
    gone: dict[tuple[FetchBook, Any], Followed] = {}
    real_remove, real_find = FetchBook.remove, FetchBook.find

    def remove(self: FetchBook, partition: Partition) -> None:
        followed = self._followed.get(partition)
        sent = followed.sent if followed else None
        real_remove(self, partition)
        if followed is not None and sent is not None:
            followed.sent = sent
            gone[self, followed.key] = followed

    def find(self: FetchBook, key: Any) -> Followed | None:
        return real_find(self, key) or gone.get((self, key))

    FetchBook.remove = remove  # type: ignore[method-assign]
    FetchBook.find = find  # type: ignore[method-assign]
    following.is_current = lambda partition, asked: (
        partition.log.log_end_offset == asked.fetch_offset
    )


def _obeying_what_was_meant_for_the_dead() -> None:
    """An image that shows this broker active is obeyed, whichever life of it that was."""
    real = ClusterMember._take

    def take(self: ClusterMember, image: ClusterImage) -> None:
        own = image.brokers.get(self._broker.broker_id)
        if own is not None and own.is_active and self._registered is not None:
            self._is_admitted = True
        real(self, image)

    ClusterMember._take = take  # type: ignore[method-assign]


def _without_minding_the_registration() -> None:
    async def is_registered(self: ClusterMember, *_: Any) -> bool:
        return True

    ClusterMember._is_registered = is_registered  # type: ignore[method-assign]


def _without_reading_again() -> None:
    async def read_again(self: IsrWriter, partitions: Any) -> None:
        for partition in partitions:
            self.wake(partition)

    IsrWriter._read_again = read_again  # type: ignore[method-assign]


def _taking_a_name_for_a_topic() -> None:
    """A log on disk is taken by its name, whatever topic it was of."""
    real = LogDir.open_log

    def open_log(self: LogDir, partition: Any, *, topic_id: bytes, **parts: Any) -> Any:
        (self.found[partition] / PARTITION_METADATA).unlink(missing_ok=True)
        return real(self, partition, topic_id=topic_id, **parts)

    LogDir.open_log = open_log  # type: ignore[method-assign]


def _deleting_what_is_not_committed() -> None:
    def delete_records(self: Partition, before_offset: int) -> int:
        self.check_leader()
        wanted = min(before_offset, self.log.log_end_offset)
        self.log.starts_at(max(wanted, self.log.log_start_offset))
        return self.log.log_start_offset

    Partition.delete_records = delete_records  # type: ignore[method-assign]


def _without_sequences() -> None:
    producers.ProducerUpdate.duplicate_of = lambda self, _: None  # type: ignore[method-assign]
    producers._check_sequence = lambda *_: None


MUTANTS: dict[str, Mutant] = {
    "fence check": Mutant(_without_fence_check, 0),
    "fence of the elected": Mutant(_electing_without_a_look_at_fences, 370),
    "epoch start": Mutant(_without_epoch_start, 4),
    "maximal ISR": Mutant(_without_maximal_isr, 9),
    "min ISR gate": Mutant(_without_min_isr_gate, 1),
    "min ISR of the state": Mutant(_with_min_isr_of_the_topic, 39),
    "leader epoch": Mutant(_without_leader_epoch_check, 82),
    "cut by epochs": Mutant(_truncating_to_the_high_watermark, 7),
    "cut at all": Mutant(_without_truncation, 1),
    "wait for the high watermark": Mutant(_acknowledging_at_once, 9),
    "loss is told": Mutant(_taking_loss_for_a_crash, 1),
    "loss is sticky": Mutant(_forgetting_a_loss, 13),
    "loss counts where nobody heard of it": Mutant(_going_by_what_was_heard, 138),
    "elect of ISR and ELR": Mutant(_electing_anybody, 0),
    "controller fence": Mutant(_without_controller_fence, 21),
    "fetch session order": Mutant(_without_session_order, 0),
    "answers of this epoch": Mutant(_taking_any_answer, 56),
    "images for this life": Mutant(_obeying_what_was_meant_for_the_dead, 10),
    "own registration": Mutant(_without_minding_the_registration, 1),
    "read before another try": Mutant(_without_reading_again, 90),
    "logs by topic id": Mutant(_taking_a_name_for_a_topic, 417),
    "delete only what is committed": Mutant(_deleting_what_is_not_committed, 38),
    "sequences": Mutant(_without_sequences, 1),
    **{name: Mutant(apply, 2) for name, apply in COORDINATOR_MUTANTS.items()},
    "a marker takes guards down": Mutant(leaving_guards_up, 14),
    "refusals are confirmed": Mutant(refusing_from_memory, 0),
    "what is safe is one's own": Mutant(believing_another_leaders_high_watermark, 299),
}
