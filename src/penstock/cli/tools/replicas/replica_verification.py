"""kafka-replica-verification: do all replicas of a partition hold the same records?

Reads all replicas side by side, batch by batch up to the high watermark, compares offsets and
checksums, and tells again and again how far the comparison is behind.
"""

import argparse
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.parser import ToolParser
from penstock.cli.stopping import stop_on_signals
from penstock.cli.topic_filter import topic_pattern
from penstock.client.admin import Admin
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.operations.replica_records import (
    ReplicaReads,
    ReplicaRecords,
    read_replicas,
)
from penstock.client.values import TopicPartition
from penstock.errors import CommandError, ProtocolError
from penstock.records.batch import HEADER_BYTES, LOG_OVERHEAD, read_header

_NOTHING = ReplicaRecords(records=memoryview(b""), high_watermark=-1)


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    reads = ReplicaReads(fetch_bytes=options.fetch_size, max_wait_ms=options.max_wait_ms)
    stop = stop_on_signals()
    with admin_of(parser, options) as admin:
        replicas = _replicas(admin, topic_pattern(options.topics_include or options.old or ".*"))
        comparison = Comparison(replicas, _start_offsets(admin, list(replicas), options.time))
        print(f"{_now()}: verification process is started.", flush=True)
        told_s = time.monotonic()
        while not stop.is_set():
            found = read_replicas(admin.cluster, comparison.wanted(), reads)
            for difference in comparison.take(found):
                print(f"{_now()}: {difference}", flush=True)
            if comparison.has_lost_step:
                return 1
            if (time.monotonic() - told_s) * 1000 >= options.report_interval_ms:
                told_s = time.monotonic()
                is_old = options.old is not None and options.topics_include is None
                print(f"{_now()}: {lag_text(comparison.worst(), is_old=is_old)}", flush=True)
    return 1 if comparison.differences else 0


class Batch(NamedTuple):
    """What is compared of a batch."""

    last_offset: int
    checksum: int


class Lag(NamedTuple):
    """The partition that is furthest behind."""

    partition: TopicPartition
    lag: int
    offset: int
    partition_count: int


@dataclass(slots=True, kw_only=True)
class ComparisonProgress:
    """How far one partition was compared."""

    offset: int
    high_watermark: int  # The highest that any replica told.


class Comparison:
    """Goes through the batches of all replicas in step; knows nothing of brokers or clocks."""

    def __init__(
        self,
        replicas: Mapping[TopicPartition, Sequence[int]],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        self.replicas = {at: tuple(replicas[at]) for at in sorted(replicas)}
        self.differences = 0
        self.has_lost_step = False  # Batches end at different offsets: no more to compare.
        self._progress = {
            at: ComparisonProgress(offset=offsets[at], high_watermark=offsets[at])
            for at in self.replicas
        }

    def wanted(self) -> dict[int, dict[TopicPartition, int]]:
        """What to read next, by broker."""
        reads: dict[int, dict[TopicPartition, int]] = {}
        for at, brokers in self.replicas.items():
            for broker in brokers:
                reads.setdefault(broker, {})[at] = self._progress[at].offset
        return reads

    def take(self, found: Mapping[int, Mapping[TopicPartition, ReplicaRecords]]) -> Iterator[str]:
        """Compare what was read; a sentence for every difference."""
        for at, brokers in self.replicas.items():
            its = {broker: found.get(broker, {}).get(at, _NOTHING) for broker in brokers}
            progress = self._progress[at]
            high = max(read.high_watermark for read in its.values())
            progress.high_watermark = max(progress.high_watermark, high)
            for difference in self._in_step(at, its, progress):
                self.differences += 1
                yield difference

    def worst(self) -> Lag:
        """The partition with the most left to compare."""
        lags = {at: p.high_watermark - p.offset for at, p in self._progress.items()}
        at = max(lags, key=lambda one: lags[one])
        return Lag(at, lags[at], self._progress[at].offset, len(lags))

    def _in_step(
        self, at: TopicPartition, its: Mapping[int, ReplicaRecords], progress: ComparisonProgress
    ) -> Iterator[str]:
        readers = {broker: _batches(read.records) for broker, read in its.items()}
        while True:
            row: dict[int, Batch] = {}
            for broker, reader in readers.items():
                batch = next(reader, None)
                # What is above the high watermark may yet be taken back.
                if batch is None or batch.last_offset >= its[broker].high_watermark:
                    return
                row[broker] = batch
            yield from self._differences(at, row)
            if self.has_lost_step:
                return
            progress.offset = next(iter(row.values())).last_offset + 1

    def _differences(self, at: TopicPartition, row: Mapping[int, Batch]) -> Iterator[str]:
        (first, expected), *others = row.items()
        for broker, batch in others:
            if batch.last_offset != expected.last_offset:
                self.has_lost_step = True
                yield (
                    f"partition {at}: replica {first}'s offset {expected.last_offset} doesn't "
                    f"match replica {broker}'s offset {batch.last_offset}"
                )
            elif batch.checksum != expected.checksum:
                yield (
                    f"partition {at} has unmatched checksum at offset {batch.last_offset}; "
                    f"replica {first}'s checksum {expected.checksum}; "
                    f"replica {broker}'s checksum {batch.checksum}"
                )


def lag_text(worst: Lag, *, is_old: bool) -> str:
    """The line of each interval; texts of the time of --topic-white-list write `[topic,0]`."""
    at = worst.partition
    name = f"[{at.topic},{at.partition}]" if is_old else str(at)
    return (
        f"max lag is {worst.lag} for partition {name} at offset {worst.offset} "
        f"among {worst.partition_count} partitions"
    )


def _batches(records: memoryview) -> Iterator[Batch]:
    """The whole batches; a broker may cut the last one off."""
    at = 0
    while len(records) - at >= HEADER_BYTES:
        header = read_header(records, at)
        size = header.batch_length + LOG_OVERHEAD
        if size < HEADER_BYTES or len(records) - at < size:
            return
        yield Batch(header.last_offset, header.crc)
        at += size


def _replicas(admin: Admin, pattern: re.Pattern[str]) -> dict[TopicPartition, list[int]]:
    names = [topic.name for topic in admin.list_topics() if pattern.match(topic.name)]
    found = {
        TopicPartition(topic.name, part.partition): [node.id for node in part.replicas]
        for topic in admin.describe_topics(names).values()
        for part in topic.partitions
    }
    if not found:
        raise CommandError(
            "No topics found. --topics-include if specified, is either filtering out all topics "
            "or there is no topic."
        )
    return found


def _start_offsets(
    admin: Admin, partitions: Sequence[TopicPartition], time_ms: int
) -> dict[TopicPartition, int]:
    found = admin.list_offsets(dict.fromkeys(partitions, time_ms))
    late = [at for at in partitions if found[at] is None]  # No record is that late: the end.
    ends = admin.list_offsets(dict.fromkeys(late, OffsetSpec.LATEST)) if late else {}
    offsets: dict[TopicPartition, int] = {}
    for at in partitions:
        result = found[at] if found[at] is not None else ends[at]
        if isinstance(result, ProtocolError):
            raise CommandError(f"The offsets of {at} could not be had: {result}")
        offsets[at] = 0 if result is None else result.offset
    return offsets


def _now() -> str:
    """`2017-05-17 14:06:46,446`."""
    now_s = time.time()
    millis = int(now_s * 1000) % 1000
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now_s))},{millis:03d}"


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-replica-verification",
        "Validate that all replicas for a set of topics have the same data.",
    )
    add_bootstrap(parser, zookeeper=True, broker_list=True)
    add_command_config(parser)
    option = parser.add_argument
    option(
        "--topics-include",
        metavar="Java regex (String)",
        help="Topics whose replicas are compared. (default: .*)",
    )
    option(
        "--topic-white-list",
        dest="old",
        metavar="Java regex (String)",
        help="(DEPRECATED) Use --topics-include. Partitions are then written as [topic,0].",
    )
    option(
        "--time",
        type=int,
        default=int(OffsetSpec.LATEST),
        metavar="Long: timestamp/-1(latest)/-2(earliest)",
        help="From where on to compare. (default: -1)",
    )
    option(
        "--fetch-size",
        type=_positive,
        default=ReplicaReads().fetch_bytes,
        metavar="Integer: bytes",
        help="How much to read of a partition at once. (default: 1048576)",
    )
    option(
        "--max-wait-ms",
        type=_positive,
        default=ReplicaReads().max_wait_ms,
        metavar="Integer: ms",
        help="How long a broker may wait for new records. (default: 1000)",
    )
    option(
        "--report-interval-ms",
        type=_positive,
        default=30_000,
        metavar="Long: ms",
        help="How often to tell the lag. (default: 30000)",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be above 0")
    return number
