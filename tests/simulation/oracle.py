"""What only the simulator can see: the store and every broker at one and the same moment.

Writes to the store are judged as they happen, brokers every few hundredths of a second. The
numbers are those of the invariants in docs/adr/0019-simulator.md.
"""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from tests.simulation.cluster import Machine, World, commit_observers
from tests.simulation.history import Place
from tests.simulation.store import SimStore

from penstock.cluster import znodes
from penstock.cluster.image.image import NO_LEADER, PartitionState
from penstock.cluster.transition import RECOVERING
from penstock.cluster.znodes import FenceNode, FenceState, TopicNode
from penstock.meta.store import Create, Op, Result, Set
from penstock.replica.partition import Partition

_SAMPLE_S = 0.05
_JUDGES_EVERY = 4  # Samples; what they look at does not pass by itself.

# Read again and again, and seldom changed.
_fence_node = lru_cache(maxsize=1000)(FenceNode.decode)
_topic_node = lru_cache(maxsize=1000)(TopicNode.decode)


class Judge(Protocol):
    def look(self) -> None: ...


class Oracle:
    def __init__(self, world: World) -> None:
        self._world = world
        self._history = world.history
        self._tree = world.ensemble.tree
        self._states: dict[Place, PartitionState] = {}
        self._committed: dict[tuple[bytes, int], int] = {}  # By topic id: the highest watermark.
        self._stalled: dict[tuple[Place, str], tuple[int, int, int]] = {}
        self.elections = 0
        self.isr_changes = 0
        self.judges: list[Judge] = []  # Those that look as often, each at something of its own.
        world.ensemble.observers.append(self._judge_write)
        commit_observers.append(self._note_committed)

    # The store, write by write

    def _judge_write(self, store: SimStore, ops: Sequence[Op], _: Sequence[Result]) -> None:
        for op in ops:
            if isinstance(op, (Create, Set)) and op.path.endswith("/state"):
                parts = op.path.split("/")
                if parts[1:3] == ["brokers", "topics"]:
                    self._judge_state((parts[3], int(parts[5])), op.path)

    def _judge_state(self, place: Place, path: str) -> None:
        data, stat = self._tree.get(path)
        state = znodes.decode_state(path, data, stat.version)
        before = self._states.get(place)
        self._states[place] = state
        if before is None or stat.version == 0:
            return
        if place[0] not in self._history.loose_topics:
            self._judge_candidates(place, state)
        if state.leader_epoch < before.leader_epoch:
            self._violate("I3", place, before, state, "the leader epoch went back")
        is_same_epoch = state.leader_epoch == before.leader_epoch
        if is_same_epoch and state.leader != before.leader:
            self._violate("I3", place, before, state, "two leaders in one epoch")
        if state.leader != NO_LEADER and state.leader not in state.isr:
            self._violate("I3", place, before, state, "the leader is not in its in-sync set")
        replicas = self.replicas(place)
        if replicas and not {*state.isr, *state.elr, *state.lke} <= {*replicas}:
            self._violate("2.5", place, before, state, f"not all of them are replicas {replicas}")
        joined = {*state.isr} - {*before.isr}
        for broker in (joined | {state.leader}) - {NO_LEADER}:
            if (broker in joined or state.leader != before.leader) and not self.is_active(broker):
                self._violate("I7", place, before, state, f"broker {broker} is not active")
        if not is_same_epoch:
            self.elections += 1
            is_certain = state.leader in (NO_LEADER, before.leader, *before.isr, *before.elr)
            if not is_certain and state.leader_recovery_state != RECOVERING:
                self._violate("2.4", place, before, state, "an unclean election is kept silent")
            epoch, _ = self._tree.get(znodes.CONTROLLER_EPOCH)
            if state.controller_epoch != int(epoch):
                self._violate("I13", place, before, state, f"the controller epoch is {epoch!r}")
        elif joined or {*before.isr} - {*state.isr}:
            self.isr_changes += 1

    def _violate(
        self, rule: str, place: Place, before: PartitionState, after: PartitionState, why: str
    ) -> None:
        self._history.violate(f"{rule} {place}: {why}: {before} -> {after}")

    def replicas(self, place: Place) -> tuple[int, ...]:
        path = znodes.topic_path(place[0])
        if not self._tree.exists(path):
            return ()
        node = _topic_node(path, self._tree.get(path)[0])
        return tuple(node.partitions.get(place[1], ()))

    def topic_id(self, place: Place) -> bytes | None:
        path = znodes.topic_path(place[0])
        if not self._tree.exists(path):
            return None
        return _topic_node(path, self._tree.get(path)[0]).topic_id

    def fence(self, broker_id: int) -> FenceNode | None:
        path = znodes.fence_path(broker_id)
        if not self._tree.exists(path):
            return None
        return _fence_node(path, self._tree.get(path)[0])

    def is_active(self, broker_id: int) -> bool:
        fence = self.fence(broker_id)
        return fence is not None and fence.state is FenceState.ACTIVE

    def places(self) -> list[Place]:
        found = []
        for topic in self._tree.children(znodes.TOPICS):
            path = znodes.topic_path(topic)
            node = _topic_node(path, self._tree.get(path)[0])
            found += [(topic, number) for number in sorted(node.partitions)]
        return found

    def state(self, place: Place) -> PartitionState | None:
        path = znodes.state_path(*place)
        if not self._tree.exists(path):
            return None
        data, stat = self._tree.get(path)
        return znodes.decode_state(path, data, stat.version)

    def leads(self, place: Place, broker_id: int) -> bool:
        state = self.state(place)
        return state is not None and state.leader == broker_id

    # The brokers, again and again

    async def watch(self) -> None:
        for count in itertools.count():
            await asyncio.sleep(_SAMPLE_S)
            self._sample()
            if count % _JUDGES_EVERY == 0:
                self._ask_judges()

    def look(self) -> None:
        self._sample()
        self._ask_judges()

    def _ask_judges(self) -> None:
        for judge in self.judges:
            judge.look()

    def _sample(self) -> None:
        for machine, partition in self._hosted():
            self._note_watermark(machine, partition)
        for place, state in list(self._states.items()):
            if place[0] not in self._history.loose_topics:
                self._judge_candidates(place, state)
        for machine in self._world.machines:
            if machine.is_lossy and self._is_whole(machine):
                machine.is_lossy = False
                self._world.trace.note("whole again", machine.name)

    def _hosted(self) -> Iterator[tuple[Machine, Partition]]:
        for machine in self._world.machines:
            if machine.broker is not None:
                for partition in machine.broker.partitions.hosted():
                    yield machine, partition

    def _note_watermark(self, machine: Machine, partition: Partition) -> None:
        if not partition.is_leader:
            return
        place: Place = (partition.topic, partition.partition)
        high_watermark = partition.log.high_watermark
        self._note_committed(partition)
        in_sync, stored = partition.in_sync, self._states.get(place)
        if in_sync is None or stored is None or self.topic_id(place) != partition.topic_id:
            return
        state = in_sync.state
        may_move = len(state.isr) >= state.min_isr
        is_current = stored.leader_epoch == state.leader_epoch
        if may_move and is_current and not {*stored.isr, *stored.elr} <= {*in_sync.maximal}:
            self._history.violate(
                f"I4 {place} on {machine.name}: {in_sync.maximal} may move the high watermark, "
                f"the store has {stored}"
            )
        self._judge_standstill(place, machine, state, high_watermark)

    def _note_committed(self, partition: Partition) -> None:
        if partition.is_leader:
            known = (partition.topic_id, partition.partition)
            self._committed[known] = max(
                self._committed.get(known, 0), partition.log.high_watermark
            )

    def _judge_standstill(
        self, place: Place, machine: Machine, state: PartitionState, high_watermark: int
    ) -> None:
        key = (place, machine.name)
        if len(state.isr) >= state.min_isr:
            self._stalled.pop(key, None)
            return
        now = (state.leader_epoch, state.partition_epoch, high_watermark)
        before = self._stalled.get(key, now)
        if before[:2] == now[:2] and before[2] != high_watermark:
            self._history.violate(
                f"I9 {place} on {machine.name}: the high watermark went from {before[2]} to "
                f"{high_watermark} with {state}"
            )
        self._stalled[key] = now

    def _judge_candidates(self, place: Place, state: PartitionState) -> None:
        """I5: whoever may be elected now has every committed record."""
        for broker_id in {*state.isr, *state.elr}:
            machine = self._world.machine(broker_id)
            hosted = self._hosted_as_active(machine, place)
            if hosted is None:
                continue
            committed = self._committed.get((hosted.topic_id, place[1]), 0)
            if hosted.log.log_end_offset < committed:
                self._history.violate(
                    f"I5 {place}: {machine.name} has {hosted.log.log_end_offset} of {committed} "
                    f"committed records and may lead: {state}"
                )

    def _hosted_as_active(self, machine: Machine, place: Place) -> Partition | None:
        """The replica, if the cluster counts on the process that has it."""
        if machine.broker is None or not self._is_admitted(machine):
            return None
        return machine.broker.partitions.get(*place)

    def _is_admitted(self, machine: Machine) -> bool:
        fence = self.fence(machine.broker_id)
        broker = machine.broker
        if fence is None or broker is None or broker.member is None:
            return False
        return fence.state is FenceState.ACTIVE and fence.epoch == broker.member.broker_epoch

    def _is_whole(self, machine: Machine) -> bool:
        """Whether it is back in every in-sync set since it lost data."""
        if not self._is_admitted(machine):
            return False
        for place in self.places():
            state = self.state(place)
            replicas = self.replicas(place)
            if state and machine.broker_id in replicas and machine.broker_id not in state.isr:
                return False
        return True

    # The end

    def unsettled(self) -> list[str]:
        """I32: what is not yet as it should be in a healthy cluster."""
        wrong = []
        for place in self.places():
            state = self.state(place)
            replicas = self.replicas(place)
            if state is None or state.leader == NO_LEADER or {*state.isr} != {*replicas}:
                wrong.append(f"{place}: {state} of {replicas}")
                continue
            for machine in self._world.machines:
                seen = machine.broker and machine.broker.image.partition(*place)
                if not seen or seen.state != state or seen.replicas != replicas:
                    wrong.append(f"{machine.name} sees {place} as {seen}, it is {state}")
            leader = self._world.machine(state.leader).broker
            hosted = leader and leader.partitions.get(*place)
            if not hosted or not hosted.is_leader:
                wrong.append(f"broker {state.leader} does not lead {place}")
        return wrong
