"""Brokers with a known mistake in them, to see whether the checker finds it.

Each mutant takes one guard out of the product, from outside: the product has no switch for it. A
mutant is caught when a run with the fault named beside it ends with a violation of the checks
named there.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    name: str
    text: str
    inject: Callable[[], None]
    fault: str  # What brings it to light.
    caught_by: frozenset[str]  # Any of these checks.
    clients: str = "small"


def ack_early() -> None:
    from penstock.replica.partition import Partition

    def replicated(_self: Any, _last_offset: int) -> "asyncio.Future[None] | None":
        return None

    Partition.replicated = replicated  # type: ignore[method-assign]


def ignore_followers() -> None:
    from penstock.replica.in_sync import InSync

    def high_watermark(_self: Any, known: int, log_end_offset: int, **_: Any) -> int:
        return max(known, log_end_offset)

    InSync.high_watermark = high_watermark  # type: ignore[method-assign]


def read_past_high_watermark() -> None:
    from penstock.replica.partition import Partition

    true_read = Partition.read

    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        known = self.log.high_watermark
        self.log.high_watermark = self.log.log_end_offset
        try:
            return true_read(self, *args, **kwargs)
        finally:
            self.log.high_watermark = known

    Partition.read = read  # type: ignore[method-assign]


def truncate_to_high_watermark() -> None:
    """What Kafka did before KIP-101."""
    from penstock.replica.partition import Partition

    true_take = Partition.take_state

    def take_state(self: Any, *args: Any, **kwargs: Any) -> bool:
        before = self.leader_epoch
        taken = true_take(self, *args, **kwargs)
        if taken and self.leader_epoch != before and not self.is_leader:
            self.log.truncate_to(self.log.high_watermark)
        return taken

    Partition.take_state = take_state  # type: ignore[method-assign]


def overlook_divergence() -> None:
    """The leader takes every follower's log for a prefix of its own."""
    from penstock.replica.partition import Partition

    def diverging_epoch(_self: Any, _epoch: int, _offset: int) -> "tuple[int, int] | None":
        return None

    Partition.diverging_epoch = diverging_epoch  # type: ignore[method-assign]


def join_below_epoch_start() -> None:
    """The LESO rule dropped: a follower joins as soon as it has reached the high watermark."""
    from penstock.replica import in_sync

    def may_join(self: Any, follower: Any, high_watermark: int, brokers: Any) -> bool:
        return bool(
            follower.fetch_offset >= high_watermark
            and follower.broker_id not in self.state.isr
            and follower.broker_id in self.replicas
            and in_sync.is_eligible(follower, brokers)
        )

    in_sync.InSync.may_join = may_join  # type: ignore[method-assign]


def skip_fences() -> None:
    """Any registered broker that ever fetched may join, whatever has become of it since."""
    from penstock.cluster import znodes
    from penstock.meta.store import Set
    from penstock.replica import in_sync, isr_writer

    def is_eligible(follower: Any, brokers: Any) -> bool:
        return bool(follower.fetch_offset >= 0 and follower.broker_id in brokers)

    def ops(partition: Any, proposal: Any) -> list[Any]:
        path, data = znodes.state_path(*partition.key), znodes.encode_state(proposal.state)
        return [Set(path, data, proposal.base.partition_epoch)]

    in_sync.is_eligible = is_eligible
    isr_writer._ops = ops


def elect_anybody() -> None:
    from penstock.cluster import transition

    true_elected = transition._elected

    def elected(state: Any, facts: Any) -> Any:
        found = true_elected(state, facts)
        if found is state and (leader := transition._first_active(facts.replicas, facts)):
            return transition._led_by(state._replace(isr=(), elr=(), lke=()), leader)
        return found

    transition._elected = elected


def trust_lossy_disks() -> None:
    from penstock.cluster import registration

    def judge(**_: Any) -> Any:
        return registration.PreviousShutdown.CRASH

    registration.judge_previous_shutdown = judge


def lose_markers() -> None:
    """Every fourth transaction is ended in all of its partitions but one."""
    from penstock.broker.transactions.reach import ClusterMarkers

    true_write = ClusterMarkers.write
    count = 0

    async def write(self: Any, marker: Any, partitions: Iterable[Any]) -> Any:
        nonlocal count
        count += 1
        wanted = list(partitions)
        lost = wanted[-1:] if count % 4 == 0 and len(wanted) > 1 else []
        outcome = await true_write(self, marker, [p for p in wanted if p not in lost])
        return {**outcome, **dict.fromkeys(lost)}

    ClusterMarkers.write = write  # type: ignore[method-assign]


def end_the_next() -> None:
    """A marker ends its own epoch in both versions, and in the newer one that is the next."""
    from penstock.transactions.markers import TransactionMarker

    TransactionMarker.last_epoch_ended = property(  # type: ignore[assignment, method-assign]
        lambda marker: marker.producer_epoch
    )


def store_twice() -> None:
    """A retried batch is taken for a new one."""
    from penstock.storage.producers import producers

    def duplicate_of(_self: Any, _header: Any) -> None:
        return None

    def check_sequence(_entry: Any, _header: Any, _offset: int) -> None:
        return None

    producers.ProducerUpdate.duplicate_of = duplicate_of  # type: ignore[method-assign]
    producers._check_sequence = check_sequence


def hide_aborts() -> None:
    """A reader of committed records is not told which transactions were aborted."""
    from penstock.storage.log.log import Log

    def aborted_transactions(_self: Any, *_: Any, **__: Any) -> list[Any]:
        return []

    Log.aborted_transactions = aborted_transactions  # type: ignore[method-assign]


_LISTED = (
    Mutant(
        name="ack-early",
        text="acks=all is answered before the followers have the records",
        inject=ack_early,
        fault="pause-followers",
        caught_by=frozenset({"lost-write", "inconsistent-offset"}),
    ),
    Mutant(
        name="ignore-followers",
        text="the high watermark is the end of the leader's log",
        inject=ignore_followers,
        fault="pause-followers",
        caught_by=frozenset({"lost-write", "inconsistent-offset", "vanished-read"}),
    ),
    Mutant(
        name="read-past-hw",
        text="consumers read to the end of the leader's log",
        inject=read_past_high_watermark,
        fault="pause-followers",
        caught_by=frozenset({"inconsistent-offset", "vanished-read", "aborted-read"}),
    ),
    Mutant(
        name="truncate-to-hw",
        text="a follower cuts its log at its own high watermark when the leader changes",
        inject=truncate_to_high_watermark,
        fault="kill-successor",
        caught_by=frozenset({"lost-write", "inconsistent-offset", "replica-divergence"}),
    ),
    Mutant(
        name="no-divergence",
        text="a follower's log is never compared with the leader's",
        inject=overlook_divergence,
        fault="pause-followers",
        caught_by=frozenset({"replica-divergence", "inconsistent-offset", "lost-write"}),
    ),
    Mutant(
        name="no-epoch-start",
        text="a follower may join below the start of the leader's epoch",
        inject=join_below_epoch_start,
        fault="join-new-leader",
        caught_by=frozenset({"lost-write", "inconsistent-offset", "vanished-read"}),
    ),
    Mutant(
        name="no-fences",
        text="a fenced or dead broker may join",
        inject=skip_fences,
        fault="join-unseen",
        caught_by=frozenset({"lost-write", "inconsistent-offset", "vanished-read"}),
    ),
    Mutant(
        name="elect-anybody",
        text="a replica that is not in sync is elected",
        inject=elect_anybody,
        fault="return-first",
        caught_by=frozenset({"lost-write", "inconsistent-offset", "vanished-read"}),
    ),
    Mutant(
        name="trust-lossy",
        text="a broker that lost its disk counts as one that merely crashed",
        inject=trust_lossy_disks,
        fault="power-but-one",
        caught_by=frozenset({"lost-write", "inconsistent-offset", "vanished-read"}),
    ),
    Mutant(
        name="lose-markers",
        text="a transaction is not ended in one of its partitions",
        inject=lose_markers,
        fault="nothing",
        caught_by=frozenset({"torn-transaction", "hanging-transaction", "committed-offset"}),
        clients="pipe",
    ),
    Mutant(
        name="end-the-next",
        text="the marker of a transaction also ends the next one of its producer",
        inject=end_the_next,
        fault="slow-coordinator",
        caught_by=frozenset({"undue-error"}),
        clients="transactions",
    ),
    Mutant(
        name="store-twice",
        text="a batch that is sent again is stored again",
        inject=store_twice,
        fault="pause-leader",
        caught_by=frozenset({"duplicate", "reorder"}),
    ),
    Mutant(
        name="hide-aborts",
        text="aborted records are not told from committed ones",
        inject=hide_aborts,
        fault="nothing",
        caught_by=frozenset({"aborted-read"}),
        clients="pipe",
    ),
)
MUTANTS = {mutant.name: mutant for mutant in _LISTED}
