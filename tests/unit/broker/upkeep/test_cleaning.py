"""The broker's cleaners at work on real logs, with processes of their own."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from tests.unit.storage.compacted import COMPACT, keyed, read_keyed
from tests.unit.storage.made import Reports, append

from penstock.broker.context import Broker
from penstock.broker.upkeep.cleaning import CleaningHouse
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.log import Log

PATIENCE_S = 120.0


@dataclass
class Config:
    """The settings that the cleaners read."""

    log_cleaner_enable: bool = True
    log_cleaner_threads: int = 1
    log_cleaner_backoff_ms: int = 20
    log_cleaner_dedupe_buffer_size: int = 4 << 20
    log_cleaner_io_buffer_size: int = 524_288
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_max_bytes_per_second: float = sys.float_info.max


@dataclass
class StandIn:
    """As much of a broker as the cleaners use."""

    log_dirs: LogDirs
    config: Config = field(default_factory=Config)

    def now_ms(self) -> int:
        return 1_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[StandIn]:
    dirs = LogDirs.open([tmp_path], now_ms=0, report=Reports())
    dirs.claim(broker_id=0, cluster_id="c")
    yield StandIn(dirs)
    dirs.close()


def add_log(broker: StandIn, number: int = 0, *, batches: int = 60) -> Log:
    partition = TopicPartition("t", number)
    topic_id = bytes(15) + b"1"
    config = replace(COMPACT, segment_bytes=4_000)
    log = broker.log_dirs.open_log(partition, topic_id=topic_id, config=config, now_ms=0)
    log.assign_epoch_start(0, 0)
    for at in range(batches):
        append(log, keyed([(b"k%d" % (at % 5), b"v" * 20)]))
    log.roll(0)
    return log


@asynccontextmanager
async def cleaning(broker: StandIn) -> AsyncIterator[CleaningHouse]:
    house = CleaningHouse(cast(Broker, broker))
    task = asyncio.create_task(house.run())
    try:
        yield house
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


def children() -> list[int]:
    """The cleaning processes this one has started and that still run.

    Other tests have processes, too, and keep some of them for those who come after.
    """
    return [one.pid for one in psutil.Process().children() if is_cleaning(one.pid)]


def is_cleaning(pid: int) -> bool:
    try:
        return b"compaction.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False  # It ended just now.


def gauge(house: CleaningHouse, name: str) -> float:
    return next(found.value for found in house.gauges() if found.name.endswith(name))


def is_clean(log: Log) -> Callable[[], bool]:
    return lambda: log.cleaned_offset == log.log_end_offset


async def _cleans_and_notes(broker: StandIn) -> None:
    log = add_log(broker)
    before = children()
    async with cleaning(broker) as house:
        await until(is_clean(log))
        checkpoint = log.dir.parent / "cleaner-offset-checkpoint"
        await until(checkpoint.exists)
        assert checkpoint.read_text() == f"0\n1\nt 0 {log.log_end_offset}\n"
        assert len(read_keyed(log)) == 5
        assert len(children()) == len(before) + 1
        await until(lambda: gauge(house, "logcleanermanager_max_dirty_percent") == 0)
        append(log, keyed([(b"k0", b"again")]))
        log.roll(0)
        await until(is_clean(log))
    assert children() == before
    assert not [path for path in log.dir.iterdir() if path.suffix in (".cleaned", ".swap")]


def test_a_dirty_log_is_cleaned_beside_the_loop_and_its_offset_noted(broker: StandIn) -> None:
    asyncio.run(_cleans_and_notes(broker))


def test_a_broken_log_is_named_counted_and_does_not_stop_the_others(
    broker: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    broken, other = add_log(broker, 0, batches=90), add_log(broker, 1)
    path = broken.segments[0].log_path
    path.write_bytes(path.read_bytes()[:-1] + b"?")

    async def run() -> None:
        async with cleaning(broker) as house:
            await until(is_clean(other))
            await until(lambda: gauge(house, "uncleanable_partitions_count") == 1)
            assert gauge(house, "uncleanable_bytes") == broken.size_bytes

    with caplog.at_level(logging.INFO, "kafka.log.LogCleaner"):
        asyncio.run(run())
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "t-0" in warnings[0] and "uncleanable" in warnings[0] and "CRC" in warnings[0]
    assert broken.cleaned_offset is None


def test_a_process_that_is_killed_is_started_again(
    broker: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    log = add_log(broker)
    broker.config.log_cleaner_io_max_bytes_per_second = 1.0

    async def run() -> None:
        before = set(children())
        async with cleaning(broker) as house:
            await until(lambda: bool(set(children()) - before))
            await until(lambda: any(lane.is_cleaning for lane in lanes(house)))
            for pid in set(children()) - before:
                os.kill(pid, signal.SIGKILL)
            await until(lambda: house.failures == 1)
            broker.config.log_cleaner_io_max_bytes_per_second = 1e12
            await until(is_clean(log))

    asyncio.run(run())
    assert "will be tried again" in caplog.text
    assert len(read_keyed(log)) == 5


def lanes(house: CleaningHouse) -> list[Any]:
    return house._lanes


def test_settings_act_while_the_broker_runs(broker: StandIn) -> None:
    log = add_log(broker)
    broker.config.log_cleaner_threads = 0

    async def run() -> None:
        async with cleaning(broker) as house:
            await asyncio.sleep(0.1)
            assert log.cleaned_offset is None
            broker.config.log_cleaner_io_max_bytes_per_second = 1.0
            broker.config.log_cleaner_threads = 2
            await until(lambda: any(lane.is_cleaning for lane in lanes(house)))
            assert house.limits().map_bytes == 2 << 20
            broker.config.log_cleaner_io_max_bytes_per_second = 1e12
            await until(is_clean(log))
            broker.config.log_cleaner_threads = 0
            await until(lambda: not lanes(house))

    asyncio.run(run())


def test_a_starved_process_is_replaced_by_a_hurried_one(
    broker: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
import sys
from penstock.storage.compaction import worker

if "--hurried" in sys.argv:
    worker.main()
else:
    sys.stdin.readline()
    print('{"starved":true}', flush=True)
    sys.stdin.read()
"""
    (tmp_path / "always_starved.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("penstock.broker.upkeep.cleaning._WORKER", "always_starved")
    broker.config.log_cleaner_backoff_ms = 60_000  # It must not wait for the next look.
    log = add_log(broker)

    async def run() -> None:
        async with cleaning(broker):
            await until(is_clean(log))

    asyncio.run(run())


def test_a_disabled_cleaner_cleans_nothing(broker: StandIn) -> None:
    log = add_log(broker)
    broker.config.log_cleaner_enable = False

    async def run() -> None:
        async with cleaning(broker) as house:
            await asyncio.sleep(0.1)
            assert not lanes(house)

    asyncio.run(run())
    assert log.cleaned_offset is None


def test_a_stop_in_the_middle_leaves_the_log_as_it_was(broker: StandIn) -> None:
    log = add_log(broker)
    broker.config.log_cleaner_io_max_bytes_per_second = 1.0
    before = read_keyed(log)

    async def run() -> None:
        async with cleaning(broker) as house:
            await until(lambda: any(lane.is_cleaning for lane in lanes(house)))

    asyncio.run(run())
    assert read_keyed(log) == before
    assert not children()


def test_a_log_deleted_under_its_cleaner_is_forgotten(
    broker: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    log, other = add_log(broker, 0, batches=200), add_log(broker, 1)
    broker.config.log_cleaner_io_max_bytes_per_second = 20_000.0

    async def run() -> None:
        async with cleaning(broker) as house:
            await until(lambda: any(lane.is_cleaning for lane in lanes(house)))
            broker.log_dirs.delete_log(TopicPartition("t", 0), now_ms=0)
            broker.config.log_cleaner_io_max_bytes_per_second = 1e12
            await until(is_clean(other))
            assert house.failures == 0
            assert gauge(house, "uncleanable_partitions_count") == 0

    asyncio.run(run())
    assert log.cleaned_offset is None
