"""kafka-topics: create, list, describe, alter and delete topics, printed as Kafka prints them."""

import argparse
from collections.abc import Sequence

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.parser import ToolParser, key_values
from penstock.cli.sentences import told_after
from penstock.cli.tools.topics.describe import describe
from penstock.cli.topic_filter import topic_pattern
from penstock.client.admin import Admin
from penstock.client.operations.configs import (
    ConfigChange,
    ConfigResource,
    Operation,
    ResourceType,
)
from penstock.client.operations.topics import BROKER_DEFAULT, NewPartitions, NewTopic
from penstock.errors import CommandError, TopicExists

ACTIONS = ("list", "describe", "create", "alter", "delete")
FILTERS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "topics-with-overrides",
)

# Which options make no sense with which action, as Kafka refuses them.
_NOT_WITH = {
    "create": ("if-exists", "delete-config", *FILTERS),
    "list": (
        "partitions",
        "replication-factor",
        "replica-assignment",
        "config",
        "delete-config",
        *FILTERS,
    ),
    "describe": ("partitions", "replication-factor", "replica-assignment", "config"),
    "alter": ("replication-factor", "if-not-exists", *FILTERS),
    "delete": ("partitions", "replication-factor", "replica-assignment", "config", *FILTERS),
}

_COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    action = _action(parser, options)
    told = told_after("Error while executing topic command : ", words=str)
    with admin_of(parser, options) as admin, told:
        _DO[action](admin, options)
    return 0


def create(admin: Admin, options: argparse.Namespace) -> None:
    """Create one topic."""
    name = options.topic
    if "." in name or "_" in name:
        print(_COLLISION, flush=True)
    placed = parse_assignment(options.replica_assignment) if options.replica_assignment else []
    topic = NewTopic(
        name=name,
        partitions=options.partitions or BROKER_DEFAULT,
        replication_factor=options.replication_factor or BROKER_DEFAULT,
        assignments=dict(enumerate(placed)),
        configs=key_values(options.config, "--config"),
    )
    try:
        admin.create_topics([topic])
    except TopicExists:
        if not options.if_not_exists:
            raise
        return
    print(f"Created topic {name}.")


def list_names(admin: Admin, options: argparse.Namespace) -> None:
    """Print the names of all topics, or of those that match."""
    for name in matching(admin, options.topic, internal=not options.exclude_internal):
        print(name)


def alter(admin: Admin, options: argparse.Namespace) -> None:
    """Add partitions; add and remove settings, as old texts do here."""
    names = _existing(admin, options)
    if not names:
        return
    if options.partitions is not None:
        for name in names:
            admin.create_partitions({name: _enlargement(admin, name, options)})
    changes = [
        ConfigChange(name=key, value=value)
        for key, value in key_values(options.config, "--config").items()
    ]
    changes += [ConfigChange(name=k, operation=Operation.DELETE) for k in options.delete_config]
    if changes:
        for name in names:
            admin.alter_configs({ConfigResource(ResourceType.TOPIC, name): changes})
            print(f"Completed updating config for topic {name}.")


def delete(admin: Admin, options: argparse.Namespace) -> None:
    """Delete the topics that match."""
    names = _existing(admin, options)
    if names:
        admin.delete_topics(names)


def matching(admin: Admin, pattern: str | None, *, internal: bool = True) -> list[str]:
    """The topics whose whole name matches, in order; without a pattern, all."""
    names = [topic.name for topic in admin.list_topics(internal=internal)]
    if pattern is None:
        return names
    matches = topic_pattern(pattern)
    return [name for name in names if matches.match(name)]


def parse_assignment(text: str) -> list[list[int]]:
    """`0:1,1:2`: for each partition the brokers of its replicas, the preferred leader first."""
    try:
        placed = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise CommandError(f"--replica-assignment {text}: write 0:1,1:2 with broker ids") from None
    for brokers in placed:
        if len(set(brokers)) != len(brokers):
            twice = ",".join(str(b) for b in sorted({b for b in brokers if brokers.count(b) > 1}))
            raise CommandError(
                f"Partition replica lists may not contain duplicate entries: {twice}"
            )
        if len(brokers) != len(placed[0]):
            raise CommandError(
                f"Partition {placed.index(brokers)} has different replication factor: {brokers}"
            )
    return placed


def _existing(admin: Admin, options: argparse.Namespace) -> list[str]:
    names = matching(admin, options.topic, internal=not options.exclude_internal)
    if not names and not options.if_exists:
        raise CommandError(f"Topic '{options.topic}' does not exist as expected")
    return names


def _enlargement(admin: Admin, name: str, options: argparse.Namespace) -> NewPartitions:
    if not options.replica_assignment:
        return NewPartitions(total_count=options.partitions)
    placed = parse_assignment(options.replica_assignment)
    existing = len(admin.describe_topics([name])[name].partitions)
    # Kafka's tool takes the assignment of all partitions, those that exist included.
    return NewPartitions(total_count=options.partitions, assignments=placed[existing:])


_DO = {
    "create": create,
    "list": list_names,
    "describe": describe,
    "alter": alter,
    "delete": delete,
}


def _action(parser: ToolParser, options: argparse.Namespace) -> str:
    given = [action for action in ACTIONS if getattr(options, action)]
    if len(given) != 1:
        parser.error(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    action = given[0]
    for name in _NOT_WITH[action]:
        if getattr(options, name.replace("-", "_")) not in (None, False, []):
            parser.error(f'Option "[{action}]" can\'t be used with option "[{name}]"')
    if action in ("create", "alter", "delete"):
        parser.required(options, "topic")
    if options.replica_assignment and action == "create" and options.partitions:
        parser.error('Option "[replica-assignment]" can\'t be used with option "[partitions]"')
    if options.partitions is not None and options.partitions < 1:
        parser.error("The partitions must be greater than 0")
    if options.replication_factor is not None and not 0 < options.replication_factor < 32768:
        parser.error("The replication factor must be between 1 and 32767 inclusive")
    return action


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-topics", "This tool helps to create, delete, describe, or change a topic."
    )
    parser.told_when_bare = "Create, delete, describe, or change a topic."
    add_bootstrap(parser, zookeeper=True, broker_list=True)
    add_command_config(parser)
    flag, option = parser.flag, parser.add_argument
    flag("alter", "Alter the number of partitions, the replica assignment or settings of a topic.")
    flag("create", "Create a new topic.")
    flag("delete", "Delete a topic.")
    flag("describe", "List details for the given topics.")
    flag("list", "List all available topics.")
    flag("exclude-internal", "Leave out internal topics when listing or describing.")
    flag("if-exists", "Alter, delete or describe a topic only if it exists.")
    flag("if-not-exists", "Do not fail if the topic to create exists already.")
    flag("at-min-isr-partitions", "Show only partitions with just the minimum of in-sync replicas.")
    flag("topics-with-overrides", "Show only topics that have settings of their own.")
    flag("unavailable-partitions", "Show only partitions whose leader is not available.")
    flag("under-min-isr-partitions", "Show only partitions with too few in-sync replicas.")
    flag("under-replicated-partitions", "Show only partitions with replicas out of sync.")
    option(
        "--topic",
        metavar="topic",
        help="The topic to create, alter, describe or delete. It also accepts a regular "
        "expression, except for --create.",
    )
    option("--topic-id", metavar="topic-id", help="The topic-id to describe.")
    option(
        "--config",
        action="append",
        default=[],
        metavar="name=value",
        help="A setting of the topic being created or altered. May be given many times.",
    )
    option(
        "--delete-config",
        "--deleteConfig",
        action="append",
        default=[],
        metavar="name",
        help="A setting of the topic to go back to its default, with --alter.",
    )
    option("--partitions", type=int, metavar="# of partitions", help="The number of partitions.")
    option(
        "--replication-factor",
        type=int,
        metavar="replication factor",
        help="The number of replicas of each partition.",
    )
    option(
        "--replica-assignment",
        metavar="broker:broker,broker:broker,...",
        help="For each partition the brokers of its replicas.",
    )
    option(
        "--partition-size-limit-per-response",
        type=int,
        default=2000,
        metavar="maximum number of partitions per response",
        help="How many partitions one answer may hold when describing.",
    )
    return parser
