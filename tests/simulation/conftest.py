"""Coroutine tests run on virtual time."""

import inspect
import random
from collections.abc import Iterator

import pytest
from tests.simulation.clock import Process, VirtualLoop
from tests.simulation.store import Ensemble, SimStore
from tests.simulation.trace import Trace


class SimStores:
    """Sessions with one ensemble, as the conformance tests open them."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.ensemble = Ensemble(loop, random.Random(5), Trace(loop.time))
        self._loop = loop

    async def open(self) -> SimStore:
        return self.ensemble.open(Process(self._loop, "test"))


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop(random.Random(5))
    yield loop
    loop.close()


@pytest.fixture
def stores(loop: VirtualLoop) -> SimStores:
    return SimStores(loop)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    loop = pyfuncitem.funcargs.get("loop")
    if not isinstance(loop, VirtualLoop):
        loop = VirtualLoop(random.Random(5))
    loop.run_until_complete(pyfuncitem.obj(**arguments))
    assert not loop.problems
    return True
