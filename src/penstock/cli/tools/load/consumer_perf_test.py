"""kafka-consumer-perf-test: how many records a second come out.

With `--group` it reads as a member of that group; without, it takes all partitions by itself, and
the time of rebalancing is nothing.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.cli.bootstrap import add_bootstrap
from penstock.cli.client_options import (
    add_client_options,
    client_settings,
    quiet_librdkafka,
    reach,
)
from penstock.cli.metrics_table import metrics_table
from penstock.cli.parser import ToolParser, warn_deprecated
from penstock.cli.topic_filter import topic_pattern
from penstock.client.consumer.bulk import BulkConsumer
from penstock.errors import CommandError, ErrorCode

_MB = 1024 * 1024
_COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
_COUNT_MAX = 10_000
_POLL_S = 0.1


@dataclass(slots=True)
class Tally:
    """Records and bytes read, and where the current interval began."""

    start_s: float
    interval_start_s: float
    count: int = 0
    size: int = 0
    interval_count: int = 0
    interval_size: int = 0
    joined_ms: float = 0.0
    interval_joined_ms: float = 0.0


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    _check(parser, options)
    settings = client_settings(parser, options, _DEFAULTS, _own(options))
    quiet_librdkafka()
    _check_topic(settings, options.topic)
    if not options.hide_header:
        first = "time, threadId" if options.show_detailed_stats else "start.time, end.time"
        print(f"{first}, {_COLUMNS}")
    with BulkConsumer(settings) as consumer:
        began = datetime.now()
        tally = _consume(consumer, options)
        if not options.show_detailed_stats:
            print(_total_line(tally, began, datetime.now(), options.date_format))
        if options.print_metrics:
            print(metrics_table(consumer.metrics()))
    return 0


def _consume(consumer: BulkConsumer, options: argparse.Namespace) -> Tally:
    start_s = time.monotonic()
    tally = Tally(start_s=start_s, interval_start_s=start_s)
    _begin(consumer, options)
    heard_s = start_s
    while tally.count < options.num_records:
        wanted = min(_COUNT_MAX, options.num_records - tally.count)
        count, size = consumer.take(wanted, _POLL_S)
        now_s = time.monotonic()
        if count:
            _note_join(tally, consumer, now_s)
            tally.count += count
            tally.size += size
            heard_s = now_s
        elif now_s - heard_s > options.timeout / 1000:
            print(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({options.timeout} ms) exceeded. You can use the --timeout option to increase "
                "the timeout."
            )
            break
        if options.show_detailed_stats and _interval_is_over(tally, options, now_s):
            print(_interval_line(tally, now_s, options.date_format), flush=True)
            _next_interval(tally, now_s)
    return tally


def _note_join(tally: Tally, consumer: BulkConsumer, now_s: float) -> None:
    """The first record ends the time in which the group shared out the partitions."""
    if tally.count == 0 and consumer.group_id is not None:
        tally.joined_ms = tally.interval_joined_ms = (now_s - tally.start_s) * 1000


def _begin(consumer: BulkConsumer, options: argparse.Namespace) -> None:
    if consumer.group_id is not None:
        consumer.subscribe([options.topic] if options.topic else topic_pattern(options.include))
        return
    names = consumer.topics()
    if options.include:
        pattern = topic_pattern(options.include)
        wanted = [name for name in names if pattern.match(name)]
    else:
        wanted = [options.topic]
    consumer.assign_all(wanted, from_beginning=not options.from_latest)


def _interval_is_over(tally: Tally, options: argparse.Namespace, now_s: float) -> bool:
    return bool((now_s - tally.interval_start_s) * 1000 >= options.reporting_interval)


def _next_interval(tally: Tally, now_s: float) -> None:
    tally.interval_start_s = now_s
    tally.interval_count, tally.interval_size = tally.count, tally.size
    tally.interval_joined_ms = 0.0


def _interval_line(tally: Tally, now_s: float, date_format: str) -> str:
    return ", ".join(
        (
            formatted(datetime.now(), date_format),
            "0",
            *_rates(
                tally.size,
                tally.count,
                tally.size - tally.interval_size,
                tally.count - tally.interval_count,
                (now_s - tally.interval_start_s) * 1000,
                tally.interval_joined_ms,
            ),
        )
    )


def _total_line(tally: Tally, began: datetime, ended: datetime, date_format: str) -> str:
    elapsed_ms = (ended - began).total_seconds() * 1000
    return ", ".join(
        (
            formatted(began, date_format),
            formatted(ended, date_format),
            *_rates(tally.size, tally.count, tally.size, tally.count, elapsed_ms, tally.joined_ms),
        )
    )


def _rates(
    size: int, count: int, new_size: int, new_count: int, elapsed_ms: float, joined_ms: float
) -> list[str]:
    """The columns behind the times: totals so far, and rates of what is new."""
    elapsed_s = max(elapsed_ms, 1.0) / 1000
    fetch_ms = max(elapsed_ms - joined_ms, 1.0)
    return [
        f"{size / _MB:.4f}",
        f"{new_size / _MB / elapsed_s:.4f}",
        str(count),
        f"{new_count / elapsed_s:.4f}",
        f"{joined_ms:.0f}",
        f"{fetch_ms:.0f}",
        f"{new_size / _MB / (fetch_ms / 1000):.4f}",
        f"{new_count / (fetch_ms / 1000):.4f}",
    ]


def formatted(moment: datetime, date_format: str) -> str:
    """A time in the common words of Java's SimpleDateFormat."""
    words = {
        "yyyy": f"{moment.year:04d}",
        "MM": f"{moment.month:02d}",
        "dd": f"{moment.day:02d}",
        "HH": f"{moment.hour:02d}",
        "mm": f"{moment.minute:02d}",
        "SSS": f"{moment.microsecond // 1000:03d}",
        "ss": f"{moment.second:02d}",
    }
    for word, value in words.items():
        date_format = date_format.replace(word, value)
    return date_format


_DEFAULTS: dict[str, object] = {"client.id": "perf-consumer-client", "check.crcs": False}


def _own(options: argparse.Namespace) -> dict[str, object]:
    return {
        "group.id": options.group,
        "receive.buffer.bytes": options.socket_buffer_size,
        "max.partition.fetch.bytes": options.fetch_size,
        "auto.offset.reset": "latest" if options.from_latest else "earliest",
    }


def _check_topic(settings: Mapping[str, object], topic: str | None) -> None:
    found = reach(settings, [topic] if topic else [], create=False)
    if topic and found.get(topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise CommandError(f"Topic {topic} does not exist.")


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    if options.messages is not None:
        warn_deprecated(options, {"messages": "num-records"})
        options.num_records = options.num_records or options.messages
    if bool(options.topic) == bool(options.include):
        parser.error("Exactly one of the following arguments is required: [topic], [include]")
    parser.required(options, "num-records")


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-consumer-perf-test", "This tool is used to verify the consumer performance."
    )
    add_bootstrap(parser, broker_list=True)
    add_client_options(parser, "consumer")
    option = parser.add_argument
    option("--topic", metavar="topic", help="The topic to consume from.")
    option("--include", metavar="regex", help="Regular expression of topics to consume from.")
    option("--num-records", type=int, metavar="count", help="REQUIRED: The number to consume.")
    option("--messages", type=int, metavar="count", help="(DEPRECATED) Use --num-records instead.")
    option("--group", metavar="gid", help="The group id to consume on; without it, no group.")
    parser.flag("from-latest", "Start with the latest record, not with the earliest.")
    option(
        "--fetch-size",
        type=int,
        default=1024 * 1024,
        metavar="size",
        help="The amount of data to fetch from a partition per request. (default: 1048576)",
    )
    option(
        "--socket-buffer-size",
        type=int,
        default=2 * 1024 * 1024,
        metavar="size",
        help="The size of the tcp RECV size. (default: 2097152)",
    )
    option(
        "--timeout",
        type=int,
        default=10_000,
        metavar="milliseconds",
        help="The maximum allowed time between returned records. (default: 10000)",
    )
    option(
        "--reporting-interval",
        type=int,
        default=5000,
        metavar="interval_ms",
        help="Interval at which to print progress info. (default: 5000)",
    )
    parser.flag("show-detailed-stats", "Print the figures of every reporting interval.")
    parser.flag("hide-header", "Skip printing the header for the stats.")
    parser.flag("print-metrics", "Print out the metrics.")
    option(
        "--date-format",
        default="yyyy-MM-dd HH:mm:ss:SSS",
        metavar="date format",
        help="How to print times. (default: yyyy-MM-dd HH:mm:ss:SSS)",
    )
    option("--threads", metavar="count", help="(DEPRECATED) Accepted for old scripts.")
    return parser
