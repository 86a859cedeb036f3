"""Compacted logs for the tests of the cleaner, cleaned within the test's own process."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.unit.storage.made import SMALL, Batch, read_batches

from penstock.records.batch import BatchHeader, build_batch, read_header, read_records
from penstock.records.compression import Codec
from penstock.records.record import Record
from penstock.storage.compaction.cleaner import Cleaner, CleanerLimits, Cleaning
from penstock.storage.compaction.job import CleanJob
from penstock.storage.compaction.rewrite import Outcome, clean
from penstock.storage.log.log import Log

COMPACT = replace(
    SMALL,
    cleanup_policy=frozenset({"compact"}),
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1_000,
)
LIMITS = CleanerLimits(
    map_bytes=1 << 20, load_factor=0.9, io_bytes=1 << 16, bytes_per_s=float("inf")
)

KeyedRecord = tuple[bytes | None, bytes | None]


def keyed(
    records: Sequence[KeyedRecord],
    *,
    timestamp: int = 1_000,
    producer: tuple[int, int, int] | None = None,  # Id, epoch, first sequence number.
    is_transactional: bool = False,
    codec: Codec = Codec.NONE,
) -> Batch:
    """A batch of keys and values as a producer sends it."""
    producer_id, producer_epoch, sequence = producer or (-1, -1, -1)
    view = memoryview(
        build_batch(
            [Record(n, timestamp + n, key, value) for n, (key, value) in enumerate(records)],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
    )
    return read_header(view), view


def begin(log: Log, *, now_ms: int = 0) -> Cleaning | None:
    """What the cleaner would do with the log now."""
    return Cleaner().choose([log], now_ms)


def job_of(cleaning: Cleaning, *, now_ms: int = 0, limits: CleanerLimits = LIMITS) -> CleanJob:
    """The job as it arrives in another process."""
    return CleanJob.decode(json.loads(cleaning.job(limits, now_ms).encode()))


def clean_once(
    log: Log,
    *,
    now_ms: int = 0,
    limits: CleanerLimits = LIMITS,
    spend: Callable[[int], None] = lambda _size: None,
) -> Outcome | None:
    """Clean a log as the broker and its process do it together; None: it is clean."""
    cleaning = begin(log, now_ms=now_ms)
    if cleaning is None:
        return None

    def hand_over(old: list[int], new: list[int]) -> None:
        assert cleaning.swap(old, new, now_ms)

    outcome = clean(
        job_of(cleaning, now_ms=now_ms, limits=limits), spend=spend, hand_over=hand_over
    )
    cleaning.finish(outcome.end_offset)
    cleaning.close()
    return outcome


def clean_all(log: Log, *, now_ms: int = 0, limits: CleanerLimits = LIMITS) -> int:
    """Clean until there is nothing left to clean; how often."""
    rounds = 0
    while clean_once(log, now_ms=now_ms, limits=limits) is not None:
        rounds += 1
        assert rounds < 1_000, "the cleaner does not come to an end"
    return rounds


def read_keyed(log: Log, offset: int | None = None) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of all records but markers."""
    return [
        (record.offset, record.key, record.value)
        for header, data in read_batches(log, offset)
        if not header.is_control
        for record in read_records(data)
    ]


def headers_of(log: Log) -> list[BatchHeader]:
    return [header for header, _ in read_batches(log)]


def read_committed(log: Log, offset: int | None = None) -> list[tuple[int, bytes | None]]:
    """Offset and value by which a reader of committed records goes, as clients work it out."""
    start = log.log_start_offset if offset is None else offset
    end = log.last_stable_offset
    coming = sorted(log.aborted_transactions(start, end), key=lambda entry: -entry.first_offset)
    aborting: set[int] = set()
    found: list[tuple[int, bytes | None]] = []
    for header, data in read_batches(log, start):
        while coming and coming[-1].first_offset <= header.last_offset:
            aborting.add(coming.pop().producer_id)
        if header.base_offset >= end:
            break
        if header.is_control:
            aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            found += [(r.offset, r.value) for r in read_records(data) if r.offset >= start]
    return found
