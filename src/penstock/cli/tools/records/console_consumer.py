"""kafka-console-consumer: prints the records of topics.

With `--group` it is a member of that group. Without, it needs no group at all: it reads every
partition by itself, and picks up new ones as they come.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import NoReturn, TypeAlias

from penstock.cli.bootstrap import add_bootstrap
from penstock.cli.client_options import (
    add_client_options,
    client_settings,
    quiet_librdkafka,
    reach,
)
from penstock.cli.parser import ToolParser, key_values, settings_from, warn_deprecated
from penstock.cli.record_printer import RawRecord, RecordPrinter
from penstock.cli.topic_filter import topic_pattern
from penstock.client.consumer.consumer import Consumer
from penstock.client.values import TopicPartition
from penstock.errors import CommandError, ErrorCode, PenstockError, error_for

RawConsumer: TypeAlias = Consumer[bytes, bytes]
Formatter: TypeAlias = Callable[[RawRecord], bytes]

_POLL_S = 0.5
_LOOK_AGAIN_S = 5.0  # For new partitions, and new topics of a pattern.
_DEFAULTS: dict[str, object] = {"client.id": "console-consumer", "max.poll.records": 1000}


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    _check(parser, options)
    warn_deprecated(options, {"property": "formatter-property"})
    settings = client_settings(parser, options, _DEFAULTS, _own_settings(options))
    formatter = _formatter(options)
    quiet_librdkafka()
    if options.topic:
        _check_topic(settings, options.topic)
    else:
        reach(settings, [], create=False)
    for number in (signal.SIGTERM, signal.SIGINT):  # A shell may have told us to ignore the latter.
        signal.signal(number, _stop)
    printed = Printed(options.max_messages)
    try:
        with RawConsumer(settings) as consumer:
            _print_all(consumer, formatter, options, printed)
    finally:
        sys.stdout.flush()
        print(f"Processed a total of {printed.count} messages", file=sys.stderr)
    return 0


class Printed:
    """How many records were printed, and whether that is enough."""

    def __init__(self, count_max: int | None) -> None:
        self.count = 0
        self._count_max = count_max

    @property
    def is_enough(self) -> bool:
        return self._count_max is not None and self.count >= self._count_max


def _print_all(
    consumer: RawConsumer, formatter: Formatter, options: argparse.Namespace, printed: Printed
) -> None:
    look_again = _begin(consumer, options)
    silence_s_max = None if options.timeout_ms is None else options.timeout_ms / 1000
    heard_s = looked_s = time.monotonic()
    while not printed.is_enough:
        now_s = time.monotonic()
        if now_s - looked_s > _LOOK_AGAIN_S:
            look_again()
            looked_s = now_s
        if silence_s_max is not None and now_s - heard_s > silence_s_max:
            return
        wait_s = _POLL_S if silence_s_max is None else min(_POLL_S, silence_s_max)
        records = _poll(consumer, wait_s, skip=options.skip_message_on_error)
        if records:
            _print_batch(consumer, records, formatter, options, printed)
            heard_s = time.monotonic()


def _poll(consumer: RawConsumer, wait_s: float, *, skip: bool) -> Sequence[RawRecord]:
    if not consumer.assignment() and not consumer.subscription():
        time.sleep(wait_s)  # A pattern that matches nothing yet.
        return ()
    try:
        return list(consumer.poll(wait_s))
    except PenstockError as error:
        if not skip:
            raise
        print(f"Skipped: {error}", file=sys.stderr)
        return ()


def _print_batch(
    consumer: RawConsumer,
    records: Sequence[RawRecord],
    formatter: Formatter,
    options: argparse.Namespace,
    printed: Printed,
) -> None:
    """Lines of a whole poll in one write; what is not printed stays for the group to read."""
    lines: list[bytes] = []
    taken = done = 0
    try:
        for record in records:
            if printed.is_enough:
                break
            taken += 1
            try:
                lines.append(formatter(record))
            except PenstockError as error:
                if not options.skip_message_on_error:
                    _write(lines)
                    done = taken
                    raise
                print(f"Skipped: {error}", file=sys.stderr)
            printed.count += 1
        _write(lines)
        done = taken
    finally:
        _give_back(consumer, records[done:])


def _write(lines: Sequence[bytes]) -> None:
    sys.stdout.buffer.write(b"".join(lines))
    sys.stdout.buffer.flush()


def _give_back(consumer: RawConsumer, records: Sequence[RawRecord]) -> None:
    """Stand before records that were polled and not printed, or they would be committed."""
    firsts = {TopicPartition(one.topic, one.partition): one.offset for one in reversed(records)}
    for at, offset in firsts.items():
        if _has_group(consumer) and at in consumer.assignment():
            consumer.seek(at, offset)


def _begin(consumer: RawConsumer, options: argparse.Namespace) -> Callable[[], None]:
    """Start on the wanted partitions; what to call to look for new ones."""
    if options.partition is not None:
        _begin_one(consumer, options)
        return lambda: None
    if _has_group(consumer):
        consumer.subscribe(topic_pattern(options.include) if options.include else [options.topic])
        return lambda: None
    take_new(consumer, options, first=True)
    return lambda: take_new(consumer, options, first=False)


def take_new(consumer: RawConsumer, options: argparse.Namespace, *, first: bool) -> None:
    """Assign the partitions that are not yet; those that came later are read from their start."""
    if options.topic:
        found = consumer.partitions_for(options.topic)
    else:
        matches = topic_pattern(options.include)
        topics = consumer.topics()
        found = [one for name in topics if matches.match(name) for one in topics[name]]
    wanted = {TopicPartition(one.topic, one.partition) for one in found}
    new = wanted - consumer.assignment()
    if not new:
        return
    consumer.assign(wanted | consumer.assignment())
    if not first or options.from_beginning:
        consumer.seek_to_beginning(new)


def _begin_one(consumer: RawConsumer, options: argparse.Namespace) -> None:
    partition = TopicPartition(options.topic, options.partition)
    known = [one.partition for one in consumer.partitions_for(options.topic)]
    if options.partition not in known:
        raise CommandError(
            f"Topic {options.topic} has no partition {options.partition}; it has {len(known)}."
        )
    consumer.assign([partition])
    if options.offset in ("earliest",) or (options.offset is None and options.from_beginning):
        consumer.seek_to_beginning([partition])
    elif options.offset in (None, "latest"):
        consumer.seek_to_end([partition])
    else:
        consumer.seek(partition, int(options.offset))


def _has_group(consumer: RawConsumer) -> bool:
    return consumer.group_id is not None


def _own_settings(options: argparse.Namespace) -> dict[str, object]:
    reset = "earliest" if options.from_beginning else None
    return {
        "group.id": options.group,
        "auto.offset.reset": reset,
        "isolation.level": options.isolation_level,
    }


def _check_topic(settings: Mapping[str, object], topic: str) -> None:
    code = reach(settings, [topic], create=True).get(topic, 0)
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        # A broker that creates topics says so once, while it creates.
        code = reach(settings, [topic], create=True).get(topic, 0)
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise CommandError(f"Topic {topic} does not exist.")
    if code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        error = error_for(code)
        raise CommandError(f"Topic {topic} cannot be read: {type(error).__name__}.")


def _formatter(options: argparse.Namespace) -> Formatter:
    words = options.property + options.formatter_property
    properties = settings_from(options.formatter_config, words, "--formatter-property")
    if options.key_deserializer:
        properties["key.deserializer"] = options.key_deserializer
    if options.value_deserializer:
        properties["value.deserializer"] = options.value_deserializer
    name = (options.formatter or "DefaultMessageFormatter").rpartition(".")[2]
    if name == "DefaultMessageFormatter":
        return RecordPrinter(properties).line
    if name == "NoOpMessageFormatter":
        return lambda _: b""
    raise CommandError(
        f"--formatter {options.formatter} is not known here: "
        "choose DefaultMessageFormatter or NoOpMessageFormatter."
    )


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    options.include = options.include or options.whitelist
    # -1 means without end in both, as it does in Kafka's tool.
    options.max_messages = None if (options.max_messages or 0) < 0 else options.max_messages
    options.timeout_ms = None if (options.timeout_ms or 0) < 0 else options.timeout_ms
    if bool(options.topic) == bool(options.include):
        parser.error("Exactly one of the following arguments is required: [topic], [include]")
    if options.partition is not None and not options.topic:
        parser.error("The topic is required when partition is specified.")
    if options.offset is not None:
        if options.partition is None:
            parser.error("The partition is required when offset is specified.")
        if options.from_beginning:
            parser.error("Options from-beginning and offset cannot be specified together.")
        if options.offset not in ("earliest", "latest") and not options.offset.isdigit():
            parser.error(
                f"The provided offset value '{options.offset}' is incorrect. Valid values are "
                "'earliest', 'latest', or a non-negative long."
            )
    _check_group(parser, options)


def _check_group(parser: ToolParser, options: argparse.Namespace) -> None:
    """Refuse options that say one thing and settings that say another."""
    words = key_values(options.command_property, "--command-property")
    file = settings_from(options.command_config)
    named = dict.fromkeys([options.group, file.get("group.id"), words.get("group.id")])
    groups = [group for group in named if group]
    if len(groups) > 1:
        found = ", ".join(f"'{group}'" for group in groups)
        parser.error(
            "The group ids provided in different places (directly using '--group', via "
            f"'--consumer-property', or via '--consumer.config') do not match. Detected group ids: "
            f"{found}"
        )
    if groups and options.partition is not None:
        parser.error("Options group and partition cannot be specified together.")
    start = {**file, **words}.get("auto.offset.reset", "earliest")
    if options.from_beginning and start != "earliest":
        parser.error(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={start}', "
            "please remove one option"
        )


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-console-consumer",
        "This tool helps to read data from Kafka topics and outputs it to standard output.",
    )
    add_bootstrap(parser, zookeeper=True, broker_list=True)
    add_client_options(parser, "consumer")
    option = parser.add_argument
    option("--topic", metavar="topic", help="The topic to consume from.")
    option("--include", metavar="regex", help="Regular expression of topics to consume from.")
    option("--whitelist", metavar="regex", help="(DEPRECATED) Use --include instead.")
    option("--partition", type=int, metavar="partition", help="The partition to consume from.")
    option(
        "--offset",
        metavar="consume offset",
        help="The offset to consume from (a non-negative number), or 'earliest' which means from "
        "beginning, or 'latest' which means from end (default: latest)",
    )
    parser.flag("from-beginning", "Start with the earliest message present in the log.")
    option("--group", metavar="consumer group id", help="The consumer group id of the consumer.")
    option(
        "--isolation-level",
        choices=("read_committed", "read_uncommitted"),
        default="read_uncommitted",
        help="Set to read_committed in order to filter out transactional messages which are not "
        "committed. (default: read_uncommitted)",
    )
    option("--max-messages", type=int, metavar="num_messages", help="How many to print at most.")
    option(
        "--timeout-ms",
        type=int,
        metavar="timeout_ms",
        help="If specified, exit if no message is available for the specified interval.",
    )
    parser.flag("skip-message-on-error", "Skip a message that cannot be processed; do not halt.")
    parser.flag("new-consumer", "Accepted for old scripts: there is no other consumer.")
    parser.flag("enable-systest-events", "Accepted; no such events are logged.")
    _add_formatter_options(parser)
    return parser


def _add_formatter_options(parser: ToolParser) -> None:
    option = parser.add_argument
    option("--formatter", metavar="class", help="DefaultMessageFormatter or NoOpMessageFormatter.")
    option(
        "--formatter-property",
        action="append",
        default=[],
        metavar="prop",
        help="How records are printed. Default properties include:\n print.timestamp=true|false\n "
        "print.key=true|false\n print.offset=true|false\n print.epoch=true|false\n "
        "print.partition=true|false\n print.headers=true|false\n print.value=true|false\n "
        "key.separator=<key.separator>\n line.separator=<line.separator>\n "
        "headers.separator=<headers.separator>\n null.literal=<null.literal>\n "
        "key.deserializer=<key.deserializer>\n value.deserializer=<value.deserializer>\n "
        "header.deserializer=<header.deserializer>",
    )
    option(
        "--property",
        action="append",
        default=[],
        metavar="prop",
        help="(DEPRECATED) Use --formatter-property instead.",
    )
    option("--formatter-config", metavar="config file", help="Properties file for printing.")
    option("--key-deserializer", metavar="class", help="How keys are read.")
    option("--value-deserializer", metavar="class", help="How values are read.")
