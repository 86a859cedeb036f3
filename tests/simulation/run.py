"""One run from one seed: a cluster, its clients, its faults, its healing, its judgement."""

import asyncio
import logging
import random
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from tests.simulation import determinism
from tests.simulation.admin import Admin
from tests.simulation.aimed import AIMED
from tests.simulation.answers import Answers
from tests.simulation.authorship import Authorship
from tests.simulation.checks import judge
from tests.simulation.clients import Client, Producer, Reader
from tests.simulation.clock import Process, VirtualLoop, current_process
from tests.simulation.cluster import World
from tests.simulation.comebacks import Comebacks
from tests.simulation.faults import FAULTS, Nemesis, Plan
from tests.simulation.followers import Followers
from tests.simulation.history import Place
from tests.simulation.oracle import Oracle
from tests.simulation.topic_life import REBORN, RebornWriter, TopicLife, make_reborn
from tests.simulation.transactions_load import SETTINGS as COORDINATOR_SETTINGS
from tests.simulation.transactions_load import CoordinatorLoad, is_coordinated

_SETTLE_S = 120.0
# What the trace calls the faults that were carried out.
_COUNTED = (
    *("kill", "power cut", "pause", "stop", "skew", "cut", "slow", "reset", "expire"),
    *("store reset", "store cut", "store down", "reassign", "min.insync.replicas"),
    *(*AIMED, "trim", "elect uncleanly", "delete topic"),
)
SAFE, SINGLE, UNCLEAN = "safe", "single", "unclean"


@dataclass(kw_only=True)
class Report:
    """What came of a run."""

    seed: int
    digest: str = ""
    violations: list[str] = field(default_factory=list)
    kinds: tuple[str, ...] = ()
    faults: int = 0
    elections: int = 0
    isr_changes: int = 0
    acked: int = 0
    committed: int = 0  # Transactions.
    read: int = 0
    messages: int = 0
    steps: int = 0
    virtual_s: float = 0.0
    real_s: float = 0.0

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {len(self.violations)} violations, {self.faults} faults "
            f"({', '.join(self.kinds)}), {self.elections} elections, {self.isr_changes} ISR "
            f"changes, {self.acked} acked, {self.committed} transactions committed, "
            f"{self.read} read, {self.messages} messages, "
            f"{self.virtual_s:.0f} s in {self.real_s:.2f} s, {self.digest}"
        )


class _Complaints(logging.Handler):
    """An error with a traceback in a broker's log is a bug, whatever else is fine."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            place = f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where else "?"
            self._world.history.violate(f"{record.getMessage()}: {error!r} at {place}")


class _Shown(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        process = current_process()
        print(f"{self._world.loop.time():.6f} log {process} {record.getMessage()}", flush=True)
        if record.exc_info:
            traceback.print_exception(*record.exc_info)


def _listen_to_logs(world: World, *, shown: bool) -> None:
    for name in ("kafka", "penstock", "simulation", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [_Complaints(world), *([_Shown(world)] if shown else [])]
        logger.setLevel(logging.INFO if shown else logging.ERROR)
        logger.propagate = False


def simulate(
    seed: int, directory: Path, *, duration_s: float = 30.0, shown: bool = False
) -> Report:
    """Takes over this operating system process for good: call it in a child made for it."""
    started_s = determinism.real_time_s()
    loop = VirtualLoop(random.Random(f"loop {seed}"))
    determinism.install(seed, monotonic_s=loop.time, wall_s=lambda: loop.wall_clock_ms() / 1000)
    asyncio.set_event_loop(loop)
    rng = random.Random(f"plan {seed}")
    plan = Plan.drawn(rng, duration_s)
    world = World(
        seed, loop, directory, machine_count=4 if "reassign" in plan.kinds else 3, shown=shown
    )
    world.settings["internal.segment.bytes"] = rng.choice(("2048", "8192", "1048576"))
    if is_coordinated(seed):
        world.settings.update(COORDINATOR_SETTINGS)
    world.disks.install()
    _listen_to_logs(world, shown=shown)
    report = Report(seed=seed, kinds=plan.kinds)
    run = Run(world, plan)
    try:
        loop.run_until_complete(run.play())
    except Exception as error:  # noqa: BLE001 - a run that cannot be finished is a finding
        world.history.violate(f"the simulation failed: {error!r}")
        if shown:
            traceback.print_exc()
    for problem in loop.problems:
        world.history.violate(problem)
    _fill(report, world, run)
    report.real_s = determinism.real_time_s() - started_s
    return report


def _fill(report: Report, world: World, run: "Run") -> None:
    counts = world.trace.counts
    report.digest = world.trace.digest
    report.violations = world.history.violations
    report.faults = sum(counts[kind] for kind in _COUNTED)
    report.elections = run.oracle.elections
    report.isr_changes = run.oracle.isr_changes
    report.acked = len(world.history.acked())
    report.committed = run.load.committed_count if run.load is not None else 0
    report.read = sum(len(seen) for seen in world.history.seen.values())
    report.messages = world.network.message_count
    report.steps = world.loop.steps
    report.virtual_s = world.loop.time() - 1000


class Run:
    def __init__(self, world: World, plan: Plan) -> None:
        self.world = world
        self.plan = plan
        self.oracle = Oracle(world)
        world.history.leads = self.oracle.leads
        self.comebacks = Comebacks(world, self.oracle)
        self.oracle.judges += [
            self.comebacks,
            Followers(world, self.oracle),
            TopicLife(world),
        ]
        Authorship(world)
        Answers(world)
        self.places: list[Place] = []
        self.clients: list[Client] = []
        self.producers: list[Producer] = []
        self.readers: list[Reader] = []
        self._broker_ids = [machine.broker_id for machine in world.machines]
        # None: this run has no transactions and no groups.
        self.load: CoordinatorLoad | None = None
        if is_coordinated(world.seed):
            self.load = CoordinatorLoad(world, self._client, (SAFE, 0))

    async def play(self) -> None:
        world = self.world
        for machine in world.machines:
            machine.start()
        admin = Admin(self._client("admin"), self.places, self._broker_ids)
        nemesis = Nemesis(world, admin, self.plan)
        background = [
            asyncio.create_task(self.oracle.watch()),
            asyncio.create_task(nemesis.keep_running()),
        ]
        async with asyncio.timeout(60):
            await self._until_all_serve()
            await self._make_topics(admin)
        if self.load is not None:
            background.append(asyncio.create_task(self.load.watch()))
        self._start_clients()
        await nemesis.rage()
        await nemesis.heal()
        for client in self.clients:
            client.is_closing = True
        await self._settle()
        await self._finish_clients()
        if self.load is not None:
            await self.load.finish(self.oracle)
        await self._settle(calm_s=0.0)  # A leader may have gone back to its preferred place.
        for task in background:
            task.cancel()
        self.oracle.look()
        judge(world, self.oracle)
        if self.load is not None:
            await self.load.judge(self.oracle)

    async def _until_all_serve(self) -> None:
        while any(machine.broker is None for machine in self.world.machines):
            await asyncio.sleep(0.1)

    async def _make_topics(self, admin: Admin) -> None:
        history = self.world.history
        history.loose_topics.add(UNCLEAN)
        if self.plan.may_lose_unflushed:
            history.loose_topics.add(SINGLE)
        if "rebirth" in self.plan.kinds:
            await make_reborn(admin)
        await admin.create(SAFE, partitions=2, replicas=3, settings={"min.insync.replicas": "2"})
        if self.load is not None:
            await self.load.make_topics(admin)
            return
        await admin.create(SINGLE, partitions=1, replicas=3, settings={"min.insync.replicas": "1"})
        await admin.create(
            UNCLEAN,
            partitions=1,
            replicas=3,
            settings={
                "min.insync.replicas": "1",
                # Where the operator asks for them, only the operator does.
                "unclean.leader.election.enable": str(
                    "elect uncleanly" not in self.plan.kinds
                ).lower(),
            },
        )

    def _client(self, name: str) -> Client:
        world = self.world
        process = Process(world.loop, name)
        client = Client(
            process, world.network, world.history, world.rng("client", name), self._broker_ids
        )
        self.clients.append(client)
        return client

    def _start_clients(self) -> None:
        if "rebirth" in self.plan.kinds:
            client = self._client(REBORN)
            client.run(RebornWriter(client).run)
        if self.load is not None:
            self.load.start()
        for number, place in enumerate(self.places):
            if self.load is not None and place != (SAFE, 0):
                continue
            for kind, (acks, is_idempotent) in enumerate(((-1, True), (-1, False), (1, False))):
                client = self._client(f"p{number}.{kind}")
                producer = Producer(
                    client, place, acks=acks, is_idempotent=is_idempotent, interval_s=0.5
                )
                self.producers.append(producer)
                client.run(producer.run)
            client = self._client(f"r{number}")
            reader = Reader(client, place)
            self.readers.append(reader)
            client.run(reader.run)

    async def _settle(self, *, calm_s: float = 2.0) -> None:
        """I32: a cluster that is left alone gets well."""
        deadline_s = self.world.loop.time() + _SETTLE_S
        wrong = ["it was not looked at"]
        well_since_s: float | None = None
        while (now_s := self.world.loop.time()) < deadline_s:
            wrong = self.oracle.unsettled() + self.comebacks.unsettled()
            if wrong:
                well_since_s = None
            elif well_since_s is None:
                well_since_s = now_s
            if well_since_s is not None and now_s - well_since_s >= calm_s:
                return
            await asyncio.sleep(0.25)
        self.world.history.violate(f"I32 not well after {_SETTLE_S:.0f} s: {wrong[:4]}")

    async def _finish_clients(self) -> None:
        deadline_s = self.world.loop.time() + 60
        while not all(producer.is_idle for producer in self.producers):
            await asyncio.sleep(0.1)
            if self.world.loop.time() > deadline_s:
                busy = [p for p in self.producers if not p.is_idle]
                self.world.history.violate(f"I32 {len(busy)} producers were never answered")
                break
        async with asyncio.timeout(60):
            for reader in self.readers:
                while await reader.poll():
                    pass


__all__ = ["FAULTS", "Report", "simulate"]
