"""A broker that comes back after a crash reads its logs in threads: its event loop goes on."""

import asyncio
import threading
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.unit.storage.made import MEMORY, Reports, batch

from penstock.broker.node import running
from penstock.cluster.image.image import Endpoint
from penstock.config.broker import BrokerConfig
from penstock.meta.sqlite.store import SqliteStore
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.config import LogConfig

SEGMENT_BYTES, SEGMENTS = 16 << 20, 13
PATIENCE_S = 60.0


class Ticks:
    """How often the loop came round; a thread may wait for it to."""

    def __init__(self) -> None:
        self.count = 0
        self._came_round = threading.Condition()

    async def run(self) -> None:
        while True:
            with self._came_round:
                self.count += 1
                self._came_round.notify_all()
            await asyncio.sleep(0)

    def wait_for_one(self) -> bool:
        with self._came_round:
            seen = self.count
            return self._came_round.wait_for(lambda: self.count > seen, PATIENCE_S)


class ReportsBetweenTicks(Reports):
    """Each line of recovery waits for the loop, so a recovery on the loop would never go on."""

    def __init__(self, ticks: Ticks) -> None:
        super().__init__()
        self._ticks = ticks
        self.is_loop_turning: list[bool] = []

    def __call__(self, line: str) -> None:
        super().__call__(line)
        if "unflushed segment" in line:
            self.is_loop_turning.append(self._ticks.wait_for_one())


def crashed(path: Path) -> int:
    """A directory with a large log that nobody closed; where the log ends."""
    dirs = LogDirs.open([path], now_ms=0, report=Reports())
    dirs.claim(broker_id=0, cluster_id="x" * 22)
    config = LogConfig(segment_bytes=SEGMENT_BYTES)
    log = dirs.open_log(TopicPartition("big", 0), topic_id=b"a" * 16, config=config, now_ms=0)
    header, sent = batch([bytes(1_000_000)])
    while len(log.segments) < SEGMENTS:
        log.append_as_leader([(header, sent)], leader_epoch=0, now_ms=0)
    for found in dirs.dirs:
        found.unlock()
    return log.log_end_offset


@pytest.mark.parametrize("threads", [1, 2])
def test_the_loop_turns_while_two_hundred_megabytes_are_recovered(threads: int) -> None:
    with TemporaryDirectory(dir=MEMORY) as place:
        path = Path(place) / "data"
        end_offset = crashed(path)
        ticks = Ticks()
        reports = ReportsBetweenTicks(ticks)

        async def start() -> int:
            turning = asyncio.create_task(ticks.run())
            log_dirs = LogDirs.open([path], now_ms=0, recovery_threads=threads, report=reports)
            try:
                async with running(
                    BrokerConfig({"broker.id": "0", "log.dirs": str(path)}),
                    open_store=partial(SqliteStore.open, path / "metadata.db"),
                    log_dirs=log_dirs,
                    endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")],
                ) as broker:
                    hosted = broker.partitions.get("big", 0)
                    assert hosted is not None
                    return hosted.log.log_end_offset
            finally:
                turning.cancel()
                log_dirs.close()

        assert asyncio.run(start()) == end_offset
        assert reports.is_loop_turning == [True] * SEGMENTS
        assert reports.mention("Attempting recovery for 1 logs in")
        assert reports.mention(f"Recovering unflushed segment 0. 0/{SEGMENTS} recovered for big-0.")
        assert reports.mention("Loading producer state till offset")
        assert reports.mention(f"with {SEGMENTS} segments (log 1/1 in")
