"""Logs and batches for the tests of the log engine."""

import os
from collections.abc import Sequence
from pathlib import Path

from penstock.records.batch import (
    BatchHeader,
    build_batch,
    control_batch,
    read_header,
    read_records,
    split_batches,
)
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.records.record import Record
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Appended, Log

Batch = tuple[BatchHeader, memoryview]

# Where logs under test live: they flush much, and a disk would be slow.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

# Segments and index intervals so small that a few records exercise all of it.
SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100, segment_index_bytes=4096)


def batch(
    values: Sequence[bytes] = (b"v",),
    *,
    timestamps: Sequence[int] | int = 1_000,
    producer: tuple[int, int, int] | None = None,  # Id, epoch, first sequence number.
    is_transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> Batch:
    """A batch as a producer sends it."""
    times = [timestamps] * len(values) if isinstance(timestamps, int) else list(timestamps)
    producer_id, producer_epoch, sequence = producer or (-1, -1, -1)
    built = build_batch(
        [
            Record(base_offset + number, times[number], None, value)
            for number, value in enumerate(values)
        ],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        leader_epoch=leader_epoch,
        is_transactional=is_transactional,
    )
    view = memoryview(built)
    return read_header(view), view


def marker(
    producer_id: int, producer_epoch: int, *, is_commit: bool = True, coordinator_epoch: int = 0
) -> Batch:
    """What a transaction coordinator writes to end a transaction."""
    kind = ControlType.COMMIT if is_commit else ControlType.ABORT
    view = memoryview(
        control_batch(
            EndTransactionMarker(kind, coordinator_epoch),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            now_ms=1_000,
        )
    )
    return read_header(view), view


class Reports(list[str]):
    """What the log said it did."""

    def __call__(self, line: str) -> None:
        self.append(line)

    def mention(self, words: str) -> bool:
        return any(words in line for line in self)


def new_log(directory: Path, config: LogConfig = SMALL, *, name: str = "t-0") -> Log:
    """An empty log that leader epoch 0 writes."""
    path = directory / name
    path.mkdir()
    log = Log.open(path, config=config, now_ms=0, clean=True, report=Reports())
    log.assign_epoch_start(0, 0)
    return log


def reopened(
    log: Log,
    *,
    clean: bool = False,
    config: LogConfig | None = None,
    recovery_point: int | None = None,
    now_ms: int = 0,
    reports: Reports | None = None,
) -> Log:
    """The same directory in a new process; without `clean` the old one was killed."""
    if clean:
        log.close()
    opened = Log.open(
        log.dir,
        config=config or log.config,
        now_ms=now_ms,
        clean=clean,
        recovery_point=log.recovery_point if recovery_point is None else recovery_point,
        log_start_offset=log.log_start_offset,
        report=Reports() if reports is None else reports,
    )
    opened.high_watermark = min(log.high_watermark, opened.log_end_offset)
    return opened


def append(log: Log, *batches: Batch, now_ms: int = 0, leader_epoch: int = 0) -> Appended:
    """Append as a client's leader, and commit at once."""
    appended = log.append_as_leader(batches, leader_epoch=leader_epoch, now_ms=now_ms)
    log.high_watermark = log.log_end_offset
    return appended


def fill(log: Log, count: int, *, value: bytes = b"v" * 40) -> None:
    """That many batches of one record."""
    for number in range(count):
        append(log, batch([value + b"%d" % number]))


def read_batches(log: Log, offset: int | None = None, bytes_max: int = 1 << 30) -> list[Batch]:
    """Every batch from an offset to the log's end, checked."""
    at = log.log_start_offset if offset is None else offset
    found: list[Batch] = []
    while at < log.log_end_offset:
        result = log.read(at, bytes_max=bytes_max, end_offset=log.log_end_offset, min_one=True)
        if not result.records:
            break
        assert not isinstance(result.records, bytes)
        found += split_batches(memoryview(result.records.read()))
        assert result.next_offset > at
        at = result.next_offset
    return found


def read_values(log: Log, offset: int | None = None) -> list[tuple[int, bytes | None]]:
    """Offsets and values of all records from an offset on."""
    at = log.log_start_offset if offset is None else offset
    return [
        (record.offset, record.value)
        for _, data in read_batches(log, at)
        for record in read_records(data)
        if record.offset >= at
    ]
