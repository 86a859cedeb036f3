"""The stores every conformance test runs against, and coroutines as tests."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from penstock.meta.sqlite import SqliteStore
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


# A further store joins the whole suite by a factory in this table.
FACTORIES: dict[str, Callable[[Path], SqliteStores]] = {"sqlite": SqliteStores}


@pytest.fixture(params=sorted(FACTORIES))
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> SqliteStores:
    return FACTORIES[request.param](tmp_path)


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
            if isinstance(argument, SqliteStores):
                await argument.aclose()
