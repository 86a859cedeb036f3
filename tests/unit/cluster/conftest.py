"""A cluster in one process: real store, registration and controller, a session per broker."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from penstock.cluster import znodes
from penstock.cluster.control.controller import AskEnds, Controller, ControlSettings, TopicToCreate
from penstock.cluster.image.image import Endpoint, TopicImage
from penstock.cluster.registration import BrokerRegistration, Newcomer, prepare_tree, register
from penstock.cluster.transition import Expanded, Shrunk, TransitionFacts, transition
from penstock.cluster.znodes import PreviousShutdown, TopicNode
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import MetaStore, SessionState, Set

Wrap = Callable[[SqliteStore], MetaStore]


def newcomer(
    broker_id: int,
    *,
    rack: str | None = None,
    prev_shutdown: PreviousShutdown = PreviousShutdown.CLEAN,
    directory_id: str | None = None,
    incarnation: str = "first",
) -> Newcomer:
    return Newcomer(
        broker_id=broker_id,
        endpoints=(Endpoint("PLAINTEXT", "localhost", 9092 + broker_id, "PLAINTEXT"),),
        rack=rack,
        incarnation=incarnation,
        directory_ids=(directory_id or f"disk-{broker_id}",),
        prev_shutdown=prev_shutdown,
    )


class Cluster:
    """Brokers as sessions on one store file; `wrap` puts something between them and the store."""

    newcomer = staticmethod(newcomer)

    def __init__(self, directory: Path) -> None:
        self.path = directory / "metadata.db"
        self.wrap: Wrap = lambda store: store
        self.min_insync_replicas = 1
        self.settings = ControlSettings()
        self.ask_ends: AskEnds | None = None
        self.sessions: dict[int, SqliteStore] = {}
        self._all: list[SqliteStore] = []

    async def session(self, broker_id: int) -> MetaStore:
        """The broker's session, opened at need."""
        known = self.sessions.get(broker_id)
        if known is None or known.session_state is SessionState.LOST:
            alive = [s for s in self._all if s.session_state is SessionState.CONNECTED]
            known = await (alive[0].open_session() if alive else SqliteStore.open(self.path))
            self._all.append(known)
            self.sessions[broker_id] = known
        return self.wrap(known)

    async def register(
        self,
        broker_id: int = 0,
        *,
        rack: str | None = None,
        prev_shutdown: PreviousShutdown = PreviousShutdown.CLEAN,
    ) -> BrokerRegistration:
        store = await self.session(broker_id)
        await prepare_tree(store, cluster_id="test-cluster")
        who = newcomer(broker_id, rack=rack, prev_shutdown=prev_shutdown)
        return await register(store, who, now_ms=1000, wait_s=0)

    async def elect(self, broker_id: int = 0) -> Controller:
        controller = await Controller.elect(
            await self.session(broker_id),
            broker_id,
            now_ms=1000,
            min_insync_replicas=self.min_insync_replicas,
            settings=lambda: self.settings,
            ask_ends=self.ask_ends,
        )
        assert controller is not None
        return controller

    async def start(self, *broker_ids: int, min_insync_replicas: int = 1) -> Controller:
        """Register these brokers (0 if none is named) and elect the first."""
        for broker_id in broker_ids or (0,):
            await self.register(broker_id)
        self.min_insync_replicas = min_insync_replicas
        return await self.elect((broker_ids or (0,))[0])

    async def stop(self, broker_id: int) -> None:
        """The broker's process is gone, and its session with it."""
        await self.sessions[broker_id].close()

    async def leader_writes(self, event: Shrunk | Expanded, topic: str, partition: int = 0) -> bool:
        """What a leader does to its in-sync set, by compare-and-set; False: nothing to change."""
        store = await self.session(event.leader)
        paths = [znodes.topic_path(topic), znodes.state_path(topic, partition)]
        node, found = await store.multi_get(paths)
        assert node is not None and found is not None
        state = znodes.decode_state(paths[1], found[0], found[1].version)
        replicas = TopicNode.decode(paths[0], node[0]).partitions[partition]
        names = await store.children(znodes.BROKER_IDS)
        facts = TransitionFacts(replicas=replicas, active=frozenset(map(int, names)))
        after = transition(state, event, facts)
        if after is state:
            return False
        await store.multi([Set(paths[1], znodes.encode_state(after), found[1].version)])
        return True

    async def stop_all(self) -> None:
        for store in self._all:
            await store.close()

    async def restart(
        self, broker_id: int = 0, *, prev_shutdown: PreviousShutdown = PreviousShutdown.CLEAN
    ) -> Controller:
        """All processes end; one broker comes back and takes over."""
        await self.stop_all()
        await self.register(broker_id, prev_shutdown=prev_shutdown)
        return await self.elect(broker_id)

    @staticmethod
    async def place(
        controller: Controller, name: str, *replicas: tuple[int, ...], **configs: str
    ) -> TopicImage:
        """Make a topic whose partitions have these replicas."""
        new = TopicToCreate(
            name=name,
            partition_count=-1,
            replication_factor=-1,
            configs={key.replace("_", "."): value for key, value in configs.items()},
            assignments=dict(enumerate(replicas)),
        )
        (made,) = await controller.create_topics([new], validate_only=False)
        if isinstance(made, Exception):
            raise made
        return made

    @staticmethod
    async def create(
        controller: Controller,
        name: str,
        partitions: int = 1,
        factor: int = 1,
        **configs: str,
    ) -> TopicImage:
        """Make a topic, in which settings are written with underscores."""
        new = TopicToCreate(
            name=name,
            partition_count=partitions,
            replication_factor=factor,
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        (made,) = await controller.create_topics([new], validate_only=False)
        if isinstance(made, Exception):
            raise made
        return made


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in a fresh event loop, closing there what it opened."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(_run(pyfuncitem.obj(**arguments), arguments))
    return True


async def _run(test: Awaitable[None], arguments: dict[str, object]) -> None:
    try:
        await test
    finally:
        for argument in arguments.values():
            if isinstance(argument, Cluster):
                await argument.stop_all()
