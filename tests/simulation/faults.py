"""What goes wrong, when and for how long: drawn from the seed, a few kinds of faults per run.

Not every kind in every run: a run with few kinds goes deeper into each, and what one kind hides
another run without it shows.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass

from tests.simulation.admin import Admin
from tests.simulation.aimed import AIMED, lower_in_need
from tests.simulation.clock import NATURE, Process
from tests.simulation.cluster import Machine, World
from tests.simulation.store import SimStore
from tests.simulation.topic_life import elect_uncleanly, rebirth, trim

from penstock.meta.store import Op, Result

Fault = Callable[["Nemesis"], Coroutine[None, None, None]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What this run is about."""

    kinds: tuple[str, ...]
    mean_pause_s: float
    duration_s: float

    @classmethod
    def drawn(cls, rng: random.Random, duration_s: float) -> "Plan":
        kinds = rng.sample(sorted(FAULTS), rng.randint(2, 6))
        if "lower min ISR" in kinds and not _LOSSY.isdisjoint(kinds):
            kinds.remove("lower min ISR")  # One replica would do, and its power may be cut.
        return cls(
            kinds=tuple(sorted(kinds)),
            mean_pause_s=rng.choice((0.7, 1.5, 3.0)),
            duration_s=duration_s,
        )

    @property
    def may_lose_unflushed(self) -> bool:
        return not _LOSSY.isdisjoint(self.kinds)


class Nemesis:
    def __init__(self, world: World, admin: Admin, plan: Plan) -> None:
        self.world = world
        self.admin = admin
        self.plan = plan
        self.rng = world.rng("faults")
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_raging = False
        self.down: set[Machine] = set()  # Somebody will start these again.
        self.operator = world.ensemble.open(Process(world.loop, "operator"), timeout_s=3600)
        if "strike" in plan.kinds:
            world.ensemble.observers.append(self._maybe_strike)

    def _maybe_strike(self, store: SimStore, ops: Sequence[Op], _: Sequence[Result]) -> None:
        """Just when something was written, whoever wrote it or somebody else goes down."""
        is_of_note = any(op.path.endswith("/state") or "/fence/" in op.path for op in ops)
        if not self._is_raging or not is_of_note or self.rng.random() >= 0.06:
            return
        machines = self.world.machines
        writer = next((m for m in machines if m.name == store.process.name), None)
        victim = writer if self.rng.random() < 0.4 else self.rng.choice(machines)
        if victim is not None:
            strike = self.rng.choice((_strike_dead, _strike_dumb))
            self.world.loop.call_later(
                self.rng.random() * 0.004,
                lambda: self._begin(strike(self, victim), "strike"),
                context=NATURE,
            )

    def _begin(self, fault: Coroutine[None, None, None], name: str) -> None:
        if not self._is_raging:
            fault.close()
            return
        task = asyncio.create_task(fault, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def rage(self) -> None:
        end_s = self.world.loop.time() + self.plan.duration_s
        self._is_raging = True
        while self.world.loop.time() < end_s:
            await asyncio.sleep(self.rng.expovariate(1 / self.plan.mean_pause_s))
            kind = self.rng.choice(self.plan.kinds)
            self._begin(FAULTS[kind](self), kind)

    async def heal(self) -> None:
        """Everything runs, everybody reaches everybody, and nothing more happens."""
        self._is_raging = False
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        world = self.world
        world.trace.note("heal")
        world.network.heal_all()
        world.network.is_rough = False
        world.ensemble.heal_all()
        for machine in world.machines:
            if machine.process is not None and machine.process.is_paused:
                machine.process.resume()

    async def keep_running(self) -> None:
        """Somebody operates these machines: a broker that gave up is started again."""
        while True:
            await asyncio.sleep(1.0)
            for machine in self.world.machines:
                if machine.process is None and machine not in self.down:
                    machine.start()

    def one(self) -> Machine | None:
        """A machine whose broker runs and is not stopped already."""
        live = self.world.live()
        return self.rng.choice(live) if live else None

    def for_s(self, low_s: float, high_s: float) -> float:
        # Mostly short, seldom long: both sides of every timeout are met.
        return low_s + (high_s - low_s) * self.rng.random() ** 2

    async def down_for(self, machine: Machine, wait_s: float) -> None:
        self.down.add(machine)
        try:
            await asyncio.sleep(wait_s)
        finally:
            self.down.discard(machine)
            if machine.process is None:
                machine.start()


# Processes and machines


async def kill(nemesis: Nemesis) -> None:
    if machine := nemesis.one():
        machine.kill()
        await nemesis.down_for(machine, nemesis.for_s(0.05, 8.0))


async def bounce(nemesis: Nemesis) -> None:
    """Back before anybody notices that it was gone."""
    if machine := nemesis.one():
        machine.kill()
        await nemesis.down_for(machine, 0.001)


async def kill_all(nemesis: Nemesis) -> None:
    machines = nemesis.world.live()
    for machine in machines:
        machine.kill()
    await asyncio.gather(*(nemesis.down_for(m, nemesis.for_s(0.1, 6.0)) for m in machines))


async def _strike_dead(nemesis: Nemesis, machine: Machine) -> None:
    if machine.process is not None:
        machine.kill()
        await nemesis.down_for(machine, nemesis.for_s(0.02, 4.0))


async def _strike_dumb(nemesis: Nemesis, machine: Machine) -> None:
    if machine.process is not None and not machine.process.is_paused:
        await _pause(nemesis, machine, nemesis.for_s(0.05, 6.0))


async def strike(nemesis: Nemesis) -> None:
    """What this kind does it does when the store is written: see `Nemesis`."""


async def power(nemesis: Nemesis) -> None:
    if nemesis.world.is_anybody_lossy:
        return
    if machine := nemesis.one():
        machine.cut_power()
        await nemesis.down_for(machine, nemesis.for_s(0.3, 8.0))
        if nemesis.rng.random() < 0.5:
            # It goes down again before the cluster has dealt with the first time.
            await asyncio.sleep(nemesis.rng.random() * nemesis.rng.choice((0.04, 0.3, 3.0)))
            if machine.process is not None:
                machine.kill()
                await nemesis.down_for(machine, nemesis.for_s(0.05, 3.0))


async def pause(nemesis: Nemesis) -> None:
    if machine := nemesis.one():
        await _pause(nemesis, machine, nemesis.for_s(0.2, 9.0))


async def _pause(nemesis: Nemesis, machine: Machine, wait_s: float) -> None:
    process = machine.process
    assert process is not None
    nemesis.world.trace.note("pause", machine.name)
    process.pause()
    await asyncio.sleep(wait_s)
    if not process.is_dead and process.is_paused:
        nemesis.world.trace.note("resume", machine.name)
        process.resume()


async def restart(nemesis: Nemesis) -> None:
    """A controlled shutdown, as in a rolling upgrade."""
    if machine := nemesis.one():
        nemesis.down.add(machine)
        try:
            await machine.stop()
        finally:
            nemesis.down.discard(machine)
        await nemesis.down_for(machine, nemesis.for_s(0.1, 4.0))


async def skew(nemesis: Nemesis) -> None:
    machine = nemesis.rng.choice(nemesis.world.machines)
    machine.skew_ms = nemesis.rng.choice((-3_600_000, -5_000, 0, 5_000, 3_600_000))
    nemesis.world.trace.note("skew", machine.name, machine.skew_ms)
    if machine.process is not None:
        machine.process.skew_ms = machine.skew_ms


# The network


async def cut(nemesis: Nemesis) -> None:
    """One path, one way or both."""
    names = [machine.name for machine in nemesis.world.machines]
    one, other = nemesis.rng.sample(names, 2)
    paths = [(one, other)] if nemesis.rng.random() < 0.5 else [(one, other), (other, one)]
    await _cut_for(nemesis, paths, nemesis.for_s(0.3, 10.0))


async def isolate(nemesis: Nemesis) -> None:
    """One broker from all others, and maybe from the store as well."""
    machine = nemesis.rng.choice(nemesis.world.machines)
    others = [m.name for m in nemesis.world.machines if m is not machine]
    paths = [(machine.name, name) for name in others] + [(name, machine.name) for name in others]
    has_store = nemesis.rng.random() < 0.5
    if not has_store:
        nemesis.world.ensemble.cut(machine.name)
    try:
        await _cut_for(nemesis, paths, nemesis.for_s(0.3, 10.0))
    finally:
        if not has_store:
            nemesis.world.ensemble.heal(machine.name)


async def _cut_for(nemesis: Nemesis, paths: list[tuple[str, str]], wait_s: float) -> None:
    network = nemesis.world.network
    nemesis.world.trace.note("cut", *paths)
    for path in paths:
        network.cut(*path)
    try:
        await asyncio.sleep(wait_s)
    finally:
        nemesis.world.trace.note("heal path", *paths)
        for path in paths:
            network.heal(*path)


async def slow(nemesis: Nemesis) -> None:
    names = [machine.name for machine in nemesis.world.machines]
    one, other = nemesis.rng.sample(names, 2)
    nemesis.world.trace.note("slow", one, other)
    nemesis.world.network.slow(one, other, nemesis.rng.choice((0.02, 0.2, 0.7)))
    await asyncio.sleep(nemesis.for_s(0.5, 8.0))
    nemesis.world.network.slow(one, other, 0.0)


async def reset(nemesis: Nemesis) -> None:
    names = [machine.name for machine in nemesis.world.machines]
    one, other = nemesis.rng.sample(names, 2)
    nemesis.world.trace.note("reset", one, other)
    nemesis.world.network.reset(one, other)


# The store


async def expire(nemesis: Nemesis) -> None:
    machine = nemesis.rng.choice(nemesis.world.machines)
    nemesis.world.trace.note("expire", machine.name)
    nemesis.world.ensemble.expire(machine.name)


async def store_reset(nemesis: Nemesis) -> None:
    """Whatever is under way gets no answer, done or not."""
    machine = nemesis.rng.choice(nemesis.world.machines)
    nemesis.world.trace.note("store reset", machine.name)
    nemesis.world.ensemble.reset(machine.name)


async def store_cut(nemesis: Nemesis) -> None:
    machine = nemesis.rng.choice(nemesis.world.machines)
    nemesis.world.trace.note("store cut", machine.name)
    nemesis.world.ensemble.cut(machine.name)
    await asyncio.sleep(nemesis.for_s(0.3, 8.0))
    nemesis.world.ensemble.heal(machine.name)


async def store_down(nemesis: Nemesis) -> None:
    nemesis.world.trace.note("store down")
    nemesis.world.ensemble.set_up(is_up=False)
    await asyncio.sleep(nemesis.for_s(0.3, 8.0))
    nemesis.world.ensemble.set_up(is_up=True)


# Operators


async def prefer(nemesis: Nemesis) -> None:
    await nemesis.admin.elect_preferred()


async def reassign(nemesis: Nemesis) -> None:
    await nemesis.admin.reassign_one()


async def lower_min_isr(nemesis: Nemesis) -> None:
    if nemesis.rng.random() < 0.5:
        await nemesis.admin.change_min_isr(nemesis.rng.choice(("1", "2", "2", "3")))
    else:
        await lower_in_need(nemesis)


_LOSSY = frozenset({"power", "lose twice"})

FAULTS: dict[str, Fault] = {
    **AIMED,
    "kill": kill,
    "bounce": bounce,
    "kill all": kill_all,
    "power": power,
    "pause": pause,
    "strike": strike,
    "restart": restart,
    "skew": skew,
    "cut": cut,
    "isolate": isolate,
    "slow": slow,
    "reset": reset,
    "expire": expire,
    "store reset": store_reset,
    "store cut": store_cut,
    "store down": store_down,
    "prefer": prefer,
    "reassign": reassign,
    "lower min ISR": lower_min_isr,
    "elect uncleanly": elect_uncleanly,
    "trim": trim,
    "rebirth": rebirth,
}
