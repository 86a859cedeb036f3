"""kafka-get-offsets, once GetOffsetShell: offsets of partitions, as `topic:partition:offset`."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.parser import ToolParser
from penstock.cli.sentences import told_after
from penstock.cli.topic_filter import topic_pattern
from penstock.client.admin import Admin
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.values import TopicPartition
from penstock.errors import CommandError, ProtocolError

_TIMES = {
    "latest": OffsetSpec.LATEST,
    "earliest": OffsetSpec.EARLIEST,
    "max-timestamp": OffsetSpec.MAX_TIMESTAMP,
    "earliest-local": OffsetSpec.EARLIEST_LOCAL,
    "latest-tiered": OffsetSpec.LATEST_TIERED,
    "earliest-pending-upload": OffsetSpec.EARLIEST_PENDING_UPLOAD,
}
_CHOICES = " / ".join(f"{int(spec)} or {name}" for name, spec in _TIMES.items())
_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")

Wanted = Callable[[TopicPartition], bool]


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    if options.topic_partitions and (options.topic or options.partitions):
        parser.error("--topic-partitions cannot be used with --topic or --partitions")
    with admin_of(parser, options) as admin, told_after("Error occurred: ", words=str):
        time = parse_time(options.time)
        for line in _lines(admin, _partitions(admin, options), time):
            print(line)
    return 0


class _SentenceParser(ToolParser):
    """As Kafka's: a mistake is one sentence without the table, unless nothing was said at all."""

    def error(self, message: str) -> NoReturn:
        if self._is_bare:
            self._refuse(self.told_when_bare)
        raise CommandError(f"Error occurred: {message}")


def parse_time(text: str) -> int:
    """A time in ms, or a word or number that stands for an end of the log."""
    if text in _TIMES:
        return _TIMES[text]
    try:
        return int(text)
    except ValueError:
        raise CommandError(
            f"Malformed time argument {text}. Please use {_CHOICES}, "
            "or a specified long format timestamp"
        ) from None


def chosen_by_rules(text: str) -> Wanted:
    """`topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3,:2`: any rule may choose a partition."""
    rules = [_rule(word.strip()) for word in text.split(",")]
    return lambda partition: any(rule(partition) for rule in rules)


def chosen_by_topic(topic: str | None, partitions: str | None) -> Wanted:
    """Topics by pattern, partitions by number; either may be left out."""
    pattern = topic_pattern(topic) if topic else None
    numbers = _numbers(partitions) if partitions else None
    return lambda at: (
        (pattern is None or pattern.match(at.topic) is not None)
        and (numbers is None or at.partition in numbers)
    )


def _rule(word: str) -> Wanted:
    match = _RULE.fullmatch(word)
    if match is None:
        raise CommandError(f"Invalid rule specification: {word}")
    topic, single, low, high = match.groups()
    pattern = topic_pattern(topic) if topic else None
    first = int(single or low or 0)
    # A single number is a range of one; an open end has no bound.
    end = int(single) + 1 if single else int(high) if high else sys.maxsize
    return lambda at: (
        (pattern is None or pattern.match(at.topic) is not None) and first <= at.partition < end
    )


def _numbers(text: str) -> set[int]:
    try:
        return {int(word) for word in text.split(",") if word.strip()}
    except ValueError:
        raise CommandError(
            "--partitions expects a comma separated list of numeric partition ids, "
            f"but received: {text}"
        ) from None


def _partitions(admin: Admin, options: argparse.Namespace) -> list[TopicPartition]:
    if options.topic_partitions:
        wanted = chosen_by_rules(options.topic_partitions)
    else:
        wanted = chosen_by_topic(options.topic, options.partitions)
    internal = not options.exclude_internal_topics
    names = [topic.name for topic in admin.list_topics(internal=internal)]
    found = [
        TopicPartition(topic.name, part.partition)
        for topic in admin.describe_topics(names).values()
        for part in topic.partitions
    ]
    chosen = sorted(partition for partition in found if wanted(partition))
    if not chosen:
        raise CommandError("Could not match any topic-partitions with the specified filters")
    return chosen


def _lines(admin: Admin, partitions: Sequence[TopicPartition], time: int) -> list[str]:
    found = admin.list_offsets(dict.fromkeys(partitions, time))
    lines = []
    for at in partitions:
        result = found[at]
        if isinstance(result, ProtocolError):
            skipped = f"Skip getting offsets for topic-partition {at} due to error: {result}"
            print(skipped, file=sys.stderr)
        elif result is not None:
            lines.append(f"{at.topic}:{at.partition}:{result.offset}")
    return lines


def _parser() -> _SentenceParser:
    parser = _SentenceParser(
        "kafka-get-offsets", "An interactive shell for getting topic-partition offsets."
    )
    add_bootstrap(parser, broker_list=True)
    add_command_config(parser)
    option = parser.add_argument
    option(
        "--topic",
        metavar="topic",
        help="The topic to get the offsets for. It also accepts a regular expression. If not "
        "present, all topics are queried.",
    )
    option(
        "--topic-partitions",
        metavar="topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
        help="Comma separated list of topic-partition patterns: a regular expression for the "
        "topic, then a number, NUMBER-NUMBER (upper bound exclusive), NUMBER- or -NUMBER.",
    )
    option(
        "--partitions",
        metavar="partition ids",
        help="Comma separated list of partition ids to get the offsets for.",
    )
    option(
        "--time",
        default="latest",
        metavar=f"<timestamp> / {_CHOICES}",
        help="timestamp of the offsets before that. No offset is returned if the timestamp is "
        "later than that of all records. (default: latest)",
    )
    option("--offsets", metavar="count", help="(DEPRECATED) Accepted for old scripts.")
    parser.flag("exclude-internal-topics", "Leave out internal topics.")
    return parser
