"""Brokers that come back: what the cluster knows of them, against what really happened to them.

I8   Who lost data says so when it registers, however often it goes down before anybody acts on
     it, and is in no in-sync set and no ELR when the cluster counts on it again.
I14  Nobody leads by what was meant for an earlier incarnation of it: only a registration that the
     controller has opened leads.
I15  Who runs is registered, under its own session: asked once the cluster has settled.
"""

from collections.abc import Sequence

from tests.simulation.cluster import Machine, World
from tests.simulation.network import host_name
from tests.simulation.oracle import Oracle
from tests.simulation.store import SimStore

from penstock.cluster import znodes
from penstock.cluster.transition import RECOVERING
from penstock.cluster.znodes import FenceNode, FenceState, PreviousShutdown
from penstock.meta.store import Create, Op, Result, Set


class Comebacks:
    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._history = world.history
        self._tree = world.ensemble.tree
        self._known: set[int] = set()  # Brokers that have registered before.
        self._starts: dict[int, tuple[str, int]] = {}  # The incarnation, and the machine's boots.
        self._opened: set[tuple[int, int]] = set()  # Brokers and epochs that have been active.
        world.ensemble.observers.append(self._judge)

    def _judge(self, store: SimStore, ops: Sequence[Op], _: Sequence[Result]) -> None:
        for op in ops:
            if isinstance(op, (Create, Set)) and op.path.startswith(znodes.FENCES + "/"):
                machine = self._world.machine(int(op.path.rpartition("/")[2]))
                fence = FenceNode.decode(op.path, op.data)
                if fence.state is FenceState.STARTING and store.process.name == machine.name:
                    self._registered(machine, fence)
                elif fence.state is FenceState.ACTIVE:
                    self._activated(machine, fence)

    # I8

    def _registered(self, machine: Machine, fence: FenceNode) -> None:
        is_first = machine.broker_id not in self._known
        self._known.add(machine.broker_id)
        self._starts[machine.broker_id] = (fence.incarnation, machine.boots)
        is_told = fence.prev_shutdown is PreviousShutdown.LOSSY
        if machine.owes_loss and not is_first and not is_told:
            self._history.violate(f"I8 {machine.name} lost data and registers as {fence}")

    def _activated(self, machine: Machine, fence: FenceNode) -> None:
        self._opened.add((machine.broker_id, fence.epoch))
        if not machine.owes_loss:
            return
        if self._starts.get(machine.broker_id) != (fence.incarnation, machine.boots):
            return  # What is opened here is the life before the power went.
        machine.owes_loss = False
        for place in self._oracle.places():
            state = self._oracle.state(place)
            if state is None or machine.broker_id not in (*state.isr, *state.elr):
                continue
            # The last that may know anything leads, and says what that means.
            is_told = state.leader_recovery_state == RECOVERING and len(state.isr) == 1
            if not is_told:
                self._history.violate(f"I8 {machine.name} lost data and counts in {place}: {state}")

    # I14

    def look(self) -> None:
        for machine in self._world.machines:
            broker = machine.broker
            if broker is None or broker.member is None:
                continue
            epoch = broker.member.broker_epoch
            if (machine.broker_id, epoch) in self._opened:
                continue
            led = [str(p) for p in broker.partitions.hosted() if p.is_leader]
            if led:
                self._history.violate(
                    f"I14 {machine.name} leads {led} with epoch {epoch}, which was never active"
                )

    # I15

    def unsettled(self) -> list[str]:
        return [
            f"I15 {machine.name} is not registered: {wrong}"
            for machine in self._world.machines
            if (wrong := self._why_not_registered(machine))
        ]

    def _why_not_registered(self, machine: Machine) -> str:
        broker, path = machine.broker, znodes.broker_path(machine.broker_id)
        if broker is None or broker.member is None:
            return "it does not serve"
        if not self._tree.exists(path):
            return f"{path} is not there"
        _, stat = self._tree.get(path)
        fence, epoch = self._oracle.fence(machine.broker_id), broker.member.broker_epoch
        if stat.czxid != epoch or fence is None or fence.epoch != epoch:
            return f"it has epoch {epoch}, the store {stat} and {fence}"
        owners = [
            s.session_id for s in self._world.ensemble.sessions_of(host_name(machine.broker_id))
        ]
        return "" if stat.owner in owners else f"session {stat.owner:#x} is over"
