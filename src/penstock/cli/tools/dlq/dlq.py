"""penstock dlq: what lies in a dead-letter topic, why, and back to where it came from.

Letters are redriven in transactions that hold both the records and the note of what was sent, so
nothing is sent twice, also not by two who redrive at once: the later one fences the other off.
The note is a committed offset of a consumer group; where a filter leaves gaps, the note's metadata
holds the offsets beyond it (`replayed.py`). `replay` is the older word for `redrive`.
"""

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from penstock.cli.bootstrap import add_bootstrap, add_command_config, settings_of
from penstock.cli.client_options import quiet_librdkafka, reach
from penstock.cli.parser import ToolParser
from penstock.errors import CommandError
from penstock.schemas.dead_letters import Cause, cause_of, own_headers

if TYPE_CHECKING:  # The tool that runs imports librdkafka; a parser alone must stay cheap.
    from penstock.cli.tools.dlq.documents import LetterDocuments
    from penstock.cli.tools.dlq.replay import Replay, Returned
    from penstock.client.headers import RecordHeaders
    from penstock.client.values import ConsumerRecord

ACTIONS = ("list", "show", "edit", "redrive", "replay")
GROUPINGS = ("error", "message", "topic", "partition", "pipeline")
NO_ACTION = "Nothing was {}: this is what would be. Add --execute to do it."
_MESSAGE_WIDTH = 60
_DONE = {"redrive": "redriven", "replay": "replayed"}
_CORRECTIONS = ("value", "value_file", "value_json", "key", "header", "drop_header")


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
    if options.action in _DONE:
        return redrive(settings, options)
    if options.action == "edit":
        return edit(settings, options)
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
    documents = _documents(options)
    for letter in _limited(letters, options):
        told = documents.told(letter.record.value) if documents else {}
        if options.json:
            print(json.dumps({**described(letter), **told}))
        else:
            print(_paragraph(letter, told))
        count += 1
    if not count:
        print(f"No dead letter in {options.topic} is as asked for.", file=sys.stderr)
    return 0 if count else 1


def redrive(settings: dict[str, object], options: argparse.Namespace) -> int:
    """Send dead letters to where they came from; without --execute, only tell which."""
    if options.to_topic:
        _check_target(settings, options.to_topic)
    with _replay(settings, options) as under_way:
        if options.execute:
            under_way.begin()
        letters = [
            letter
            for letter in read(settings, options.topic)
            if wanted(letter, options) and not under_way.was_replayed(letter.record)
        ]
        chosen = list(_limited((one for one in letters if _has_target(one, options)), options))
        if not options.to_topic:
            _check_origins(settings, {str(one.cause.topic) for one in chosen})
        if options.execute:
            _send(under_way, [_returned(one, options.to_topic) for one in chosen], options.rate)
    rows = [(*_place(letter), options.to_topic or letter.cause.origin) for letter in chosen]
    print(table([("PARTITION", "OFFSET", "TO"), *rows]))
    _tell_left_out(letters, options)
    done = _DONE[options.action]
    sentence = f"{len(chosen)} dead letters {done}." if options.execute else NO_ACTION.format(done)
    print(f"\n{sentence}")
    return 0


def edit(settings: dict[str, object], options: argparse.Namespace) -> int:
    """Put a corrected form of a dead letter behind the others; the old one counts as done."""
    from penstock.cli.tools.dlq.edit import corrected

    options.from_offset = options.to_offset = options.offset
    with _replay(settings, options) as under_way:
        if options.execute:
            under_way.begin()
        found = [one for one in read(settings, options.topic) if wanted(one, options)]
        if not found:
            raise CommandError(
                f"There is no dead letter at offset {options.offset} of partition "
                f"{options.partition} of {options.topic}."
            )
        letter = found[0]
        if letter.cause.last_offset is not None:
            raise CommandError("This letter tells of a whole batch: there is no record to edit.")
        if under_way.was_replayed(letter.record):
            raise CommandError(
                "This letter was redriven or edited before; --again edits it all the same."
            )
        new = corrected(letter.record, letter.cause, letter.since, options, _documents(options))
        if options.execute:
            under_way.send([new])
    record = letter.record._replace(key=new.key, value=new.value, headers=_headers(new.headers))
    print(_paragraph(Letter(record, cause_of(new.headers), letter.since), {}))
    print(
        "\nThe letter was edited; redrive sends the new form."
        if options.execute
        else f"\n{NO_ACTION.format('edited')}"
    )
    return 0


def _send(under_way: "Replay", records: "Sequence[Returned]", rate: float | None) -> None:
    """In transactions, and no faster than was asked for; each one says how far it came."""
    from penstock.cli.tools.dlq.pace import batches, pause_s

    begun_s, sent = time.monotonic(), 0
    for batch in batches(records, rate):
        under_way.send(batch)
        sent += len(batch)
        if rate is not None:
            time.sleep(pause_s(sent, rate, time.monotonic() - begun_s))


def _replay(settings: dict[str, object], options: argparse.Namespace) -> "Replay":
    from penstock.cli.tools.dlq.replay import Replay

    group = options.group or f"penstock-dlq-{options.topic}"
    return Replay(settings, options.topic, group, again=options.again)


def _documents(options: argparse.Namespace) -> "LetterDocuments | None":
    if options.schema_registry is None:
        return None
    from penstock.cli.tools.dlq.documents import LetterDocuments

    return LetterDocuments.of(options.schema_registry)


def _headers(headers: "Iterable[tuple[str, bytes | None]]") -> "RecordHeaders":
    from penstock.client.headers import record_headers

    return record_headers(tuple(headers))


def _has_target(letter: Letter, options: argparse.Namespace) -> bool:
    return letter.cause.last_offset is None and bool(options.to_topic or letter.cause.topic)


def _tell_left_out(letters: Sequence[Letter], options: argparse.Namespace) -> None:
    batches = sum(letter.cause.last_offset is not None for letter in letters)
    if batches:
        print(
            f"{batches} tell of whole batches that could not be read: there is no record in them "
            "to replay.",
            file=sys.stderr,
        )
    nowhere = len(letters) - batches - sum(_has_target(one, options) for one in letters)
    if nowhere:
        print(f"{nowhere} do not say where they came from; --to-topic would.", file=sys.stderr)


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
        "edited": cause.edited,
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


def _paragraph(letter: Letter, more: Mapping[str, object]) -> str:
    record, cause = letter.record, letter.cause
    told = {
        "from": cause.origin,
        "pipeline": cause.pipeline,
        "stage": cause.stage,
        "error": cause.error_class,
        "message": cause.message,
        "edited": cause.edited,
        "key": text_of(record.key),
        "value": text_of(record.value),
        **{name: json.dumps(value, ensure_ascii=False) for name, value in more.items()},
    }
    lines = [f"{record.topic}-{record.partition}@{record.offset}"]
    lines += [f"  {name:<8} {value}" for name, value in told.items() if value is not None]
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
        key=record.key,
        value=record.value,
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
    sending = ("redrive", "replay")
    only = {
        "to_topic": sending,
        "rate": sending,
        "execute": (*sending, "edit"),
        "dry_run": (*sending, "edit"),
        "group": (*sending, "edit"),
        "again": (*sending, "edit"),
        "group_by": ("list",),
        "json": ("show",),
        "schema_registry": ("show", "edit"),
        **dict.fromkeys((*_CORRECTIONS, "offset", "null_value", "schema_id"), ("edit",)),
    }
    for name, actions in only.items():
        if options.action not in actions and getattr(options, name) not in (None, False):
            option = f"--{name.replace('_', '-')}"
            parser.error(f"{option} belongs to `penstock dlq {actions[0]}`")
    if options.execute and options.dry_run:
        parser.error("--execute and --dry-run contradict each other")
    if options.rate is not None and not 0 < options.rate < math.inf:
        parser.error("--rate is a number of records a second, above 0")
    if options.action == "edit":
        _check_edit(parser, options)


def _check_edit(parser: ToolParser, options: argparse.Namespace) -> None:
    if options.offset is None or options.partition is None:
        parser.error("edit takes one letter: give its --partition and --offset")
    given = [name for name in _CORRECTIONS if getattr(options, name) is not None]
    if not given and not options.null_value:
        words = ", ".join(f"--{name.replace('_', '-')}" for name in _CORRECTIONS)
        parser.error(f"Say what is to be changed: one of {words}, --null-value")
    values = [name for name in given if name.startswith("value")]
    if len(values) + options.null_value > 1:
        parser.error("A letter has one value: give --value, --value-file, --value-json or "
                     "--null-value")  # fmt: skip
    if options.value_json is not None and options.schema_registry is None:
        parser.error("--value-json is written under a schema: say where its registry is with "
                     "--schema-registry")  # fmt: skip


def _parser() -> ToolParser:
    parser = ToolParser(
        "penstock dlq",
        "List, show, edit and redrive dead letters: "
        "penstock dlq list|show|edit|redrive TOPIC [OPTIONS]",
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
    parser.flag("execute", "redrive, edit: do it. Without, only what would be done is told.")
    parser.flag("dry-run", "redrive, edit: only tell what would be done (the default).")
    parser.flag("again", "redrive, edit: also those that were redriven or edited before.")
    parser.add_argument("--to-topic", metavar="topic", help="redrive: to this topic instead.")
    parser.add_argument(
        "--rate", type=float, metavar="number", help="redrive: at most so many a second."
    )
    parser.add_argument(
        "--group",
        metavar="group",
        help="redrive, edit: the group that remembers what was redriven "
        "(default penstock-dlq-TOPIC).",
    )
    _add_edit(parser)
    return parser


def _add_edit(parser: ToolParser) -> None:
    parser.add_argument("--offset", type=int, metavar="number", help="edit: of this letter.")
    words = {
        "value": ("text", "edit: the new value."),
        "value-file": ("file", "edit: a file with the new value, byte for byte."),
        "value-json": ("json", "edit: the new value as a document of its schema."),
        "key": ("text", "edit: the new key."),
        "schema-registry": ("url", "show, edit: where the schemas of values are."),
    }
    for name, (what, text) in words.items():
        parser.add_argument(f"--{name}", metavar=what, help=text)
    parser.add_argument(
        "--schema-id",
        type=int,
        metavar="number",
        help="edit: the schema of --value-json (default: the one that the value names).",
    )
    parser.flag("null-value", "edit: the new value is null.")
    for name, text in (("header", "name=text"), ("drop-header", "name")):
        parser.add_argument(
            f"--{name}",
            action="append",
            metavar=text,
            help="edit: " + ("set a header." if name == "header" else "leave a header out."),
        )
