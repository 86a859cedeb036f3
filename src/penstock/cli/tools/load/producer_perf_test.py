"""kafka-producer-perf-test: how many records a second go in, and how long each takes."""

import argparse
import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from penstock.cli.bootstrap import add_bootstrap
from penstock.cli.client_options import (
    add_client_options,
    client_settings,
    quiet_librdkafka,
    reach,
)
from penstock.cli.metrics_table import metrics_table
from penstock.cli.parser import ToolParser
from penstock.cli.perf_report import LatencyReport
from penstock.client.producer.bulk import BulkProducer
from penstock.errors import CommandError, ErrorCode

_BATCH_MAX = 500  # Records handed to librdkafka in one call: enough to make the call cheap.
_TRANSACTION_MS = 3000


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    if not argv:
        print(parser.format_help(), end="")
        return 0
    options = parser.parse(argv)
    parser.required(options, "topic", "num-records", "throughput")
    _check(parser, options)
    settings = client_settings(
        parser, options, {"client.id": "perf-producer-client"}, _own(options)
    )
    quiet_librdkafka()
    code = reach(settings, [options.topic], create=True)[options.topic]
    if code == ErrorCode.INVALID_TOPIC_EXCEPTION:
        raise CommandError(f"{options.topic!r} is not a legal topic name.")
    with BulkProducer(settings, measure_latency=True) as producer:
        _run(producer, options, "transactional.id" in settings)
        if options.print_metrics:
            print(metrics_table(producer.metrics()))
        failures = producer.failures
    if failures:
        raise CommandError(f"{len(failures)} records were not stored: {failures[0]}")
    return 0


def _run(producer: BulkProducer, options: argparse.Namespace, transactional: bool) -> None:
    report = LatencyReport(options.reporting_interval, now_s=time.monotonic())
    steady: LatencyReport | None = None
    pace = ThroughputThrottler(options.throughput, now_s=time.monotonic())
    transaction = PeriodicCommits(producer, options) if transactional else None
    sent = sent_bytes = 0
    for values in _batches(options):
        if transaction is not None:
            transaction.step()
        producer.send_batch(options.topic, values)
        sent += len(values)
        sent_bytes += sum(map(len, values))
        producer.serve()
        steady = _account(producer, report, steady, options, sent_bytes / sent)
        pace.wait(sent, producer)
    if transaction is not None:
        transaction.end()
    producer.flush()
    steady = _account(producer, report, steady, options, sent_bytes / sent)
    now_s = time.monotonic()
    print(report.total_line(now_s))
    if steady is not None:
        print(f"{steady.total_line(now_s)} (steady state)")


def _account(
    producer: BulkProducer,
    report: LatencyReport,
    steady: LatencyReport | None,
    options: argparse.Namespace,
    bytes_each: float,
) -> LatencyReport | None:
    """Take in what was stored since; the steady state begins once the warm-up is over."""
    latencies_s = producer.latencies_s.copy()
    producer.latencies_s.clear()
    now_s = time.monotonic()
    report.add(latencies_s, bytes_each)
    if steady is None and options.warmup_records and report.count > options.warmup_records:
        steady = LatencyReport(options.reporting_interval, now_s=now_s)
    elif steady is not None:
        steady.add(latencies_s, bytes_each)
    line = report.window_line(now_s)
    if line is not None:
        print(line, flush=True)
    return steady


class ThroughputThrottler:
    """Holds the sending to so many records a second."""

    def __init__(self, records_per_s: float, *, now_s: float) -> None:
        self._records_per_s = records_per_s
        self._start_s = now_s

    def wait(self, sent: int, producer: BulkProducer) -> None:
        """Until it is time for the next record, with reports taken in meanwhile."""
        if self._records_per_s <= 0:
            return
        due_s = self._start_s + sent / self._records_per_s
        while (left_s := due_s - time.monotonic()) > 0:
            producer.serve(min(left_s, 0.1))


class PeriodicCommits:
    """Commits every so often."""

    def __init__(self, producer: BulkProducer, options: argparse.Namespace) -> None:
        self._producer = producer
        self._length_s = (options.transaction_duration_ms or _TRANSACTION_MS) / 1000
        self._began_s: float | None = None
        producer.init_transactions()

    def step(self) -> None:
        """Begin one, or end one that is old enough and begin the next."""
        now_s = time.monotonic()
        if self._began_s is not None and now_s - self._began_s < self._length_s:
            return
        self.end()
        self._producer.begin_transaction()
        self._began_s = now_s

    def end(self) -> None:
        """Commit what is open."""
        if self._began_s is not None:
            self._producer.commit_transaction()
            self._began_s = None


def _batches(options: argparse.Namespace) -> Iterator[list[bytes]]:
    """Payloads in lists of a size that fits the pace."""
    pace = options.throughput
    size = _BATCH_MAX if pace <= 0 else max(1, min(_BATCH_MAX, int(pace / 100)))
    make = _payloads(options)
    made = 0
    while made < options.num_records:
        count = min(size, options.num_records - made)
        yield make(made, count)
        made += count


def _payloads(options: argparse.Namespace) -> Callable[[int, int], list[bytes]]:
    if options.payload_monotonic:
        return lambda first, count: [str(number).encode() for number in range(first, first + count)]
    if options.payload_file:
        lines = _payload_lines(options.payload_file, options.payload_delimiter)
        return lambda _, count: random.choices(lines, k=count)
    letters = random.Random(0).choices(range(65, 91), k=options.record_size)
    payload = bytes(letters)
    return lambda _, count: [payload] * count


def _payload_lines(file: str, delimiter: str) -> list[bytes]:
    print(f"Reading payloads from: {Path(file).absolute()}")
    try:
        text = Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"Cannot read the payload file {file}: {error}") from error
    if not text:
        raise CommandError("File does not exist or empty file provided.")
    lines = [line.encode() for line in text.rstrip(delimiter).split(delimiter)]
    print(f"Number of records read: {len(lines)}")
    return lines


def _own(options: argparse.Namespace) -> dict[str, object]:
    identity = options.transactional_id
    if identity is None and options.transaction_duration_ms:
        identity = f"performance-producer-{uuid.uuid4()}"
    return {"transactional.id": identity}


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    sources = [options.record_size, options.payload_file, options.payload_monotonic or None]
    if sum(source is not None for source in sources) != 1:
        parser.error(
            "Exactly one of --record-size, --payload-file or --payload-monotonic is required"
        )
    if options.num_records <= 0:
        parser.error("--num-records should be greater than zero")
    if options.record_size is not None and options.record_size <= 0:
        parser.error("--record-size should be greater than zero")
    if options.reporting_interval <= 0:
        parser.error("--reporting-interval should be greater than zero")
    if options.warmup_records >= options.num_records:
        parser.error("The value for --warmup-records must be strictly fewer than --num-records")
    options.payload_delimiter = options.payload_delimiter.replace("\\n", "\n")


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-producer-perf-test", "This tool is used to verify the producer performance."
    )
    add_bootstrap(parser, broker_list=True)
    add_client_options(parser, "producer", many=True)
    option = parser.add_argument
    option("--topic", metavar="TOPIC", help="Produce records to this topic.")
    option("--num-records", type=int, metavar="COUNT", help="Number of records to produce.")
    option("--record-size", type=int, metavar="BYTES", help="Record size in bytes.")
    option("--payload-file", metavar="FILE", help="UTF-8 file to choose payloads from at random.")
    option("--payload-delimiter", default="\n", metavar="TEXT", help="What ends a payload there.")
    parser.flag("payload-monotonic", "Payload is a monotonically increasing integer.")
    option(
        "--throughput",
        type=float,
        metavar="RECORDS-PER-SECOND",
        help="Throttle to about so many records per second. Set this to -1 to disable throttling.",
    )
    option("--transactional-id", metavar="ID", help="The transactional id to use.")
    option(
        "--transaction-duration-ms",
        type=int,
        metavar="MS",
        help="The maximum duration of each transaction (default: 3000 with a transactional id)",
    )
    option(
        "--warmup-records",
        type=int,
        default=0,
        metavar="COUNT",
        help="Records to leave out of the steady-state line (default: 0)",
    )
    option(
        "--reporting-interval",
        type=int,
        default=5000,
        metavar="MS",
        help="Interval at which to print progress (default: 5000)",
    )
    parser.flag("print-metrics", "Print out metrics at the end of the test.")
    return parser
