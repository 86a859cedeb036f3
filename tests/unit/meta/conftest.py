"""The stores every conformance test runs against, and coroutines as tests."""

import asyncio
import inspect
import uuid
from collections.abc import Awaitable, Iterator
from pathlib import Path

import pytest
from tests.support.zookeeper import ZkStores, ZooKeeperProcess

from penstock.meta.shared.store import SharedStore
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import MetaStore


class SqliteStores:
    """Opens sessions with one SQLite file."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "metadata.db"
        self._sessions: list[SqliteStore] = []

    async def open(self) -> MetaStore:
        """A first session, or a further one beside those that are open."""
        alive = [store for store in self._sessions if store.session_state.value == "connected"]
        store = await (alive[0].open_session() if alive else SqliteStore.open(self.path))
        self._sessions.append(store)
        return store

    async def aclose(self) -> None:
        for store in self._sessions:
            await store.close()


class SharedStores:
    """Opens sessions with one shared file, each as another process would."""

    def __init__(self, directory: Path, *, session_timeout_ms: int = 60_000) -> None:
        self.path = directory / "metadata.db"
        self._timeout_ms = session_timeout_ms
        self._sessions: list[SharedStore] = []

    async def open(self) -> MetaStore:
        return await self.open_shared()

    async def open_shared(self) -> SharedStore:
        store = await SharedStore.open(self.path, session_timeout_ms=self._timeout_ms)
        self._sessions.append(store)
        return store

    async def aclose(self) -> None:
        for store in self._sessions:
            await store.close()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """One server for all tests that do it no harm."""
    with ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def zk_stores(zookeeper: ZooKeeperProcess) -> ZkStores:
    return ZkStores(zookeeper, f"/{uuid.uuid4()}")


# Every store goes through the whole suite.
@pytest.fixture(params=["sqlite", "shared", "zookeeper"])
def stores(
    request: pytest.FixtureRequest, tmp_path: Path
) -> SqliteStores | SharedStores | ZkStores:
    if request.param == "sqlite":
        return SqliteStores(tmp_path)
    if request.param == "shared":
        return SharedStores(tmp_path)
    stores: ZkStores = request.getfixturevalue("zk_stores")
    return stores


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in a fresh event loop, closing what it opened there."""
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
            if isinstance(argument, SqliteStores | SharedStores | ZkStores):
                await argument.aclose()
