"""penstock lake: topics as lake tables.

    penstock lake sync TOPIC --bootstrap-server HOST:PORT --to DIR [--format delta] [--once]
    penstock lake compact DIR

Without --once a sync runs until Ctrl-C or SIGTERM; the next one goes on where it stopped.
"""

import argparse
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.bootstrap import add_bootstrap, add_command_config, bootstrap_of
from penstock.cli.parser import ToolParser, settings_from
from penstock.cli.stopping import stop_on_signals
from penstock.errors import CommandError, PenstockError

if TYPE_CHECKING:  # Spark is loaded when the command line is known to be good.
    from penstock.lake import LakeQuery
    from penstock.schemas.lookup import SchemaLookup
    from penstock.spark.formats import Format

VALUE_FORMATS = ("raw", "string", "json", "avro", "csv", "protobuf")


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    if options.action == "sync":
        parser.required(options, "subject", "to")
        return sync(parser, options)
    parser.required(options, "subject")
    return compact(options)


def sync(parser: ToolParser, options: argparse.Namespace) -> int:
    """Land a topic in a table, and tell how it goes."""
    if options.on_error and options.dead_letter_topic:
        raise CommandError("--on-error and --dead-letter-topic exclude each other.")
    settings = settings_from(options.command_config)
    bootstrap = bootstrap_of(parser, options, settings)
    settings.pop("bootstrap.servers", None)
    topic = options.subject
    stop = stop_on_signals()
    print(f"Starting Spark to land {topic} in {options.to} ({options.format}) ...", flush=True)
    from penstock import lake
    from penstock.spark import session
    from penstock.spark.start.calling_off import called_off_by
    from penstock.spark.start.quiet import hush_accumulators, hush_py4j
    from penstock.spark.start.sessions import end

    hush_py4j()
    try:
        with called_off_by(stop):
            spark = session(
                f"penstock lake {topic}",
                master=options.master,
                conf={"spark.ui.enabled": "false", "spark.log.level": "FATAL"},
            )
    except Exception:
        if stop.is_set():
            return 0  # It was called off.
        raise
    hush_accumulators(spark)
    shown = _Shown(f"{topic} -> {options.to}")
    try:
        begin = partial(
            lake.sync,
            topic,
            to=options.to,
            bootstrap=bootstrap,
            format=options.format,
            value_format=_value_format(options),
            schema=_words(options.schema) if options.value_format == "json" else None,
            key_format=options.key_format,
            on_error=options.on_error,
            dead_letter_topic=options.dead_letter_topic,
            partition_by=None if options.partition_by == "none" else options.partition_by,
            include_headers=options.include_headers,
            once=options.once,
            every=options.every,
            starting_offsets=options.starting_offsets,
            max_records_per_batch=options.max_records_per_batch,
            group=options.group,
            client_settings=settings,
            checkpoint=options.checkpoint,
            compression=options.compression,
            compact_small_files=not options.no_compaction,
            spark=spark,
        )
        failure = _land(begin, shown, stop)
        shown.sum_up()
        if failure is not None:
            raise failure
    finally:
        end(spark)
    return 0


def _land(
    begin: Callable[[], "LakeQuery"], shown: "_Shown", stop: threading.Event
) -> Exception | None:
    """Until it ends or is told to; begun again where Spark was only slow. Why it failed, if so."""
    from penstock.queries.restart import pause_s
    from penstock.spark.start.slow_start import RETRIES_MAX, SLOW_START, is_slow_start

    for attempt in range(1, RETRIES_MAX + 2):
        failure = _follow(begin, shown, stop)
        is_last = attempt > RETRIES_MAX or stop.is_set()
        if failure is None or is_last or not is_slow_start(str(failure)):
            return failure
        print(f"{SLOW_START}. Trying again in {pause_s(attempt):.0f} s.", flush=True)
        stop.wait(pause_s(attempt))
    raise AssertionError("the last attempt has returned")


def _follow(
    begin: Callable[[], "LakeQuery"], shown: "_Shown", stop: threading.Event
) -> Exception | None:
    """One query from its start to its end; what it failed with, at the start as well as later."""
    if stop.is_set():
        return None
    try:
        query = begin()
    except PenstockError:
        raise
    except Exception as error:  # noqa: BLE001  (the caller tells what kind it is, or raises it)
        return error
    while query.isActive and not stop.wait(0.3):
        shown.tell(query)
    query.stop()
    shown.tell(query)
    return query.exception()


def compact(options: argparse.Namespace) -> int:
    """Put small files together in a table that nobody writes to."""
    from penstock import lake

    gone = lake.compact(options.subject)
    print(f"{options.subject} has {gone} files less." if gone else "There was nothing to do.")
    return 0


class _Shown:
    """What the terminal shows: a line that is renewed, or a line per batch where it goes to a file.

    A batch's rate is its own; the sum at the end is over all the time.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._started_s = time.monotonic()
        self._last_batch_id = -1
        self._rows = self._dead_letters = 0
        self._is_terminal = sys.stdout.isatty()

    def tell(self, query: "LakeQuery") -> None:
        """Show the batches that are new."""
        for batch in query.batches(after_batch_id=self._last_batch_id):
            self._last_batch_id = batch.batch_id
            self._rows += batch.rows
            self._dead_letters += batch.dead_letters
            how = f"{self._counts()}, {batch.rows_per_s:,.0f} rows/s, lag {batch.lag:,}"
            if self._is_terminal:
                print(f"\r\x1b[2K{_fitted(self._what, how)}", end="", flush=True)
            else:
                print(f"{self._what}: {how}", flush=True)

    def sum_up(self) -> None:
        """The last line."""
        seconds = time.monotonic() - self._started_s
        new_line = "\n" if self._is_terminal and self._last_batch_id >= 0 else ""
        print(f"{new_line}{self._what}: stopped after {self._counts()} in {seconds:.1f} s")

    def _counts(self) -> str:
        dead = f", {self._dead_letters:,} dead letters" if self._dead_letters else ""
        return f"{self._rows:,} rows{dead}"


def _fitted(what: str, how: str) -> str:
    """One line of the terminal: a line that wraps cannot be renewed. The figures matter most."""
    room = shutil.get_terminal_size().columns - 1 - len(f": {how}")
    if len(what) > room:
        what = f"{what[: max(0, room - 1)]}…"
    return f"{what}: {how}"[: shutil.get_terminal_size().columns - 1]


def _value_format(options: argparse.Namespace) -> "str | Format":
    """A word for what the lake decodes itself, else a format with what its options say."""
    kind = options.value_format
    if kind in ("raw", "string", "json"):
        return str(kind)
    from penstock.spark import formats

    if kind == "csv":
        if options.schema is None:
            raise CommandError("--value-format csv needs --schema 'id long, name string'")
        return formats.Csv(_words(options.schema) or "")
    if kind == "avro":
        if options.schema is None and options.schema_id is None:
            raise CommandError("--value-format avro needs --schema or --schema-id")
        return formats.Avro(
            schema=_words(options.schema), lookup=_lookup(options), schema_id=options.schema_id
        )
    if not options.descriptors or not options.message:
        raise CommandError("--value-format protobuf needs --descriptors and --message")
    return formats.Protobuf(Path(options.descriptors), options.message)


def _lookup(options: argparse.Namespace) -> "SchemaLookup | None":
    from penstock.spark import formats

    if options.registry:
        return formats.RegistryClient(options.registry)
    return formats.SchemaDirectory(options.schemas) if options.schemas else None


def _words(schema: str | None) -> str | None:
    """A schema given in words, or as @FILE."""
    if schema is None or not schema.startswith("@"):
        return schema
    try:
        return Path(schema[1:]).read_text()
    except OSError as error:
        raise CommandError(f"--schema {schema} cannot be read: {error}") from error


def _parser() -> ToolParser:
    parser = ToolParser(
        "penstock lake", "Lands topics in lake tables: lake sync TOPIC --to DIR, lake compact DIR."
    )
    option = parser.add_argument
    option("action", choices=("sync", "compact"))
    option("subject", metavar="TOPIC or DIR")
    add_bootstrap(parser)
    add_command_config(parser)
    option("--to", metavar="directory", help="REQUIRED for sync: the table's directory.")
    option(
        "--format",
        choices=("delta", "iceberg", "parquet"),
        default="delta",
        metavar="delta|iceberg|parquet",
        help="The table's format (default: delta).",
    )
    parser.flag("once", "Stop when all that is in the topic now is in the table.")
    option("--every", metavar="10 seconds", help="How often a batch is taken (default: 10 s).")
    option(
        "--value-format",
        choices=VALUE_FORMATS,
        default="raw",
        metavar="|".join(VALUE_FORMATS),
        help="How values are decoded (default: raw, kept as bytes).",
    )
    option(
        "--schema",
        metavar="words or @file",
        help="The value's fields: 'id long, name string' for json and csv (json takes them as "
        "they come without it), an Avro schema for avro.",
    )
    option("--schemas", metavar="directory", help="Avro schemas by id, a file ID.avsc each.")
    option("--registry", metavar="url", help="A schema registry with the Avro schemas by id.")
    option(
        "--schema-id",
        type=int,
        metavar="id",
        help="Which schema of --schemas or --registry tells the columns, if not --schema.",
    )
    option("--descriptors", metavar="file", help="For protobuf: the descriptor set of protoc.")
    option("--message", metavar="name", help="For protobuf: the message's full name.")
    option(
        "--key-format",
        choices=("raw", "string"),
        default="raw",
        metavar="raw|string",
        help="How keys are kept (default: raw).",
    )
    option(
        "--on-error",
        choices=("fail", "null"),
        metavar="fail|null",
        help="What becomes of a record that cannot be decoded or does not fit the table, and of a "
        "batch that cannot be read: the sync stops there, or what does not fit is null and the "
        "bytes are in value_undecoded (default: fail, unless there is a topic for it).",
    )
    option(
        "--dead-letter-topic",
        metavar="topic",
        help="Where records go that cannot be decoded or do not fit the table, exactly once, with "
        "the reason in their headers; penstock dlq lists and replays them. Of a batch that cannot "
        "be read only its offsets go there.",
    )
    option(
        "--partition-by",
        default="date(timestamp)",
        metavar="columns",
        help="Columns, and date(column), with commas; none for no partitions "
        "(default: date(timestamp)).",
    )
    parser.flag("include-headers", "Keep the headers of records.")
    option(
        "--starting-offsets",
        default="earliest",
        metavar="earliest|latest|json",
        help="Where the first run begins (default: earliest).",
    )
    option(
        "--max-records-per-batch",
        type=int,
        default=4_000_000,
        metavar="count",
        help="The most that one commit takes (default: 4000000).",
    )
    option("--group", metavar="name", help="The consumer group that shows the progress.")
    option("--checkpoint", metavar="directory", help="Default: inside the table's directory.")
    option(
        "--compression",
        choices=("zstd", "snappy", "lz4", "gzip", "none"),
        default="zstd",
        metavar="zstd|snappy|lz4|gzip|none",
        help="Of the Parquet files (default: zstd).",
    )
    parser.flag("no-compaction", "Leave small files as they are.")
    option("--master", metavar="url", help="Spark's master (default: this machine).")
    return parser
