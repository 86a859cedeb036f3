"""Replicas move between the directories of a broker while they go on serving."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.replica.replicas import append, bytes_of

from penstock.broker.handlers import alter_replica_log_dirs, describe_log_dirs
from penstock.cluster.image.image import (
    ClusterImage,
    ImageDelta,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from penstock.errors import ConfigError, ErrorCode
from penstock.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from penstock.records.topic_partition import TopicPartition
from penstock.replica.partition import Partition
from penstock.replica.table import PartitionTable
from penstock.storage.directories import log_dirs
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log

CONFIG = LogConfig(segment_bytes=20_000, segment_index_bytes=4096, file_delete_delay_ms=0)


class Broker:
    """A broker with two directories, and a partition in one of them."""

    def __init__(self, root: Path) -> None:
        self.paths = [root / "a", root / "b"]
        self.log_dirs = LogDirs.open(self.paths, now_ms=0, report=lambda _: None)
        self.log_dirs.claim(broker_id=1, cluster_id="c")
        self.table = PartitionTable(
            broker_id=1,
            log_dirs=self.log_dirs,
            log_config=lambda _image, _topic: CONFIG,
            now_ms=lambda: 0,
        )
        state = PartitionState(leader=1, leader_epoch=3, isr=(1,), min_isr=1)
        placed = PartitionImage(replicas=(1,), state=state)
        topic = TopicImage(name="t", topic_id=b"i" * 16, partitions={0: placed})
        self.image = ClusterImage(cluster_id="c").apply(ImageDelta(topics={"t": topic}))
        self.table.apply(self.image)
        self.rate = 2**63 - 1
        self.context: Any = SimpleNamespace(
            broker=SimpleNamespace(
                log_dirs=self.log_dirs,
                partitions=self.table,
                config=SimpleNamespace(
                    replica_alter_log_dirs_io_max_bytes_per_second=0,
                    num_replica_alter_log_dirs_threads=1,
                    cordoned_log_dirs=(),
                ),
            )
        )

    @property
    def partition(self) -> Partition:
        return self.table.leader("t", 0)

    @property
    def other(self) -> Path:
        return next(path for path in self.paths if path != self.partition.log.dir.parent)

    def limit(self, bytes_per_s: int) -> None:
        self.context.broker.config.replica_alter_log_dirs_io_max_bytes_per_second = bytes_per_s

    def move(self, target: Path, *, topic: str = "t") -> int:
        wanted = AlterReplicaLogDirTopic(name=topic, partitions=[0])
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=str(target), topics=[wanted])]
        )
        response = alter_replica_log_dirs.handle(request, self.context)
        return response.results[0].partitions[0].error_code

    def copies(self) -> list[tuple[str, int, int]]:
        """Directory, size and lag of what is on its way."""
        response: Any = describe_log_dirs.handle(DescribeLogDirsRequest(topics=None), self.context)
        return [
            (result.log_dir, partition.partition_size, partition.offset_lag)
            for result in response.results
            for topic in result.topics
            for partition in topic.partitions
            if partition.is_future_key
        ]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.005)


@asynccontextmanager
async def running(root: Path) -> AsyncIterator[Broker]:
    broker = Broker(root)
    broker.limit(2**63 - 1)
    try:
        yield broker
    finally:
        broker.log_dirs.close()


def test_a_replica_moves_while_it_is_written_and_is_found_there_after_a_restart(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with running(tmp_path) as broker:
            numbered = {"producer_id": 7, "producer_epoch": 0}
            for number in range(300):
                append(broker.partition, b"x" * 500, base_sequence=number, **numbered)
            broker.partition.delete_records(20)
            old, target = broker.partition.log, broker.other
            assert broker.move(target) == ErrorCode.NONE
            number = 300
            while broker.partition.log is old:
                append(broker.partition, b"y" * 500, base_sequence=number, **numbered)
                number += 1
                await asyncio.sleep(0)
            append(broker.partition, b"z", base_sequence=number, **numbered)
            log = broker.partition.log
            assert log.dir == target / "t-0"
            assert (log.log_start_offset, log.log_end_offset) == (20, number + 1)
            assert log.high_watermark == number + 1
            assert log.epochs == old.epochs
            assert [e.last_sequence for e in log.producers()] == [number]
            assert broker.copies() == []
            content = bytes_of(broker.partition)
            broker.log_dirs.delete_expired(1)
            assert not old.dir.exists()
        async with running(tmp_path) as broker:
            assert broker.partition.log.dir == target / "t-0"
            assert bytes_of(broker.partition) == content

    asyncio.run(story())


def test_a_move_is_shown_while_it_lasts_and_can_be_taken_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path) as broker:
            for _ in range(5):
                append(broker.partition, b"x" * 15_000)
            home, target = broker.partition.log.dir.parent, broker.other
            broker.limit(1)
            assert broker.move(target) == ErrorCode.NONE
            await broker.until(lambda: broker.copies()[0][1] > 0)
            ((directory, _, lag),) = broker.copies()
            assert (directory, lag) == (str(target), 4)
            assert broker.move(home) == ErrorCode.NONE
            assert broker.copies() == []
            broker.log_dirs.delete_expired(1)
            assert [path.name for path in target.iterdir() if path.is_dir()] == []
            assert broker.partition.log.dir.parent == home
            assert append(broker.partition, b"on") == 5

    asyncio.run(story())


def test_a_log_that_is_cut_meanwhile_is_copied_anew(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path) as broker:
            for _ in range(4):
                append(broker.partition, b"x" * 15_000)
            broker.limit(1)
            broker.move(broker.other)
            await broker.until(lambda: broker.copies()[0][1] > 0)
            broker.partition.log.truncate_to(1)
            append(broker.partition, b"other")
            broker.limit(2**62)
            await broker.until(lambda: broker.copies() == [])
            assert broker.partition.log.log_end_offset == 2
            assert b"other" in bytes_of(broker.partition)

    asyncio.run(story())


def test_what_cannot_be_moved_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path) as broker:
            assert broker.move(tmp_path / "elsewhere") == ErrorCode.LOG_DIR_NOT_FOUND
            assert broker.move(broker.other, topic="u") == ErrorCode.REPLICA_NOT_AVAILABLE
            assert broker.move(broker.partition.log.dir.parent) == ErrorCode.NONE
            assert broker.copies() == []

    asyncio.run(story())


def test_a_copy_that_a_crash_left_is_no_log(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path) as broker:
            append(broker.partition, b"a")
            copy = broker.log_dirs.new_copy(broker.partition.log, broker.other, now_ms=0)
            left = copy.dir
        found = LogDirs.open([tmp_path / "a", tmp_path / "b"], now_ms=0, report=lambda _: None)
        assert [partition for partition, _ in found.found_logs()] == [TopicPartition("t", 0)]
        found.delete_expired(60_001)
        assert not left.exists()
        found.close()

    asyncio.run(story())


def dies(*_: object, **__: object) -> None:
    os._exit(DEAD)


def before(step: Callable[..., Any]) -> Callable[..., None]:
    return dies


def after(step: Callable[..., Any]) -> Callable[..., None]:
    def done(*arguments: Any, **named: Any) -> None:
        step(*arguments, **named)
        dies()

    return done


DEAD = 77
STEPS: dict[str, tuple[object, str, Callable[..., Any], bool]] = {
    "before the copy has the name": (log_dirs, "leave", before, False),
    "after the copy has the name": (log_dirs, "leave", after, False),
    "after the log is gone": (Log, "rename_for_delete", after, True),
    "before the mark is gone": (log_dirs, "unmark", before, True),
    "after the mark is gone": (log_dirs, "unmark", after, True),
}


@pytest.mark.parametrize("crash", STEPS)
@pytest.mark.parametrize("is_backwards", [False, True])
def test_a_crash_in_the_last_step_of_a_move_leaves_one_log_with_everything(
    tmp_path: Path, crash: str, is_backwards: bool
) -> None:
    place, name, when, is_moved = STEPS[crash]

    async def moved_until_dead() -> None:
        async with running(tmp_path) as broker:
            home, other = broker.partition.log.dir.parent, broker.other
            for _ in range(60):
                append(broker.partition, b"x" * 500)
            if is_backwards:  # So that neither directory is first by luck.
                broker.move(other)
                await broker.until(lambda: broker.partition.log.dir.parent == other)
                broker.log_dirs.delete_expired(1)
                home, other = other, home
            (tmp_path / "home").write_text(str(home))
            (tmp_path / "other").write_text(str(other))
            (tmp_path / "content").write_bytes(bytes_of(broker.partition))
            setattr(place, name, when(getattr(place, name)))
            broker.move(other)
            await broker.until(lambda: broker.copies() == [])

    child = os.fork()
    if not child:
        try:
            asyncio.run(moved_until_dead())
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == DEAD

    async def found_again() -> None:
        async with running(tmp_path) as broker:
            expected = (tmp_path / ("other" if is_moved else "home")).read_text()
            assert broker.partition.log.dir == Path(expected) / "t-0"
            assert bytes_of(broker.partition) == (tmp_path / "content").read_bytes()
            assert append(broker.partition, b"on") == 60
            broker.log_dirs.delete_expired(60_001)
            there = [p for path in broker.paths for p in path.iterdir() if p.is_dir()]
            assert there == [broker.partition.log.dir]

    asyncio.run(found_again())


def test_a_copy_that_somebody_made_by_hand_is_left_alone(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b")]
    for path in paths:
        (path / "t-0").mkdir(parents=True)
    with pytest.raises(ConfigError, match="remove one of them"):
        LogDirs.open(paths, now_ms=0, report=lambda _: None)
    assert all((path / "t-0").is_dir() for path in paths)
