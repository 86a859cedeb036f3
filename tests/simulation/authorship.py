"""Who writes what: judged write by write, by the hand that wrote and not by what it believes.

I13  From the moment a controller is elected nobody else writes what controllers write. Leaders
     write the in-sync sets of the partitions they lead, brokers their own registration.
I16  Whoever was refused because somebody else wrote first reads before it tries again.

A session that is over writes nothing, whatever it checks, so a former controller can only be met
where it lost its office and not its session: the operator took it away (`aimed.oust`).
"""

from collections.abc import Sequence

from tests.simulation.cluster import World
from tests.simulation.network import host_name
from tests.simulation.store import SimStore

from penstock.cluster import znodes
from penstock.cluster.image.image import PartitionState
from penstock.cluster.znodes import FenceNode, FenceState
from penstock.meta.store import BadVersion, Check, Create, Delete, MultiFailed, Op, Result, Set

_OF_CONTROLLERS = (znodes.TOPICS + "/", "/config/")


class Authorship:
    def __init__(self, world: World) -> None:
        self._history = world.history
        self._tree = world.ensemble.tree
        self._names = {machine.name for machine in world.machines}
        self._controller: SimStore | None = None
        self._led: dict[str, tuple[int, int]] = {}  # By the state's path: leader and its epoch.
        # The last version for which a write of a single state was refused, and on what connection.
        self._refused: dict[tuple[int, str], tuple[int, int]] = {}
        world.ensemble.observers.append(self._judge)
        world.ensemble.refusal_observers.append(self._note_refusal)

    # I13

    def _judge(self, store: SimStore, ops: Sequence[Op], _: Sequence[Result]) -> None:
        if any(op.path == znodes.CONTROLLER_EPOCH and isinstance(op, Set) for op in ops):
            self._controller = store
        for op in ops:
            if not isinstance(op, Check) and store.process.name in self._names:
                self._judge_op(store, op)

    def _judge_op(self, store: SimStore, op: Op) -> None:
        is_controller = store is self._controller
        if op.path.endswith("/state") and op.path.startswith(znodes.TOPICS):
            is_right = self._judge_state(store, op) or is_controller
        elif op.path.startswith(znodes.FENCES + "/"):
            is_right = is_controller or self._is_own_registration(store, op)
        elif op.path.startswith(_OF_CONTROLLERS) and op.path not in znodes.PERSISTENT_PATHS:
            is_right = is_controller
        else:
            return
        if not is_right:
            office = self._controller.process.name if self._controller else "nobody"
            self._history.violate(
                f"I13 {store.process.name} writes {op.path}, the controller is {office}: {op}"
            )

    def _judge_state(self, store: SimStore, op: Op) -> bool:
        """Whether it is a leader's own write, within its epoch."""
        if not isinstance(op, (Create, Set)):
            self._led.pop(op.path, None)
            return False
        state = self._state(op.path)
        before, self._led[op.path] = self._led.get(op.path), (state.leader, state.leader_epoch)
        is_by_leader = store.process.name == host_name(state.leader)
        return is_by_leader and before == (state.leader, state.leader_epoch)

    def _state(self, path: str) -> PartitionState:
        data, stat = self._tree.get(path)
        return znodes.decode_state(path, data, stat.version)

    def _is_own_registration(self, store: SimStore, op: Op) -> bool:
        if isinstance(op, Delete) or op.path != znodes.FENCES + "/" + _number(store.process.name):
            return False
        return FenceNode.decode(op.path, op.data).state is FenceState.STARTING

    # I16

    def _note_refusal(self, store: SimStore, ops: Sequence[Op], failure: MultiFailed) -> None:
        """A write of many that is refused is tried again one by one, so only those count."""
        states = [op for op in ops if isinstance(op, Set) and op.path.endswith("/state")]
        if store is self._controller or len(states) != 1 or failure.op is not states[0]:
            return
        if not isinstance(failure.reason, BadVersion):
            return
        (wanted,) = states
        key, tried = (store.session_id, wanted.path), (wanted.version, store.generation)
        if self._refused.get(key) == tried:
            self._history.violate(
                f"I16 {store.process.name} was told that version {wanted.version} of {wanted.path} "
                "is past and tries it again"
            )
        self._refused[key] = tried


def _number(name: str) -> str:
    return name.rpartition("-")[2]
