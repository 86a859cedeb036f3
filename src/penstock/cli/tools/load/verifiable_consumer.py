"""kafka-verifiable-consumer: a member of a group that tells in JSON all that happens to it."""

import argparse
import threading
from collections.abc import Sequence

from penstock.cli.bootstrap import add_bootstrap, bootstrap_of
from penstock.cli.client_options import quiet_librdkafka, reach
from penstock.cli.events import emit
from penstock.cli.parser import ToolParser, settings_from, warn_deprecated
from penstock.cli.stopping import stop_on_signals
from penstock.client.consumer.consumer import Consumer
from penstock.client.values import ConsumerRecord, OffsetAndMetadata, TopicPartition
from penstock.errors import FencedInstanceId, PenstockError

_POLL_S = 0.2
_RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    if not argv:
        print(parser.format_help(), end="")
        return 0
    options = parser.parse(argv)
    parser.required(options, "topic", "group-id")
    warn_deprecated(options, {"consumer.config": "command-config"})
    settings = settings_of(options)
    settings["bootstrap.servers"] = bootstrap_of(parser, options, settings)
    quiet_librdkafka()
    reach(settings, [], create=False)
    stop = stop_on_signals()
    consumer = Consumer[bytes, bytes](settings)
    emit("startup_complete")
    try:
        consumer.subscribe([options.topic], RebalanceReports())
        consume(consumer, options, stop)
    finally:
        asked = stop.is_set()
        if asked:
            emit("shutdown_requested")
        consumer.close()
        emit("shutdown_complete")
        if not asked:  # Kafka's tool says so from its exit hook, which runs after all else.
            emit("shutdown_requested")
    return 0


class RebalanceReports:
    """Tells of partitions that come and go."""

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions came."""
        emit("partitions_assigned", partitions=[_named(at) for at in partitions])

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions go."""
        emit("partitions_revoked", partitions=[_named(at) for at in partitions])


def consume(
    consumer: Consumer[bytes, bytes], options: argparse.Namespace, stop: threading.Event
) -> None:
    """Read, tell and commit until there is enough or somebody says stop."""
    limit = options.max_messages
    consumed = 0
    while not stop.is_set() and (limit < 0 or consumed < limit):
        records = consumer.poll(_POLL_S)
        if not records:
            continue
        by_partition: dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]] = {}
        for record in records:
            at = TopicPartition(record.topic, record.partition)
            by_partition.setdefault(at, []).append(record)
        taken = at_most(by_partition, None if limit < 0 else limit - consumed)
        consumed += sum(len(those) for those in taken.values())
        _tell(taken, len(records), verbose=options.verbose)
        if not options.enable_autocommit:
            _commit(consumer, {at: those[-1].offset + 1 for at, those in taken.items()})


def at_most(
    records: dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]], count: int | None
) -> dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]]:
    """The first so many records, partition by partition; None: all of them."""
    if count is None:
        return records
    taken: dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]] = {}
    for at, those in records.items():
        if count <= 0:
            break
        taken[at] = those[:count]
        count -= len(taken[at])
    return taken


def settings_of(options: argparse.Namespace) -> dict[str, object]:
    """Settings of the file, overridden by those of the command line."""
    settings: dict[str, object] = dict(
        settings_from(options.command_config or options.consumer_config)
    )
    protocol = options.group_protocol.lower()
    if protocol == "consumer":
        settings["group.protocol"] = protocol
        if options.group_remote_assignor:
            settings["group.remote.assignor"] = options.group_remote_assignor
    else:
        settings["partition.assignment.strategy"] = options.assignment_strategy
        if options.session_timeout is not None:
            settings["session.timeout.ms"] = options.session_timeout
    settings["group.id"] = options.group_id
    if options.group_instance_id:
        settings["group.instance.id"] = options.group_instance_id
    settings["enable.auto.commit"] = options.enable_autocommit
    settings["auto.offset.reset"] = options.reset_policy
    return settings


def _tell(
    taken: dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]], polled: int, *, verbose: bool
) -> None:
    if verbose:
        for those in taken.values():
            for record in those:
                emit(
                    "record_data",
                    key=_text(record.key),
                    value=_text(record.value),
                    **_named(TopicPartition(record.topic, record.partition)),
                    offset=record.offset,
                )
    summaries = [
        {
            **_named(at),
            "count": len(those),
            "minOffset": those[0].offset,
            "maxOffset": those[-1].offset,
        }
        for at, those in taken.items()
    ]
    emit("records_consumed", count=polled, partitions=summaries)


def _commit(consumer: Consumer[bytes, bytes], offsets: dict[TopicPartition, int]) -> None:
    told = [{**_named(at), "offset": offset} for at, offset in offsets.items()]
    try:
        consumer.commit({at: OffsetAndMetadata(offset) for at, offset in offsets.items()})
    except FencedInstanceId:
        raise  # Another has our place: there is nothing to go on with.
    except PenstockError as error:
        emit("offsets_committed", offsets=told, error=str(error), success=False)
    else:
        emit("offsets_committed", offsets=told, success=True)


def _named(at: TopicPartition) -> dict[str, object]:
    return {"topic": at.topic, "partition": at.partition}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-verifiable-consumer",
        "This tool consumes messages from a specific topic and emits consumer events (e.g. group "
        "rebalances, received messages, and offsets committed) as JSON objects to STDOUT.",
    )
    add_bootstrap(parser, broker_list=True)
    option = parser.add_argument
    option("--topic", metavar="TOPIC", help="REQUIRED: Consumes messages from this topic.")
    option("--group-id", metavar="GROUP-ID", help="REQUIRED: The group id of the consumer group.")
    option(
        "--group-protocol",
        default="classic",
        metavar="GROUP-PROTOCOL",
        help="Group protocol: classic or consumer (default: classic)",
    )
    option(
        "--group-remote-assignor",
        metavar="GROUP-REMOTE-ASSIGNOR",
        help="Assignor of the coordinator; only with the group protocol consumer.",
    )
    option("--group-instance-id", metavar="GROUP-INSTANCE-ID", help="Makes it a static member.")
    option(
        "--max-messages",
        type=int,
        default=-1,
        metavar="MAX-MESSAGES",
        help="Consume this many messages. If -1, until the process is stopped (default: -1)",
    )
    option(
        "--session-timeout",
        type=int,
        metavar="TIMEOUT-MS",
        help="The session timeout; not with the group protocol consumer.",
    )
    parser.flag("verbose", "Tell of each record.")
    parser.flag("enable-autocommit", "Let the consumer commit by timer.")
    option(
        "--reset-policy",
        choices=("earliest", "latest", "none"),
        default="earliest",
        metavar="RESET-POLICY",
        help="Where to begin without a committed offset: earliest, latest or none (default: "
        "earliest)",
    )
    option(
        "--assignment-strategy",
        default=_RANGE,
        metavar="ASSIGNMENT-STRATEGY",
        help=f"Assignor of the members; only with the group protocol classic (default: {_RANGE})",
    )
    option("--command-config", metavar="CONFIG-FILE", help="Property file for the consumer.")
    option(
        "--consumer.config",
        dest="consumer_config",
        metavar="CONFIG-FILE",
        help="(DEPRECATED) Use --command-config instead.",
    )
    return parser
