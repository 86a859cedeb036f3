"""kafka-transactions: look at the transactions of a cluster, and end those that hang."""

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn, TypeAlias

from penstock.cli.parser import settings_from
from penstock.cli.sentences import sentence
from penstock.cli.tools.transactions.hanging import find_hanging
from penstock.cli.tools.transactions.table import table
from penstock.client.admin import Admin
from penstock.client.operations.brokers import ProducerDescription
from penstock.client.operations.transactions import HangingTransaction, TransactionDescription
from penstock.client.values import TopicPartition
from penstock.errors import CommandError, PenstockError, ProtocolError

DESCRIBE_HEADER = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
PRODUCERS_HEADER = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
LIST_HEADER = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(argv)
    check, run = _COMMANDS[options.command]
    check(parser, options)
    settings: dict[str, object] = dict(settings_from(options.command_config))
    if not options.bootstrap_server:
        parser.error("argument --bootstrap-server is required")
    settings["bootstrap.servers"] = options.bootstrap_server
    with Admin(settings) as admin:
        run(admin, options)
    return 0


def list_all(admin: Admin, options: argparse.Namespace) -> None:
    """Print a line per transactional id, of those that the filters let through."""
    try:
        listed = admin.list_transactions(
            longer_than_ms=-1 if options.duration_filter is None else options.duration_filter,
            id_pattern=options.transactional_id_pattern,
        )
    except ProtocolError as error:
        raise _failed("Failed to list transactions", error) from error
    rows = [(t.transactional_id, t.coordinator_id, t.producer_id, t.state) for t in listed]
    print(table(LIST_HEADER, rows))


def describe(admin: Admin, options: argparse.Namespace) -> None:
    """Print all that its coordinator knows of one transaction."""
    name = options.transactional_id
    found = admin.describe_transactions([name])[name]
    if isinstance(found, ProtocolError):
        what = f"Failed to describe transaction state of transactional-id `{name}`"
        raise _failed(what, found) from found
    print(table(DESCRIBE_HEADER, [description_row(found, now_ms=int(time.time() * 1000))]))


def description_row(found: TransactionDescription, *, now_ms: int) -> tuple[object, ...]:
    """A transaction as a row of the table."""
    age_ms = None if found.started_ms is None else now_ms - found.started_ms
    return (
        found.coordinator_id,
        found.transactional_id,
        found.producer_id,
        found.producer_epoch,
        found.state,
        found.timeout_ms,
        found.started_ms,
        age_ms,
        ",".join(str(at) for at in found.partitions),
    )


def describe_producers(admin: Admin, options: argparse.Namespace) -> None:
    """Print the producers that a partition remembers."""
    at = TopicPartition(options.topic, options.partition)
    where = "leader" if options.broker_id is None else f"broker {options.broker_id}"
    try:
        producers = _producers(admin, at, options.broker_id)
    except PenstockError as error:
        what = f"Failed to describe producers for partition {at} on {where}"
        raise _failed(what, error) from error
    rows = [
        (
            p.producer_id,
            p.producer_epoch,
            p.coordinator_epoch,
            p.last_sequence,
            p.last_timestamp_ms,
            p.transaction_start_offset,
        )
        for p in producers
    ]
    print(table(PRODUCERS_HEADER, rows))


def abort(admin: Admin, options: argparse.Namespace) -> None:
    """End a transaction in one partition by writing the marker that never came."""
    at = TopicPartition(options.topic, options.partition)
    if options.start_offset is not None:
        hanging = _open_at(admin, at, options.start_offset)
    else:
        hanging = HangingTransaction(
            partition=at,
            producer_id=options.producer_id,
            producer_epoch=options.producer_epoch,
            coordinator_epoch=options.coordinator_epoch,
        )
    # A producer whose first transaction hangs has seen no coordinator: 0 is older than any.
    hanging = replace(hanging, coordinator_epoch=max(0, hanging.coordinator_epoch))
    try:
        admin.abort_transaction(hanging)
    except PenstockError as error:
        what = f"Failed to abort the transaction of producer {hanging.producer_id} in {at}"
        raise _failed(what, error) from error


def force_terminate(admin: Admin, options: argparse.Namespace) -> None:
    """Take a transactional id from its producer, which aborts what it has under way."""
    name = options.transactional_id
    try:
        admin.fence_producers([name])
    except PenstockError as error:
        raise _failed(f"Failed to force terminate transactionalId `{name}`", error) from error


def _producers(
    admin: Admin, at: TopicPartition, broker_id: int | None = None
) -> list[ProducerDescription]:
    return admin.describe_producers([at], broker_id=broker_id).get(at, [])


def _open_at(admin: Admin, at: TopicPartition, start_offset: int) -> HangingTransaction:
    try:
        producers = _producers(admin, at)
    except PenstockError as error:
        what = f"Failed to validate producer state for partition {at}"
        raise _failed(what, error) from error
    for producer in producers:
        if producer.transaction_start_offset == start_offset:
            return HangingTransaction(
                partition=at,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                coordinator_epoch=producer.coordinator_epoch,
            )
    raise CommandError(
        f"Could not find any open transactions starting at offset {start_offset} on partition {at}"
    )


def _failed(what: str, error: PenstockError) -> CommandError:
    return CommandError(f"{what}: {sentence(error)}")


def _check_abort(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.start_offset is not None:
        return
    if options.producer_id is None:
        raise CommandError(
            "The transaction to abort must be identified either with --start-offset (for brokers "
            "on 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch "
            "(for older brokers)"
        )
    for name in ("producer-epoch", "coordinator-epoch"):
        if getattr(options, name.replace("-", "_")) is None:
            raise CommandError(f"Missing required argument --{name}")


def _check_find(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.topic is None and options.broker_id is None:
        raise CommandError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope "
            "of the search"
        )
    if options.partition is not None and options.topic is None:
        raise CommandError("The --partition argument requires --topic to be provided")


def _no_check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Nothing more to check than the parser has."""


_Check: TypeAlias = Callable[[argparse.ArgumentParser, argparse.Namespace], None]
_Run: TypeAlias = Callable[[Admin, argparse.Namespace], None]

_COMMANDS: dict[str, tuple[_Check, _Run]] = {
    "list": (_no_check, list_all),
    "describe": (_no_check, describe),
    "describe-producers": (_no_check, describe_producers),
    "abort": (_check_abort, abort),
    "find-hanging": (_check_find, find_hanging),
    "forceTerminateTransaction": (_no_check, force_terminate),
}


class _Parser(argparse.ArgumentParser):
    """A parser with commands; a mistake ends the process with code 1, as in Kafka's tool.

    That one is a port of argparse to Java, with some sentences of its own.
    """

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"{self.prog}: error: {in_kafkas_words(message)}", file=sys.stderr)
        raise SystemExit(1)


def in_kafkas_words(message: str) -> str:
    """A complaint of argparse as Kafka's tool puts it."""
    if message.startswith("the following arguments are required: "):
        name = message.partition(": ")[2].split(", ")[0]
        return f"argument {name} is required" if name.startswith("-") else "too few arguments"
    if message.startswith("unrecognized arguments: "):
        words = message.partition(": ")[2].split()
        return f"unrecognized arguments: '{' '.join(words)}'"
    number = re.fullmatch(r"argument (\S+): invalid int value: '(.*)'", message)
    if number:
        name, text = number.groups()
        return f"argument {name}: could not convert '{text}' to Integer"
    return message.removeprefix("argument COMMAND: ")


class _Version(argparse.Action):
    def __call__(self, *_: object) -> None:
        from penstock import __version__

        print(__version__)
        raise SystemExit(0)


def _parser() -> _Parser:
    parser = _Parser(
        "kafka-transactions",
        description="This tool is used to analyze the transactional state of producers in the "
        "cluster. It can be used to detect and recover from hanging transactions.",
    )
    parser.add_argument("-v", "--version", nargs=0, action=_Version, help="show the version")
    _add_cluster(parser, default=None)
    commands = parser.add_subparsers(
        dest="command", title="commands", metavar="COMMAND", required=True
    )

    def command(name: str, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        _add_cluster(added, default=argparse.SUPPRESS)  # May be written after the command too.
        return added

    listing = command("list", "list transactions")
    listing.add_argument("--duration-filter", type=int, help="only those open for longer (ms)")
    listing.add_argument("--transactional-id-pattern", help="only ids that match this (RE2)")
    one = command("describe", "describe the state of an active transactional-id")
    one.add_argument("--transactional-id", required=True, help="transactional id")
    producers = command(
        "describe-producers", "describe the states of active producers for a topic partition"
    )
    producers.add_argument("--broker-id", type=int, help="a replica to ask instead of the leader")
    _add_partition(producers, required=True)
    ending = command("abort", "abort a hanging transaction (requires administrative privileges)")
    _add_partition(ending, required=True)
    ending.add_argument("--start-offset", type=int, help="start offset of the transaction to abort")
    ending.add_argument("--producer-id", type=int, help="producer id (older brokers)")
    ending.add_argument("--producer-epoch", type=int, help="producer epoch (older brokers)")
    ending.add_argument("--coordinator-epoch", type=int, help="coordinator epoch (older brokers)")
    search = command("find-hanging", "find hanging transactions")
    search.add_argument("--broker-id", type=int, help="broker to search")
    search.add_argument(
        "--max-transaction-timeout",
        type=int,
        default=15,
        help="only transactions open for longer than this, in minutes (default: 15)",
    )
    _add_partition(search, required=False)
    force = command(
        "forceTerminateTransaction",
        "force abort an ongoing transaction (requires administrative privileges)",
    )
    force.add_argument(
        "--transactionalId",
        "--transactional-id",
        dest="transactional_id",
        required=True,
        help="transactional id",
    )
    return parser


def _add_cluster(parser: argparse.ArgumentParser, *, default: object) -> None:
    parser.add_argument(
        "--bootstrap-server",
        default=default,
        metavar="host:port",
        help="the broker to connect to, or several with commas",
    )
    parser.add_argument(
        "--command-config",
        default=default,
        metavar="FILE",
        help="property file with settings of the client",
    )


def _add_partition(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument("--topic", required=required, help="topic name")
    parser.add_argument("--partition", type=int, required=required, help="partition number")
