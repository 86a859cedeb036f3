"""The measure of the event loop: what a turn took by the wall and by the processor."""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from penstock.telemetry import families
from penstock.telemetry.loop_watch import LoopWatch, StallWarnings, watched_loop
from penstock.telemetry.metrics import Gauge

WORK_S = 0.03


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """What other tests left to collect would be work of a turn of these."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def run(scenario: Callable[[LoopWatch], Coroutine[Any, Any, None]]) -> None:
    loop, watch = watched_loop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(scenario(watch))


def work(seconds: float = WORK_S) -> None:
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


def wait_for_a_disk(seconds: float) -> None:
    time.sleep(seconds)  # It is the stall that is measured.


def test_work_in_one_turn_counts_on_both_clocks() -> None:
    async def scenario(watch: LoopWatch) -> None:
        await asyncio.sleep(0)
        watch.forget()
        await asyncio.sleep(0)
        work()
        await asyncio.sleep(0)
        longest = watch.longest_ever()
        assert longest.processor_s >= WORK_S
        assert longest.wall_s >= longest.processor_s

    run(scenario)


def test_waiting_counts_by_the_wall_alone() -> None:
    async def scenario(watch: LoopWatch) -> None:
        watch.forget()
        await asyncio.sleep(0)
        wait_for_a_disk(2 * WORK_S)
        await asyncio.sleep(0)
        longest = watch.longest_ever()
        assert longest.wall_s >= 2 * WORK_S
        assert longest.processor_s < WORK_S

    run(scenario)


def test_work_in_slices_is_no_long_turn() -> None:
    async def scenario(watch: LoopWatch) -> None:
        watch.forget()
        for _ in range(10):
            await asyncio.sleep(0)
            work(WORK_S / 3)
        await asyncio.sleep(0)
        assert watch.longest_ever().processor_s < WORK_S

    run(scenario)


def test_a_scrape_begins_a_new_interval_and_the_longest_ever_stays() -> None:
    def told(watch: LoopWatch, name: str) -> float:
        return next(
            gauge.value
            for gauge in watch.gauges()
            if gauge.name == name and gauge.labels == {"clock": "processor"}
        )

    async def scenario(watch: LoopWatch) -> None:
        watch.forget()
        await asyncio.sleep(0)
        work()
        await asyncio.sleep(0)
        assert told(watch, families.LOOP_TURN_MAX) >= WORK_S
        assert told(watch, families.LOOP_TURN_MAX) == 0
        assert told(watch, families.LOOP_TURN_MAX_EVER) >= WORK_S
        assert all(isinstance(gauge, Gauge) for gauge in watch.gauges())

    run(scenario)


def test_a_long_turn_is_told_with_its_place_and_its_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = (
        "def filter_topics(context, work, is_told):\n    while not is_told():\n        work()\n"
    )
    found: dict[str, Any] = {}
    exec(compile(source, "/lib/penstock/broker/handlers/slow.py", "exec"), found)

    class Context:
        client_address = "10.1.2.3:4567"

    async def scenario(watch: LoopWatch) -> None:
        with StallWarnings(watch):
            await asyncio.sleep(0)
            found["filter_topics"](Context(), lambda: work(0.01), lambda: bool(caplog.messages))

    with caplog.at_level(logging.WARNING, logger="kafka.server.EventLoop"):
        run(scenario)
    assert len(caplog.messages) == 1
    assert "broker/handlers/slow.py:3 filter_topics" in caplog.messages[0]
    assert caplog.messages[0].endswith("asked by 10.1.2.3:4567")
