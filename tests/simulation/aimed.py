"""Faults that aim: they wait for the moment at which a single guard stands before a loss.

Chance alone meets such moments once in thousands of runs, for each takes a coincidence of a few
milliseconds. These are drawn like all others, and what follows is again left to chance.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING

from tests.simulation.clock import NATURE
from tests.simulation.cluster import Machine, commit_observers
from tests.simulation.history import Place
from tests.simulation.store import SimStore

from penstock.cluster import znodes
from penstock.cluster.image.image import PartitionState
from penstock.cluster.znodes import FenceNode, FenceState
from penstock.meta.store import Delete, MultiFailed, Op, Result
from penstock.replica.partition import Partition

if TYPE_CHECKING:
    from tests.simulation.faults import Nemesis

_PATIENCE_S = 2.0
_REPLICAS = 3


async def behead(nemesis: "Nemesis") -> None:
    """The leader goes down when a record is committed and nobody has told its follower yet.

    One replica is away at that time and comes back first: it has all that the new leader knows to
    be committed, and not all that is. What keeps it out is where the new leader's epoch begins.
    """
    world = nemesis.world
    place = nemesis.rng.choice([place for place in nemesis.admin.places if place[0] == "safe"])
    state = _state(nemesis, place)
    if state is None or len(state.isr) != _REPLICAS or state.min_isr != _REPLICAS - 1:
        return
    away = world.machine(nemesis.rng.choice([b for b in state.isr if b != state.leader]))
    leader = world.machine(state.leader)
    if away.process is None or leader.process is None or {away, leader} & nemesis.down:
        return
    away.kill()
    nemesis.down |= {away, leader}  # Nobody else starts them meanwhile.
    try:
        if await _committed_without(nemesis, place, leader, away):
            leader.kill()
            world.trace.note("behead", leader.name, place)
            await asyncio.sleep(nemesis.for_s(0.05, 1.0))
    finally:
        nemesis.down.discard(away)
        if away.process is None:
            away.start()
        nemesis.down.discard(leader)
    if leader.process is None:
        await nemesis.down_for(leader, nemesis.for_s(0.5, 5.0))


async def _committed_without(
    nemesis: "Nemesis", place: Place, leader: Machine, away: Machine
) -> bool:
    """Wait for the moment; False: it did not come."""
    found: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def observe(partition: Partition) -> None:
        in_sync = partition.in_sync
        if (
            not found.done()
            and partition.is_leader
            and (partition.topic, partition.partition) == place
            and in_sync is not None
            and away.broker_id not in in_sync.maximal
            and partition.around.broker_id == leader.broker_id
        ):
            found.set_result(None)

    commit_observers.append(observe)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await found
    except TimeoutError:
        return False
    finally:
        commit_observers.remove(observe)
    return True


async def lose_twice(nemesis: "Nemesis") -> None:
    """A machine loses its power, and its next process dies before the controller has acted on it.

    Another is away at that time, so that whoever lost data is asked to lead: it was the last that
    left the in-sync set. What keeps it from leading is that a loss stays known.
    """
    world = nemesis.world
    live = [machine for machine in world.live() if machine not in nemesis.down]
    if world.is_anybody_lossy or len(live) < _REPLICAS:
        return
    away, lossy = nemesis.rng.sample(live, 2)
    away.kill()
    nemesis.down |= {away, lossy}
    try:
        await asyncio.sleep(nemesis.for_s(0.1, 1.5))
        if not world.is_anybody_lossy:  # Another may have lost its power meanwhile.
            lossy.cut_power()
            await asyncio.sleep(nemesis.for_s(0.05, 1.0))
            if await _registers(nemesis, lossy):
                lossy.kill()
                world.trace.note("lose twice", lossy.name)
                await asyncio.sleep(nemesis.for_s(0.02, 0.5))
    finally:
        nemesis.down.discard(lossy)
        if lossy.process is None:
            lossy.start()
        nemesis.down.discard(away)
    await nemesis.down_for(away, nemesis.for_s(0.2, 4.0))


async def _registers(nemesis: "Nemesis", machine: Machine) -> bool:
    """Start it, and wait until the store has its registration."""
    found: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    path = znodes.fence_path(machine.broker_id)

    def observe(store: SimStore, ops: Sequence[Op], _: Sequence[Result]) -> None:
        if store.process is machine.process and any(op.path == path for op in ops):
            nemesis.world.loop.call_soon(_finish, found, context=NATURE)

    observers = nemesis.world.ensemble.observers
    observers.append(observe)
    if machine.process is None:
        machine.start()
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await found
    except TimeoutError:
        return False
    finally:
        observers.remove(observe)
    fence = FenceNode.decode(path, nemesis.world.ensemble.tree.get(path)[0])
    return fence.state is FenceState.STARTING


async def oust(nemesis: "Nemesis") -> None:
    """The operator deletes the controller's node, while what it writes is still on its way.

    Its session lives on, so the store would take what it wrote. What refuses it is the check of
    the controller's epoch.
    """
    world, rng = nemesis.world, nemesis.rng
    ensemble, controller = world.ensemble, _controller(nemesis)
    if controller is None:
        return
    delay_s = rng.choice((0.02, 0.1, 0.4))
    ensemble.slow(controller.name, delay_s)
    try:
        asking = asyncio.create_task(nemesis.admin.touch(controller.broker_id))
        await asyncio.sleep(delay_s * rng.random() * 1.5)
        world.trace.note("oust", controller.name)
        _delete(nemesis, znodes.CONTROLLER)
        await asyncio.sleep(delay_s * 3)
    finally:
        ensemble.slow(controller.name, 0.0)
    await asking


async def lower_in_need(nemesis: "Nemesis") -> None:
    """Too few are in sync, the operator lowers what is needed, and it takes long to be written.

    Meanwhile brokers know the topic's new setting and not the partition's new state. What keeps
    the high watermark where the ELR counts on it is that it obeys the state.
    """
    machine = nemesis.one()
    if machine is None:
        return
    await nemesis.admin.change_min_isr("3")
    machine.kill()
    nemesis.down.add(machine)
    try:
        await asyncio.sleep(0.2 + nemesis.for_s(0.0, 1.0))
        controller = _controller(nemesis)
        if controller is not None:
            nemesis.world.ensemble.slow(controller.name, nemesis.rng.choice((0.05, 0.3)))
            await nemesis.admin.change_min_isr(nemesis.rng.choice(("1", "2")))
            await asyncio.sleep(nemesis.for_s(0.1, 1.0))
            nemesis.world.ensemble.slow(controller.name, 0.0)
    finally:
        nemesis.down.discard(machine)
    await nemesis.down_for(machine, nemesis.for_s(0.01, 2.0))


def _controller(nemesis: "Nemesis") -> Machine | None:
    tree = nemesis.world.ensemble.tree
    if not tree.exists(znodes.CONTROLLER):
        return None
    return nemesis.world.machine(znodes.decode_controller(tree.get(znodes.CONTROLLER)[0]))


async def unlist(nemesis: "Nemesis") -> None:
    """A broker's registration is deleted, while its session lives."""
    machine = nemesis.rng.choice(nemesis.world.machines)
    nemesis.world.trace.note("unlist", machine.name)
    _delete(nemesis, znodes.broker_path(machine.broker_id))


def _delete(nemesis: "Nemesis", path: str) -> None:
    ensemble = nemesis.world.ensemble
    if not ensemble.is_up:
        return
    try:
        ensemble.write(nemesis.operator, [Delete(path)])
    except MultiFailed:
        return  # It was gone already.


def _state(nemesis: "Nemesis", place: Place) -> PartitionState | None:
    tree, path = nemesis.world.ensemble.tree, znodes.state_path(*place)
    if not tree.exists(path):
        return None
    data, stat = tree.get(path)
    return znodes.decode_state(path, data, stat.version)


def _finish(found: "asyncio.Future[None]") -> None:
    if not found.done():
        found.set_result(None)


AIMED: dict[str, Callable[["Nemesis"], Coroutine[None, None, None]]] = {
    "behead": behead,
    "lose twice": lose_twice,
    "oust": oust,
    "unlist": unlist,
}
