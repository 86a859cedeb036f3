"""The product with one guard removed: each of these must be noticed, or the simulator is blind.

`python -m tests.simulation --mutant NAME` runs one. The seeds beside them are those that noticed
it last; they are where the search begins, for a change of the product moves them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.cluster import registration, transition
from penstock.cluster.fenced_writes import FencedWrites
from penstock.cluster.image import PartitionState
from penstock.cluster.transition import Facts
from penstock.cluster.znodes import PreviousShutdown
from penstock.meta.store import ANY_VERSION, Check, Op
from penstock.replica import following, in_sync, isr_writer
from penstock.replica.in_sync import InSync
from penstock.replica.partition import Partition
from penstock.storage import producers


class Mutant(NamedTuple):
    apply: Callable[[], None]
    seed: int  # Where the search begins.


def _without_fence_check() -> None:
    real = isr_writer._ops

    def ops(*work: Any) -> list[Op]:
        return [op for op in real(*work) if not isinstance(op, Check)]

    isr_writer._ops = ops
    in_sync.is_eligible = lambda follower, brokers: follower.broker_id in brokers


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
    def cut(partition: Partition, leader_epoch: int, leader_end_offset: int) -> int:
        end = min(partition.log.high_watermark, partition.log.log_end_offset)
        partition.log.truncate_to(end)
        return end

    following.cut_where_logs_part = cut


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
    real = registration._closed

    def closed(newcomer: Any, _: Any) -> Any:
        return real(newcomer, None)

    real_judge = registration.judge_previous_shutdown

    def judge(*, last_boot_id: Any, boot_id: Any, fence: Any, **facts: Any) -> PreviousShutdown:
        if fence is not None and fence.prev_shutdown is PreviousShutdown.LOSSY:
            return PreviousShutdown.CRASH
        return real_judge(last_boot_id=last_boot_id, boot_id=boot_id, fence=fence, **facts)

    registration._closed = closed
    registration.judge_previous_shutdown = judge


def _electing_anybody() -> None:
    def elected(state: PartitionState, facts: Facts) -> PartitionState:
        active = [replica for replica in facts.replicas if replica in facts.active]
        return transition._led_by(state, active[0]) if active else state

    transition._elected = elected


def _without_controller_fence() -> None:
    real = FencedWrites.__init__

    def new(self: FencedWrites, *arguments: Any) -> None:
        real(self, *arguments)
        self._check = self._check._replace(version=ANY_VERSION)

    FencedWrites.__init__ = new  # type: ignore[method-assign]


def _without_sequences() -> None:
    producers.ProducerUpdate.duplicate_of = lambda self, _: None  # type: ignore[method-assign]
    producers._check_sequence = lambda *_: None


MUTANTS: dict[str, Mutant] = {
    "fence check": Mutant(_without_fence_check, 1),
    "maximal ISR": Mutant(_without_maximal_isr, 0),
    "min ISR gate": Mutant(_without_min_isr_gate, 0),
    "leader epoch": Mutant(_without_leader_epoch_check, 0),
    "cut by epochs": Mutant(_truncating_to_the_high_watermark, 0),
    "cut at all": Mutant(_without_truncation, 1),
    "wait for the high watermark": Mutant(_acknowledging_at_once, 0),
    "loss is told": Mutant(_taking_loss_for_a_crash, 0),
    "elect of ISR and ELR": Mutant(_electing_anybody, 6),
    "sequences": Mutant(_without_sequences, 0),
}

# Needed by the model in tests/unit/cluster/test_isr_model.py, which does notice the first two, and
# not noticed here on the first 40 seeds: each takes a coincidence of a few milliseconds.
ELUSIVE: dict[str, Mutant] = {
    "epoch start": Mutant(_without_epoch_start, 0),
    "loss is sticky": Mutant(_forgetting_a_loss, 0),
    "controller fence": Mutant(_without_controller_fence, 0),
}
