"""Brokers of the real code on simulated machines, and what may happen to them.

A machine has a disk, a name on the network and at most one broker process. The process is what
`broker/server.py` makes of a node, without sockets: requests come from the simulated network and
go through the real dispatcher.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any

from tests.simulation.clock import NATURE, Process, VirtualLoop
from tests.simulation.determinism import InOrder
from tests.simulation.disk import Disk, Disks
from tests.simulation.history import History
from tests.simulation.network import Network, SimPeers, host_name
from tests.simulation.store import Ensemble, SimStore
from tests.simulation.trace import Trace

from penstock.broker.context import Broker, RequestContext
from penstock.broker.dispatch import Dispatcher, Route
from penstock.broker.node import running
from penstock.cluster.image.image import Endpoint
from penstock.config.broker import BrokerConfig
from penstock.errors import PenstockError
from penstock.net.connection import CloseConnection
from penstock.net.session import Session
from penstock.protocol.apis import ApiKey, Request, Response
from penstock.replica.partition import Partition
from penstock.storage.directories.log_dirs import LogDirs

LISTENER = "PLAINTEXT"
_new_partition = Partition.__init__
partition_observers: list[Callable[[Partition], None]] = []  # Told of each that is hosted.


def _with_watchers_in_order(made: Partition, /, **parts: Any) -> None:
    _new_partition(made, **parts)
    made._watchers = InOrder()  # type: ignore[assignment]
    made._follower_watchers = InOrder()  # type: ignore[assignment]
    for observe in partition_observers:
        observe(made)


_move_high_watermark = Partition._set_high_watermark
commit_observers: list[Callable[[Partition], None]] = []  # Told of each move of a watermark.


def _observed(partition: Partition, offset: int) -> None:
    _move_high_watermark(partition, offset)
    for observe in commit_observers:
        observe(partition)


Partition.__init__ = _with_watchers_in_order  # type: ignore[method-assign]
Partition._set_high_watermark = _observed  # type: ignore[method-assign]

SESSION_S = 3.0
_BUSY = 0.3  # How often others come between a request and its waiting.
_TURN_S_MAX = 0.1

SETTINGS = {
    "zookeeper.connect": "simulated:2181",
    "zookeeper.session.timeout.ms": str(int(SESSION_S * 1000)),
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.wait.max.ms": "500",
    "num.replica.fetchers": "1",
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "leader.imbalance.check.interval.seconds": "20",
    "controlled.shutdown.retry.backoff.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "15000",
}

_log = logging.getLogger("simulation")


class Machine:
    """One broker's computer."""

    def __init__(self, world: "World", broker_id: int) -> None:
        self.world = world
        self.broker_id = broker_id
        self.name = host_name(broker_id)
        self.disk = Disk(world.directory / self.name, world.rng("disk", broker_id))
        self._turns = world.rng("turns", broker_id)
        world.disks.disks.append(self.disk)
        self.boots = 1
        self.skew_ms = 0
        self.process: Process | None = None  # None: no broker runs here.
        self.broker: Broker | None = None  # None: it does not serve yet, or not any more.
        self.is_lossy = False  # Lost data, and is not yet back in every in-sync set.
        self.owes_loss = False  # Lost data, and the cluster has not accounted for it yet.
        self._stopping = asyncio.Event()
        self._stopped: asyncio.Event = asyncio.Event()

    def __repr__(self) -> str:
        return f"Machine({self.name}, {self.process})"

    @property
    def is_up(self) -> bool:
        return self.process is not None

    def start(self) -> None:
        world = self.world
        process = self.process = Process(world.loop, self.name)
        process.skew_ms = self.skew_ms
        self._stopping, self._stopped = asyncio.Event(), asyncio.Event()
        world.trace.note("start", self.name)
        process.start(self._live(process, self._stopped), name=f"{self.name} main")

    async def _live(self, process: Process, stopped: asyncio.Event) -> None:
        try:
            await self._serve(process)
        except PenstockError as error:
            # A process may give up; whoever operates it starts it again.
            self.world.trace.note("gave up", self.name, error)
        except Exception:  # noqa: BLE001 - its traceback makes the run fail
            _log.exception("%s failed", self.name)
        finally:
            if self.process is process:
                self.world.network.hang_up(self.name)
                self.process = self.broker = None
                self.disk.survive_kill()
            stopped.set()
            process.kill()
            self.world.buried.append(process)

    async def _serve(self, process: Process) -> None:
        world = self.world
        config = BrokerConfig(
            SETTINGS
            | world.settings
            | {
                "broker.id": str(self.broker_id),
                "log.dirs": str(self.disk.root),
                "listeners": f"{LISTENER}://{self.name}:9092",
            }
        )
        log_dirs = LogDirs.open(
            [self.disk.root],
            now_ms=process.now_ms(),
            report=logging.getLogger("kafka.log.LogManager").info,
        )
        try:
            async with running(
                config,
                open_store=lambda: self._open_store(process),
                log_dirs=log_dirs,
                endpoints=[Endpoint(LISTENER, self.name, 9092, LISTENER)],
                peers=SimPeers(world.network, process),
                boot_id=f"{self.name} boot {self.boots}",
                now_ms=process.now_ms,
            ) as broker:
                self.broker = broker
                dispatcher = _BusyDispatcher(broker, self._turns)
                doors = _Doors(self, process, dispatcher)
                world.network.listen(self.name, process, doors.serve)
                world.trace.note("serves", self.name)
                await self._until_stopped(broker)
                await self._leave(broker)
        finally:
            log_dirs.close()

    async def _open_store(self, process: Process) -> SimStore:
        return await self.world.ensemble.connect(process, timeout_s=SESSION_S)

    async def _until_stopped(self, broker: Broker) -> None:
        assert broker.member is not None
        waits = [
            asyncio.create_task(self._stopping.wait()),
            asyncio.create_task(broker.member.until_over()),
        ]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in done:
                await wait
        finally:
            for wait in waits:
                wait.cancel()

    async def _leave(self, broker: Broker) -> None:
        assert broker.member is not None
        await broker.member.hand_over()
        broker.transactions.coordinator.close()
        broker.groups.close()
        broker.is_stopping = True
        broker.partitions.wake_readers()
        self.world.network.hang_up(self.name)

    # What happens to it

    async def stop(self) -> None:
        """SIGTERM: a controlled shutdown, waited for."""
        if self.process is None:
            return
        self.world.trace.note("stop", self.name)
        stopped = self._stopped
        self.process.call(self._stopping.set)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(40):
                await stopped.wait()
        if not stopped.is_set():
            self.kill()

    def kill(self) -> None:
        """SIGKILL; a guardian ends the session with the store at once, mostly."""
        if self._die(is_off=False):
            self.disk.survive_kill()

    def cut_power(self) -> None:
        if self._die(is_off=True):
            self.boots += 1
            self.is_lossy = self.owes_loss = True
            self.disk.survive_power_cut()

    def _die(self, *, is_off: bool) -> bool:
        process, self.process, self.broker = self.process, None, None
        if process is None:
            return False
        self.world.trace.note("power cut" if is_off else "kill", self.name)
        process.kill()
        self.world.buried.append(process)
        self.world.network.hang_up(self.name, is_off=is_off)
        if not is_off:
            self.world.note_death(self, process)
        return True


class _BusyDispatcher(Dispatcher):
    """What has to wait begins to in a turn of its own, as in a broker with many connections.

    Whatever comes in between, a change of leaders above all, finds a request half done.
    """

    def __init__(self, broker: Broker, rng: random.Random) -> None:
        super().__init__(broker, listener=LISTENER)
        self._rng = rng

    def _find_route(self, key: int, version: int) -> Route | None:
        route = super()._find_route(key, version)
        if route is not None:
            route.handle = partial(self._handle, route.handle)
        return route

    def _handle(self, handle: Callable[..., Any], request: Any, context: RequestContext) -> Any:
        response = handle(request, context)
        return self._in_turn(response) if isawaitable(response) else response

    async def _in_turn(self, waiting: Awaitable[Any]) -> Any:
        if self._rng.random() < _BUSY:
            await asyncio.sleep(self._rng.random() ** 2 * _TURN_S_MAX)
        return await waiting


class _Doors:
    """What stands between the network and one broker process."""

    def __init__(self, machine: Machine, process: Process, dispatcher: Dispatcher) -> None:
        self._machine = machine
        self._process = process
        self._dispatcher = dispatcher

    async def serve(self, request: Request, version: int, client: str) -> Response | None:
        if request.api_key == ApiKey.IMAGE_FETCH:
            self._machine.world.pulls[client] = (
                self._machine,
                request.broker_id,
                request.broker_epoch,
            )
        try:
            session = Session(listener=LISTENER, address=client)
            response = await self._dispatcher.handle(
                request, version, client_id=client, session=session
            )
        except CloseConnection as error:
            self._machine.world.history.violate(f"{client} was hung up on: {error}")
            return None
        for observe in self._machine.world.served_observers:
            observe(self._process, request, response)
        return response


class World:
    """Everything of one run."""

    def __init__(
        self, seed: int, loop: VirtualLoop, directory: Path, *, machine_count: int, shown: bool
    ) -> None:
        self.seed = seed
        self.loop = loop
        self.directory = directory
        self.trace = Trace(loop.time, is_shown=shown)
        self.history = History(self.trace)
        self.disks = Disks()
        self.network = Network(loop, self.rng("network"), self.trace)
        self.ensemble = Ensemble(loop, self.rng("store"), self.trace)
        self.settings: dict[str, str] = {}
        # Told of each request that was answered: by whom, and with what.
        self.served_observers: list[Callable[[Process, Request, Response | None], None]] = []
        self.buried: list[Process] = []  # Kept: what is left of the dead must not be collected.
        # By follower: the controller it pulls images from, and as whom.
        self.pulls: dict[str, tuple[Machine, int, int]] = {}
        self.machines = [Machine(self, broker_id) for broker_id in range(1, machine_count + 1)]
        self._rng = self.rng("world")

    def rng(self, *names: object) -> random.Random:
        return random.Random(f"{self.seed} {names}")

    def note_death(self, machine: Machine, process: Process) -> None:
        """The guardian ends the session, and the controller sees a connection reset."""
        if self._rng.random() < 0.7:
            wait_s = 0.005 + self._rng.random() * 0.05
            for store in self.ensemble.sessions_of(machine.name):
                if store.process is process:
                    self._later(wait_s, lambda store=store: self.ensemble.end(store))
        pulled = self.pulls.pop(machine.name, None)
        if pulled is None:
            return
        controller, broker_id, epoch = pulled
        served = controller.broker
        if controller.process is not None and served is not None and served.member is not None:
            member = served.member
            self._later(
                self._rng.random() * 0.01,
                lambda: (
                    controller.process
                    and controller.process.call(member.on_pull_lost, broker_id, epoch)
                ),
            )

    def _later(self, wait_s: float, work: Callable[[], object]) -> None:
        self.loop.call_later(wait_s, work, context=NATURE)

    def machine(self, broker_id: int) -> Machine:
        return self.machines[broker_id - 1]

    @property
    def is_anybody_lossy(self) -> bool:
        """Then no other may lose its power: of two, both may have had the only copies.

        That is beyond what two replicas in sync promise (I8). Ask just before the power is cut.
        """
        return any(machine.is_lossy for machine in self.machines)

    def live(self) -> list[Machine]:
        return [m for m in self.machines if m.process is not None and not m.process.is_paused]
