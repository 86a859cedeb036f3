"""A hosted partition: who may write, what readers see, who is woken."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.cluster.image.image import PartitionImage, PartitionState
from penstock.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from penstock.records.batch import build_batch, split_batches
from penstock.records.record import Record
from penstock.replica.partition import Partition
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log

BROKER, OTHER = 1, 2


def state(leader: int = BROKER, epoch: int = 0, **changes: object) -> PartitionState:
    made = PartitionState(leader=leader, leader_epoch=epoch, isr=(BROKER,), min_isr=1)
    return made._replace(**changes)  # type: ignore[arg-type]


def place(partition: Partition, state: PartitionState, replicas: tuple[int, ...]) -> None:
    partition.apply(PartitionImage(replicas=replicas, state=state), {})


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Partition]:
    def make(config: LogConfig | None = None) -> Partition:
        directory = tmp_path / "orders-0"
        directory.mkdir()
        log = Log.open(
            directory, config=config or LogConfig(), now_ms=0, clean=True, report=lambda _: None
        )
        return Partition(topic="orders", partition=0, topic_id=bytes(16), broker_id=BROKER, log=log)

    return make


def append(partition: Partition, *values: bytes, acks: int = 1) -> int:
    records = [Record(at, 0, None, value, ()) for at, value in enumerate(values)]
    batches = split_batches(memoryview(build_batch(records)))
    return partition.append(batches, required_acks=acks, now_ms=0).last_offset


def test_only_the_leader_takes_appends(made: Callable[..., Partition]) -> None:
    partition = made()
    with pytest.raises(NotLeaderOrFollower):
        append(partition, b"too early")
    place(partition, state(), (BROKER,))
    assert append(partition, b"in time") == 0
    place(partition, state(leader=OTHER, epoch=1), (BROKER, OTHER))
    with pytest.raises(NotLeaderOrFollower):
        append(partition, b"too late")
    assert partition.log.log_end_offset == 1


def test_what_is_not_newer_than_what_is_known_is_ignored(made: Callable[..., Partition]) -> None:
    partition = made()
    place(partition, state(epoch=5, partition_epoch=3), (BROKER,))
    place(partition, state(leader=OTHER, epoch=4, partition_epoch=9), (BROKER,))
    place(partition, state(leader=OTHER, epoch=5, partition_epoch=3), (BROKER,))
    assert partition.is_leader
    place(partition, state(leader=OTHER, epoch=5, partition_epoch=4), (BROKER,))
    assert not partition.is_leader


def test_a_client_with_another_epoch_is_told_who_is_behind(made: Callable[..., Partition]) -> None:
    partition = made()
    place(partition, state(epoch=5), (BROKER,))
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(5)
    with pytest.raises(FencedLeaderEpoch):
        partition.check_leader_epoch(4)
    with pytest.raises(UnknownLeaderEpoch):
        partition.check_leader_epoch(6)


def test_acks_all_is_refused_before_the_append_when_replicas_are_missing(
    made: Callable[..., Partition],
) -> None:
    partition = made(LogConfig(min_insync_replicas=2))
    place(partition, state(), (BROKER, OTHER))
    with pytest.raises(NotEnoughReplicas):
        append(partition, b"unsafe", acks=-1)
    assert partition.log.log_end_offset == 0
    assert append(partition, b"without promise", acks=1) == 0


def test_one_replica_is_enough_where_there_is_only_one(made: Callable[..., Partition]) -> None:
    partition = made(LogConfig(min_insync_replicas=2))
    place(partition, state(), (BROKER,))
    assert append(partition, b"all of them", acks=-1) == 0


def test_readers_see_nothing_above_the_high_watermark(made: Callable[..., Partition]) -> None:
    partition = made()
    place(partition, state(isr=(BROKER, OTHER)), (BROKER, OTHER))
    append(partition, b"not replicated")
    read = partition.read(0, bytes_max=1000, is_committed_only=False, min_one=True)
    assert (len(read.records), read.high_watermark) == (0, 0)
    place(partition, state(partition_epoch=1), (BROKER, OTHER))
    read = partition.read(0, bytes_max=1000, is_committed_only=False, min_one=True)
    assert len(read.records) > 0
    assert read.high_watermark == 1


def test_reading_outside_the_log_is_an_error_and_at_its_end_is_not(
    made: Callable[..., Partition],
) -> None:
    partition = made()
    place(partition, state(), (BROKER,))
    append(partition, b"a", b"b")
    assert not partition.read(2, bytes_max=9, is_committed_only=False, min_one=True).records
    for offset in (-1, 3):
        with pytest.raises(OffsetOutOfRange):
            partition.read(offset, bytes_max=9, is_committed_only=False, min_one=True)


def test_waits_end_with_the_high_watermark_or_with_the_leadership(
    made: Callable[..., Partition],
) -> None:
    async def scenario() -> None:
        partition = made()
        place(partition, state(isr=(BROKER, OTHER)), (BROKER, OTHER))
        first, second = append(partition, b"a"), append(partition, b"b")
        waits = [partition.replicated(first), partition.replicated(second)]
        assert not any(wait is None or wait.done() for wait in waits)
        place(partition, state(partition_epoch=1), (BROKER, OTHER))
        assert all(wait is not None and wait.done() for wait in waits)
        assert partition.replicated(second) is None

        place(partition, state(isr=(BROKER, OTHER), partition_epoch=2), (BROKER, OTHER))
        third = partition.replicated(append(partition, b"c"))
        assert third is not None
        place(partition, state(leader=OTHER, epoch=1), (BROKER, OTHER))
        with pytest.raises(NotLeaderOrFollower):
            await third
        partition.follow_high_watermark(3)  # Of what the new leader wrote in that place.
        with pytest.raises(NotLeaderOrFollower):
            partition.replicated(2)

    asyncio.run(scenario())


def test_a_deleted_topic_releases_those_who_wait(made: Callable[..., Partition]) -> None:
    async def scenario() -> None:
        partition = made()
        place(partition, state(isr=(BROKER, OTHER)), (BROKER, OTHER))
        wait = partition.replicated(append(partition, b"a"))
        assert wait is not None
        partition.retire()
        with pytest.raises(UnknownTopicOrPartition):
            await wait
        with pytest.raises(NotLeaderOrFollower):
            append(partition, b"b")

    asyncio.run(scenario())


class Watcher:
    def __init__(self) -> None:
        self.grown_bytes = 0

    def grown(self, size_bytes: int) -> None:
        self.grown_bytes += size_bytes


def test_watchers_hear_of_growth_until_they_leave(made: Callable[..., Partition]) -> None:
    partition = made()
    place(partition, state(), (BROKER,))
    watcher = Watcher()
    partition.watch(watcher)
    append(partition, b"first")
    assert watcher.grown_bytes == partition.log.size_bytes
    partition.unwatch(watcher)
    append(partition, b"second")
    assert watcher.grown_bytes < partition.log.size_bytes


def test_records_are_deleted_up_to_the_high_watermark_and_no_further(
    made: Callable[..., Partition],
) -> None:
    partition = made()
    place(partition, state(), (BROKER,))
    append(partition, b"a", b"b", b"c")
    assert partition.delete_records(2) == 2
    with pytest.raises(OffsetOutOfRange):
        partition.read(1, bytes_max=9, is_committed_only=False, min_one=True)
    with pytest.raises(OffsetOutOfRange):
        partition.delete_records(4)
    assert partition.delete_records(-1) == 3


def test_a_reader_of_another_history_is_told_where_it_parts(
    made: Callable[..., Partition],
) -> None:
    partition = made()
    place(partition, state(epoch=1), (BROKER,))
    append(partition, b"a", b"b")
    place(partition, state(epoch=3), (BROKER,))
    append(partition, b"c")
    assert partition.diverging_epoch(3, 3) is None
    assert partition.diverging_epoch(-1, 99) is None
    assert partition.diverging_epoch(2, 2) == (1, 2)
    assert partition.diverging_epoch(1, 3) == (1, 2)
