"""What leaders believe of their followers, against what the followers have.

I5   Whoever is proposed for the in-sync set has all that its leader began its epoch with.
I6   Who joins has fetched in this leader epoch, by the registration that is active now.
I11  Up to where it fetched in an epoch a follower's log is its leader's, epoch by epoch: whatever
     it missed, it has been cut.
I34  A follower has what its leader counts on: a fetch out of order does not change that.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.simulation.cluster import Machine, World
from tests.simulation.history import Place
from tests.simulation.oracle import Oracle
from tests.simulation.store import SimStore

from penstock.cluster import znodes
from penstock.meta.store import Op, Result, Set
from penstock.replica.in_sync import Follower, InSync, Proposal
from penstock.replica.partition import Partition
from penstock.storage.log.leader_epochs import EpochStart

_propose = InSync.propose
_proposal_observers: list[Callable[[InSync, Proposal], None]] = []


def _observed(in_sync: InSync, **facts: Any) -> Proposal | None:
    proposal = _propose(in_sync, **facts)
    if proposal is not None:
        for observe in _proposal_observers:
            observe(in_sync, proposal)
    return proposal


InSync.propose = _observed  # type: ignore[method-assign]


class Followers:
    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._history = world.history
        self._tree = world.ensemble.tree
        world.ensemble.observers.append(self._judge)
        _proposal_observers.append(self._judge_proposal)

    # Joining

    def _judge_proposal(self, in_sync: InSync, proposal: Proposal) -> None:
        start = in_sync.epoch_start_offset
        for broker_id in proposal.joining:
            follower = in_sync.followers[broker_id]
            if follower.fetch_offset < start:
                self._history.violate(
                    f"I5 {follower} shall join below {start}, where the epoch of its leader began: "
                    f"{proposal}"
                )

    def _judge(self, store: SimStore, ops: Sequence[Op], _: Sequence[Result]) -> None:
        for op in ops:
            parts = op.path.split("/")
            if isinstance(op, Set) and parts[-1] == "state" and parts[1:3] == ["brokers", "topics"]:
                self._judge_joining((parts[3], int(parts[5])), op.path, store)

    def _judge_joining(self, place: Place, path: str, store: SimStore) -> None:
        data, stat = self._tree.get(path)
        state = znodes.decode_state(path, data, stat.version)
        if state.leader <= 0:
            return
        leader = self._world.machine(state.leader)
        hosted = leader.broker and leader.broker.partitions.get(*place)
        if store.process is not leader.process or not hosted or hosted.in_sync is None:
            return
        in_sync = hosted.in_sync
        if not hosted.is_leader or in_sync.state.leader_epoch != state.leader_epoch:
            return
        for broker_id in {*state.isr} - {*in_sync.state.isr} - {state.leader}:
            follower, fence = in_sync.followers.get(broker_id), self._oracle.fence(broker_id)
            if follower is None or follower.fetch_offset < 0:
                self._history.violate(f"I6 {place}: broker {broker_id} joins and has not fetched")
            elif fence is None or follower.broker_epoch != fence.epoch:
                self._history.violate(
                    f"I6 {place}: {follower} joins, which is not the one that is active: {fence}"
                )

    # Following

    def look(self) -> None:
        for leader, follower, copy in self._followed():
            self._judge_copy(leader, follower, copy)

    def _followed(self) -> Iterator[tuple[Partition, Follower, Partition]]:
        """Leaders, what they believe, and what is there; where both are in the same epoch."""
        for machine in self._world.machines:
            for leader in machine.broker.partitions.hosted() if machine.broker else ():
                if not leader.is_leader or leader.in_sync is None:
                    continue
                for broker_id, follower in leader.in_sync.followers.items():
                    copy = self._copy(self._world.machine(broker_id), leader, follower)
                    if copy is not None:
                        yield leader, follower, copy

    def _copy(self, machine: Machine, leader: Partition, follower: Follower) -> Partition | None:
        broker = machine.broker
        if follower.fetch_offset < 0 or broker is None or broker.member is None:
            return None
        copy = broker.partitions.get(leader.topic, leader.partition)
        if copy is None or copy.topic_id != leader.topic_id or copy.is_leader:
            return None
        is_same = copy.leader_epoch == leader.leader_epoch
        return copy if is_same and broker.member.broker_epoch == follower.broker_epoch else None

    def _judge_copy(self, leader: Partition, follower: Follower, copy: Partition) -> None:
        end = copy.log.log_end_offset
        if end < follower.fetch_offset:
            self._history.violate(f"I34 {leader} counts on {follower}, whose log ends at {end}")
            return
        if leader.log.epochs == copy.log.epochs:
            return  # Mostly so, and the rest takes time.
        start = max(leader.log.log_start_offset, copy.log.log_start_offset)
        ours = _within(leader.log.epochs, start, follower.fetch_offset)
        theirs = _within(copy.log.epochs, start, follower.fetch_offset)
        if ours != theirs:
            self._history.violate(
                f"I11 {leader} has {ours} in [{start}, {follower.fetch_offset}), {follower} has "
                f"{theirs}"
            )


def _within(epochs: Sequence[EpochStart], start: int, end: int) -> list[tuple[int, int]]:
    """Which epochs the offsets of [start, end) have, and from where on."""
    found: list[tuple[int, int]] = []
    for epoch, epoch_start in epochs:
        if epoch_start >= end:
            break
        if epoch_start <= start:
            found.clear()
        found.append((epoch, max(epoch_start, start)))
    return found if end > start else []
