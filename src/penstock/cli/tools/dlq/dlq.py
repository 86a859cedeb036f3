"""penstock dlq: what lies in a dead-letter topic, why, and back to where it came from.

Replaying is done in transactions that hold both the records and the note of what was replayed, so
nothing is replayed twice, also not by two who replay at once: the later one fences the other off.
The note is a committed offset of a consumer group; where a filter leaves gaps, the note's metadata
holds the offsets beyond it (`replayed.py`).
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from penstock.cli.bootstrap import add_bootstrap, add_command_config, settings_of
from penstock.cli.client_options import quiet_librdkafka, reach
from penstock.cli.parser import ToolParser
from penstock.errors import CommandError
from penstock.schemas.dead_letters import Cause, cause_of, own_headers

if TYPE_CHECKING:  # The tool that runs imports librdkafka; a parser alone must stay cheap.
    from penstock.cli.tools.dlq.replay import Returned
    from penstock.client.values import ConsumerRecord

ACTIONS = ("list", "show", "replay")
GROUPINGS = ("error", "message", "topic", "partition", "pipeline")
NO_ACTION = "Nothing was replayed: this is what would be. Add --execute to do it."
_MESSAGE_WIDTH = 60
_RECORDS_PER_TRANSACTION = 500


class Letter(NamedTuple):
    """A record of a dead-letter topic and what its headers say."""

    record: "ConsumerRecord[bytes, bytes]"
    cause: Cause
    since: int  # The first offset behind the record before; between them there are only markers.


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    _check(parser, options)
    settings = settings_of(parser, options)
    quiet_librdkafka()
    if reach(settings, [options.topic], create=False)[options.topic]:
        raise CommandError(f"There is no topic {options.topic}.")
    if options.action == "replay":
        return replay(settings, options)
    letters = (letter for letter in read(settings, options.topic) if wanted(letter, options))
    if options.action == "show":
        return show(letters, options)
    return print_list(letters, options)


def print_list(letters: Iterable[Letter], options: argparse.Namespace) -> int:
    """One line for each dead letter, or counts by what they have in common."""
    if options.group_by is None:
        rows = [_row(letter) for letter in _limited(letters, options)]
        head = ("PARTITION", "OFFSET", "TIME", "ORIGIN", "ERROR", "MESSAGE")
        print(table([head, *rows]))
        print(f"\n{len(rows)} dead letters in {options.topic}.")
        return 0
    counts = Counter(grouped_by(letter.cause, options.group_by) for letter in letters)
    named = ((str(count), name) for name, count in counts.most_common())
    print(table([("COUNT", options.group_by.upper()), *named]))
    print(f"\n{counts.total()} dead letters in {options.topic}.")
    return 0


def show(letters: Iterable[Letter], options: argparse.Namespace) -> int:
    """Everything about each dead letter."""
    count = 0
    for letter in _limited(letters, options):
        print(json.dumps(described(letter)) if options.json else _paragraph(letter))
        count += 1
    if not count:
        print(f"No dead letter in {options.topic} is as asked for.", file=sys.stderr)
    return 0 if count else 1


def replay(settings: dict[str, object], options: argparse.Namespace) -> int:
    """Send dead letters to where they came from; without --execute, only tell which."""
    from penstock.cli.tools.dlq.replay import Replay

    if options.to_topic:
        _check_target(settings, options.to_topic)
    group = options.group or f"penstock-dlq-{options.topic}"
    with Replay(settings, options.topic, group, again=options.again) as under_way:
        if options.execute:
            under_way.begin()
        letters = [
            letter
            for letter in read(settings, options.topic)
            if wanted(letter, options) and not under_way.was_replayed(letter.record)
        ]
        batches = sum(letter.cause.last_offset is not None for letter in letters)
        letters = [letter for letter in letters if letter.cause.last_offset is None]
        chosen = [letter for letter in letters if options.to_topic or letter.cause.topic]
        chosen = list(_limited(chosen, options))
        if not options.to_topic:
            _check_origins(settings, {str(one.cause.topic) for one in chosen})
        if options.execute:
            for batch in _batches(chosen):
                under_way.send([_returned(letter, options.to_topic) for letter in batch])
    rows = [(*_place(letter), options.to_topic or letter.cause.origin) for letter in chosen]
    print(table([("PARTITION", "OFFSET", "TO"), *rows]))
    nowhere = len(letters) - len([one for one in letters if options.to_topic or one.cause.topic])
    if batches:
        print(
            f"{batches} tell of whole batches that could not be read: there is no record in them "
            "to replay.",
            file=sys.stderr,
        )
    if nowhere:
        print(f"{nowhere} do not say where they came from; --to-topic would.", file=sys.stderr)
    print(f"\n{len(chosen)} dead letters replayed." if options.execute else f"\n{NO_ACTION}")
    return 0


def read(settings: dict[str, object], topic: str) -> Iterator[Letter]:
    """The dead letters there are now, partition by partition."""
    from penstock.cli.tools.dlq.read import read_topic
    from penstock.client.headers import record_headers
    from penstock.client.values import ConsumerRecord

    for one in read_topic(settings, topic):
        stored = one.record
        record = ConsumerRecord(
            topic=one.topic,
            partition=one.partition,
            offset=stored.offset,
            timestamp_ms=stored.timestamp,
            timestamp_type="CreateTime",
            key=stored.key,
            value=stored.value,
            headers=record_headers(stored.headers),
        )
        yield Letter(record, cause_of(record.headers), one.since)


def wanted(letter: Letter, options: argparse.Namespace) -> bool:
    """Whether the filters let it pass."""
    record, cause = letter.record, letter.cause
    words = options.error
    texts = (cause.error_class or "", cause.message or "")
    checks = (
        words is None or any(words.lower() in text.lower() for text in texts),
        options.partition is None or record.partition == options.partition,
        options.from_offset is None or record.offset >= options.from_offset,
        options.to_offset is None or record.offset <= options.to_offset,
        options.origin is None or cause.topic == options.origin,
        options.pipeline is None or cause.pipeline == options.pipeline,
    )
    return all(checks)


def grouped_by(cause: Cause, what: str) -> str:
    """What dead letters are counted by."""
    if what == "partition":
        return f"{cause.topic or 'unknown'}-{'?' if cause.partition is None else cause.partition}"
    names = {"error": cause.error_class, "message": cause.message}
    names |= {"topic": cause.topic, "pipeline": cause.pipeline}
    return _line(names[what] or "unknown")


def described(letter: Letter) -> dict[str, object]:
    """A dead letter for programs; bytes that are no text are hexadecimal."""
    record, cause = letter.record, letter.cause
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "origin": {
            "topic": cause.topic,
            "partition": cause.partition,
            "offset": cause.offset,
            "last_offset": cause.last_offset,
            "timestamp_ms": cause.timestamp_ms,
        },
        "pipeline": cause.pipeline,
        "stage": cause.stage,
        "error": cause.error_class,
        "message": cause.message,
        "key": text_of(record.key),
        "value": text_of(record.value),
        "headers": [[name, text_of(value)] for name, value in own_headers(record.headers)],
    }


def text_of(data: bytes | None) -> str | None:
    """Bytes as text, or as 0x... where they are none."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() or text.strip().isprintable() else f"0x{data.hex()}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as what is in them."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _row(letter: Letter) -> tuple[str, ...]:
    record, cause = letter.record, letter.cause
    moment = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    kind = (cause.error_class or "unknown").rpartition(".")[2]
    message = _line(cause.message or "")
    if len(message) > _MESSAGE_WIDTH:
        message = f"{message[: _MESSAGE_WIDTH - 3]}..."
    return (*_place(letter), f"{moment:%Y-%m-%d %H:%M:%S}", cause.origin, kind, message)


def _place(letter: Letter) -> tuple[str, str]:
    return str(letter.record.partition), str(letter.record.offset)


def _paragraph(letter: Letter) -> str:
    record, cause = letter.record, letter.cause
    told = {
        "from": cause.origin,
        "pipeline": cause.pipeline,
        "stage": cause.stage,
        "error": cause.error_class,
        "message": cause.message,
        "key": text_of(record.key),
        "value": text_of(record.value),
    }
    lines = [f"{record.topic}-{record.partition}@{record.offset}"]
    lines += [f"  {name:<9}{value}" for name, value in told.items() if value is not None]
    own = own_headers(record.headers)
    lines += [f"  {'header':<9}{name}: {text_of(value)}" for name, value in own]
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def _limited(letters: Iterable[Letter], options: argparse.Namespace) -> Iterator[Letter]:
    for count, letter in enumerate(letters):
        if options.max is not None and count >= options.max:
            return
        yield letter


def _batches(letters: Sequence[Letter]) -> Iterator[Sequence[Letter]]:
    for at in range(0, len(letters), _RECORDS_PER_TRANSACTION):
        yield letters[at : at + _RECORDS_PER_TRANSACTION]


def _returned(letter: Letter, to_topic: str | None) -> "Returned":
    from penstock.cli.tools.dlq.replay import Returned

    record, cause = letter.record, letter.cause
    return Returned(
        letter=record,
        since=letter.since,
        topic=to_topic or str(cause.topic),
        # To its own partition, so that it stays in the order of its key whatever the partitioner.
        partition=None if to_topic else cause.partition,
        timestamp_ms=cause.timestamp_ms,
        headers=tuple(own_headers(record.headers)),
    )


def _check_target(settings: dict[str, object], topic: str) -> None:
    """Before anything is done: a misspelled name is not made a topic by a replay."""
    if reach(settings, [topic], create=False)[topic]:
        raise CommandError(
            f"The topic {topic} of --to-topic does not exist, and nothing was replayed: create it "
            f"first, with `kafka-topics --create --topic {topic}`."
        )


def _check_origins(settings: dict[str, object], topics: set[str]) -> None:
    """Before the first record is sent: a topic that is gone is not made anew by a replay."""
    if not topics:
        return
    codes = reach(settings, sorted(topics), create=False)
    missing = [topic for topic, code in codes.items() if code]
    if missing:
        raise CommandError(
            f"The topic {', '.join(sorted(missing))} does not exist any more; "
            "--to-topic sends dead letters elsewhere."
        )


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    if options.action not in ACTIONS:
        parser.error(f"Say what to do: penstock dlq {'|'.join(ACTIONS)} TOPIC")
    if options.topic is None:
        parser.error(f"Say of which topic: penstock dlq {options.action} TOPIC")
    only = {
        "replay": ("execute", "dry_run", "group", "to_topic", "again"),
        "list": ("group_by",),
        "show": ("json",),
    }
    for action, names in only.items():
        for name in names:
            if action != options.action and getattr(options, name):
                parser.error(f"--{name.replace('_', '-')} belongs to `penstock dlq {action}`")
    if options.execute and options.dry_run:
        parser.error("--execute and --dry-run contradict each other")


def _parser() -> ToolParser:
    parser = ToolParser(
        "penstock dlq",
        "List, show and replay dead letters: penstock dlq list|show|replay TOPIC [OPTIONS]",
    )
    parser.add_argument("action", nargs="?")
    parser.add_argument("topic", nargs="?")
    add_bootstrap(parser)
    add_command_config(parser)
    filters = {
        "error": ("text", "Only those whose error class or message contains this."),
        "origin": ("topic", "Only those that came from this topic."),
        "pipeline": ("name", "Only those of this pipeline."),
    }
    for name, (what, text) in filters.items():
        parser.add_argument(f"--{name}", metavar=what, help=text)
    numbers = {
        "partition": "Only this partition of the dead-letter topic.",
        "from-offset": "Only from this offset of the dead-letter topic on.",
        "to-offset": "Only up to this offset of the dead-letter topic, itself included.",
        "max": "At most so many.",
    }
    for name, text in numbers.items():
        parser.add_argument(f"--{name}", type=int, metavar="number", help=text)
    parser.add_argument("--group-by", choices=GROUPINGS, help="list: count them by this.")
    parser.flag("json", "show: one line of JSON for each.")
    parser.flag("execute", "replay: do it. Without, only what would be replayed is told.")
    parser.flag("dry-run", "replay: only tell what would be replayed (the default).")
    parser.flag("again", "replay: also those that were replayed before.")
    parser.add_argument("--to-topic", metavar="topic", help="replay: to this topic instead.")
    parser.add_argument(
        "--group",
        metavar="group",
        help="replay: the group that remembers what was replayed (default penstock-dlq-TOPIC).",
    )
    return parser
