"""Decoding processes that are killed, that hang, and that have too much to do."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psutil
import pytest

pytest.importorskip("authlib")

from tests.integration.validation.world import World

from penstock.errors import RequestTimedOut
from penstock.records.batch import Record, build_batch
from penstock.schemas.checking import workers as module
from penstock.schemas.checking.workers import DecodeWorkers

VALUES = (False,)
T = TypeVar("T")


def batch_of(*values: bytes) -> memoryview:
    return memoryview(build_batch([Record(at, 0, b"k", v) for at, v in enumerate(values)]))


def run(
    world: World, work: Callable[[DecodeWorkers], Awaitable[T]], *, limit_s: float = 60.0
) -> tuple[T, list[int]]:
    """What the work gives, and the processes that were there at its end, which are gone now."""

    async def running() -> tuple[T, list[int]]:
        settings = {"urls": world.registry.url, "basic_auth": None, "registry_s": 30.0}
        workers = DecodeWorkers(settings, count=1, limit_s=limit_s)
        try:
            return await work(workers), workers.pids
        finally:
            await workers.close()

    found, pids = asyncio.run(running())
    assert not any(psutil.pid_exists(pid) for pid in pids)
    return found, pids


def test_many_batches_share_one_process(world: World) -> None:
    good = world.order("workers", 1)

    async def work(workers: DecodeWorkers) -> list[int]:
        batches = [batch_of(good, good[:-1]), batch_of(good), batch_of(good[:-1], good, b"x")] * 5
        found = await asyncio.gather(*(workers.flaws(VALUES, batch) for batch in batches))
        return [len(flaws) for flaws in found]

    counts, pids = run(world, work)
    assert counts == [1, 0, 2] * 5
    assert len(pids) == 1


def test_a_process_that_is_killed_or_stopped_is_replaced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GRACE_S", 0.5)
    good = world.order("workers", 1)

    async def work(workers: DecodeWorkers) -> list[int]:
        deaths = []
        for number in (signal.SIGKILL, signal.SIGSTOP):
            assert await workers.flaws(VALUES, batch_of(good)) == []
            os.kill(workers.pids[0], number)
            assert await workers.flaws(VALUES, batch_of(good)) == []
            deaths.append(workers.deaths)
        return deaths

    deaths, _ = run(world, work, limit_s=8)
    assert deaths[-1] >= 1


def test_what_waits_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_BYTES_MAX", 1000)
    good = world.order("workers", 1)
    batch = batch_of(*[good] * 40)
    assert 500 < len(batch) < 1000

    async def work(workers: DecodeWorkers) -> list[object]:
        return await asyncio.gather(
            *(workers.flaws(VALUES, batch) for _ in range(3)), return_exceptions=True
        )

    answers, _ = run(world, work)
    assert answers[0] == []
    assert all(isinstance(answer, RequestTimedOut) for answer in answers[1:])
