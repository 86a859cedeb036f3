"""kafka-log-dirs: the use of data directories, as one line of JSON."""

import json
from collections.abc import Collection, Sequence

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.parser import ToolParser
from penstock.client.operations.brokers import LogDirDescription
from penstock.errors import CommandError


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    if not options.describe:
        parser.error('Missing required argument "[describe]"')
    topics = _words(options.topic_list)
    asked = _words(options.broker_list)
    with admin_of(parser, options) as admin:
        known = [broker.node.id for broker in admin.describe_cluster().brokers]
        brokers = _brokers(asked, known)
        print("Querying brokers for log directories information", flush=True)
        found = admin.describe_log_dirs(brokers)
    names = ",".join(str(broker_id) for broker_id in found)
    print(f"Received log directory information from brokers {names}")
    print(as_json(found, topics))
    return 0


def as_json(found: dict[int, list[LogDirDescription]], topics: Collection[str]) -> str:
    """Kafka's document, its keys in Kafka's order; without topics, all partitions."""
    brokers = [
        {"broker": broker_id, "logDirs": [_log_dir(one, topics) for one in directories]}
        for broker_id, directories in found.items()
    ]
    return json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":"))


def _log_dir(one: LogDirDescription, topics: Collection[str]) -> dict[str, object]:
    replicas = sorted(
        (r for r in one.replicas if not topics or r.partition.topic in topics),
        key=lambda replica: replica.partition,
    )
    return {
        "partitions": [
            {
                "partition": str(replica.partition),
                "size": replica.size_bytes,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.is_future,
            }
            for replica in replicas
        ],
        "error": None if one.error is None else type(one.error).__name__,
        "logDir": one.path,
    }


def _brokers(asked: Sequence[str], known: Sequence[int]) -> list[int]:
    missing = [word for word in asked if word not in {str(broker_id) for broker_id in known}]
    if missing:
        raise CommandError(
            f"ERROR: The given brokers do not exist from --broker-list: {','.join(missing)}. "
            f"Current existent brokers: {','.join(str(broker_id) for broker_id in known)}"
        )
    return [int(word) for word in asked] or list(known)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-log-dirs", "This tool helps to query log directory usage on the specified brokers."
    )
    add_bootstrap(parser)
    add_command_config(parser)
    parser.flag("describe", "Describe the specified log directories on the specified brokers.")
    parser.add_argument(
        "--broker-list",
        default="",
        metavar="Broker list",
        help='The list of brokers to be queried in the form "0,1,2". Without it, all.',
    )
    parser.add_argument(
        "--topic-list",
        default="",
        metavar="Topic list",
        help='The list of topics to be queried in the form "topic1,topic2". Without it, all.',
    )
    return parser
