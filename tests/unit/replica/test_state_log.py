"""A partition as a coordinator's memory: written by one leader, read back in pieces."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.image.image import PartitionImage, PartitionState
from penstock.errors import (
    CoordinatorNotAvailable,
    CorruptRecord,
    ErrorCode,
    InvalidProducerEpoch,
    KafkaStorage,
    NotCoordinator,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    RecordTooLarge,
    UnknownTopicOrPartition,
)
from penstock.records.batch import check_batch
from penstock.records.compression import Codec
from penstock.replica.partition import Partition
from penstock.replica.state_log import StateLog, coordinator_error, java_hash, partition_for
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log

BROKER, OTHER = 1, 2
NOW_MS = 1_700_000_000_000

Made = Callable[..., Partition]


def state(leader: int = BROKER, epoch: int = 0, **changes: object) -> PartitionState:
    made = PartitionState(leader=leader, leader_epoch=epoch, isr=(BROKER,), min_isr=1)
    return made._replace(**changes)  # type: ignore[arg-type]


def place(partition: Partition, state: PartitionState, replicas: tuple[int, ...]) -> None:
    partition.apply(PartitionImage(replicas=replicas, state=state), {})


@pytest.fixture
def made(tmp_path: Path) -> Made:
    def make(config: LogConfig | None = None) -> Partition:
        directory = tmp_path / "__consumer_offsets-3"
        directory.mkdir()
        log = Log.open(
            directory, config=config or LogConfig(), now_ms=0, clean=True, report=lambda _: None
        )
        partition = Partition(
            topic="__consumer_offsets",
            partition=3,
            topic_id=bytes(16),
            broker_id=BROKER,
            log=log,
        )
        place(partition, state(), (BROKER,))
        return partition

    return make


def opened(partition: Partition, reports: list[str] | None = None, **options: Codec) -> StateLog:
    report = (reports if reports is not None else []).append
    return StateLog(partition, now_ms=lambda: NOW_MS, report=report, **options)


def replayed(log: StateLog, chunk_bytes: int = 1 << 20) -> list[tuple[int, bytes | None]]:
    return [
        (record.offset, record.value)
        for chunk in log.replay(chunk_bytes=chunk_bytes)
        for _, records in chunk
        for record in records
    ]


def test_what_was_written_is_read_back_in_order(made: Made) -> None:
    log = opened(made())
    assert log.write([(b"a", b"1"), (b"b", None)]) == 0
    assert log.write([(b"a", b"2")]) == 2
    assert replayed(log) == [(0, b"1"), (1, None), (2, b"2")]


def test_the_records_of_one_write_are_one_batch_stamped_with_the_time(made: Made) -> None:
    partition = made()
    opened(partition).write([(b"a", b"1"), (b"b", b"2")])
    read = partition.log.read(0, bytes_max=1 << 20, end_offset=2, min_one=True).records
    data = read if isinstance(read, bytes) else read.read()
    header = check_batch(memoryview(data))
    assert (header.record_count, header.max_timestamp) == (2, NOW_MS)
    assert (header.producer_id, header.is_transactional) == (-1, False)


def test_records_may_be_compressed(made: Made) -> None:
    log = opened(made(), codec=Codec.GZIP)
    log.write([(b"a", b"x" * 1000)])
    (chunk,) = log.replay()
    assert chunk[0][0].codec is Codec.GZIP
    assert chunk[0][1][0].value == b"x" * 1000


def test_a_large_log_comes_in_many_chunks(made: Made) -> None:
    log = opened(made())
    for number in range(100):
        log.write([(b"k", b"%d" % number)])
    chunks = list(log.replay(chunk_bytes=500))
    assert len(chunks) > 10
    assert replayed(log, chunk_bytes=500) == [(n, b"%d" % n) for n in range(100)]


def test_replay_ends_where_the_log_ended_when_it_began(made: Made) -> None:
    log = opened(made())
    log.write([(b"k", b"1")])
    chunks = log.replay()
    first = next(chunks)
    log.write([(b"k", b"2")])
    assert [len(first), *map(len, chunks)] == [1]


def test_records_deleted_from_the_front_are_not_replayed(made: Made) -> None:
    partition = made()
    log = opened(partition)
    log.write([(b"k", b"1"), (b"k", b"2")])
    log.write([(b"k", b"3")])
    partition.delete_records(1)
    assert replayed(log) == [(1, b"2"), (2, b"3")]


def test_a_batch_that_rotted_is_reported_and_the_others_are_read(made: Made) -> None:
    partition = made()
    reports: list[str] = []
    log = opened(partition, reports)
    for number in range(3):
        log.write([(b"k", b"value %d" % number)])
    segment = next(partition.log.dir.glob("*.log"))
    damaged = segment.read_bytes().replace(b"value 1", b"VALUE 1")
    segment.write_bytes(damaged)
    assert replayed(log) == [(0, b"value 0"), (2, b"value 2")]
    assert len(reports) == 1


def test_records_of_a_transaction_carry_their_producer(made: Made) -> None:
    partition = made()
    log = opened(partition)
    log.write([(b"a", b"1")], producer_id=7, producer_epoch=2)
    (chunk,) = log.replay()
    header = chunk[0][0]
    assert (header.producer_id, header.producer_epoch, header.is_transactional) == (7, 2, True)
    assert partition.last_stable_offset == 0


def test_several_writes_of_one_transaction_need_no_sequence(made: Made) -> None:
    log = opened(made())
    for _ in range(3):
        log.write([(b"a", b"1")], producer_id=7, producer_epoch=2)
    with pytest.raises(InvalidProducerEpoch):
        log.write([(b"a", b"1")], producer_id=7, producer_epoch=1)


def test_a_log_of_one_replica_is_settled_at_once(made: Made) -> None:
    log = opened(made())
    log.write([(b"a", b"1")])
    assert log.is_settled
    assert log.settled() is None


def test_with_more_replicas_it_is_settled_when_they_have_it(made: Made) -> None:
    async def run() -> None:
        partition = made()
        place(partition, state(isr=(BROKER, OTHER), min_isr=2, partition_epoch=1), (BROKER, OTHER))
        log = opened(partition)
        appended = asyncio.create_task(log.append([(b"a", b"1")]))
        await asyncio.sleep(0)
        assert not log.is_settled
        assert not appended.done()
        place(partition, state(partition_epoch=2), (BROKER, OTHER))
        assert await appended == 0

    asyncio.run(run())


def test_a_log_opened_over_unsettled_records_waits_for_them(made: Made) -> None:
    async def run() -> None:
        partition = made()
        place(partition, state(isr=(BROKER, OTHER), min_isr=2, partition_epoch=1), (BROKER, OTHER))
        opened(partition).write([(b"a", b"1")])
        again = opened(partition)
        assert not again.is_settled
        place(partition, state(partition_epoch=2), (BROKER, OTHER))
        await again.until_settled()

    asyncio.run(run())


def test_whoever_asks_after_another_has_taken_over_is_not_told_that_it_is_safe(made: Made) -> None:
    async def run() -> None:
        partition = made()
        place(partition, state(isr=(BROKER, OTHER), min_isr=2, partition_epoch=1), (BROKER, OTHER))
        log = opened(partition)
        log.write([(b"a", b"1")])
        place(partition, state(leader=OTHER, epoch=1), (BROKER, OTHER))
        with pytest.raises(NotCoordinator):
            await log.until_settled()
        partition.follow_high_watermark(1)  # Of what the new leader wrote in that place.
        assert not log.is_settled
        with pytest.raises(NotCoordinator):
            await log.until_settled()

    asyncio.run(run())


def test_whoever_waits_learns_that_another_leads_now(made: Made) -> None:
    async def run() -> None:
        partition = made()
        place(partition, state(isr=(BROKER, OTHER), min_isr=2, partition_epoch=1), (BROKER, OTHER))
        log = opened(partition)
        waiting = asyncio.create_task(log.append([(b"a", b"1")]))
        await asyncio.sleep(0)
        place(partition, state(leader=OTHER, epoch=1), (BROKER, OTHER))
        with pytest.raises(NotCoordinator):
            await waiting

    asyncio.run(run())


def test_only_the_leader_of_the_epoch_it_was_opened_in_may_write(made: Made) -> None:
    partition = made()
    log = opened(partition)
    place(partition, state(epoch=1), (BROKER,))
    with pytest.raises(NotCoordinator):
        log.write([(b"a", b"1")])
    assert partition.log.log_end_offset == 0
    opened(partition).write([(b"a", b"1")])


def test_a_record_too_large_is_refused_and_nothing_is_written(made: Made) -> None:
    partition = made(LogConfig(max_message_bytes=200))
    log = opened(partition)
    with pytest.raises(RecordTooLarge):
        log.write([(b"a", b"x" * 300)])
    assert partition.log.log_end_offset == 0
    assert log.is_settled


def test_a_size_can_be_refused_before_the_records_are_put_together(made: Made) -> None:
    partition = made(LogConfig(max_message_bytes=200))
    log = opened(partition)
    log.check_size(200)
    with pytest.raises(RecordTooLarge):
        log.check_size(201)
    opened(partition, codec=Codec.GZIP).check_size(201)  # Packed, it may fit.
    opened(partition, codec=Codec.GZIP).write([(b"a", b"x" * 300)])
    place(partition, state(epoch=1), (BROKER,))
    with pytest.raises(NotCoordinator):
        log.check_size(1)


def test_too_few_replicas_are_a_reason_to_try_again(made: Made) -> None:
    partition = made(LogConfig(min_insync_replicas=2))
    place(partition, state(partition_epoch=1), (BROKER, OTHER))
    with pytest.raises(CoordinatorNotAvailable):
        opened(partition).write([(b"a", b"1")])


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (NotEnoughReplicas("x"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (UnknownTopicOrPartition("x"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (NotLeaderOrFollower("x"), ErrorCode.NOT_COORDINATOR),
        (KafkaStorage("x"), ErrorCode.NOT_COORDINATOR),
        (CorruptRecord("x"), ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_clients_are_told_what_makes_them_try_the_right_broker(
    error: Exception, told: ErrorCode
) -> None:
    assert coordinator_error(error).code is told  # type: ignore[arg-type]


@given(st.text(max_size=30), st.integers(1, 200))
def test_every_id_has_a_partition(key: str, partition_count: int) -> None:
    assert 0 <= partition_for(key, partition_count) < partition_count
    assert partition_for("polygenelubricants", partition_count) == 0
    assert java_hash("polygenelubricants") == -(1 << 31)
