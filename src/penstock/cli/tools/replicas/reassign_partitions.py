"""kafka-reassign-partitions: move partitions between brokers, watch and cancel the moves.

The controller does the moving. This tool proposes plans, sets the throttles before a move and
takes them away when --verify finds it done, all in the words of Kafka's own tool.
"""

import argparse
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.parser import ToolParser
from penstock.cli.sentences import sentence, told_after
from penstock.cli.tools.replicas import move_directories as directories
from penstock.cli.tools.replicas import move_plan as plan
from penstock.cli.tools.replicas import move_throttles as throttles
from penstock.client.admin import Admin
from penstock.client.operations.reassignments import PartitionReassignment
from penstock.client.values import TopicPartition
from penstock.errors import CommandError, ProtocolError, UnknownTopicOrPartition

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
_NEEDS = {
    "generate": ("broker-list", "topics-to-move-json-file"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
_ALSO_WITH = {
    "generate": ("disable-rack-aware",),
    "execute": (
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "verify": ("preserve-throttles",),
    "cancel": ("preserve-throttles", "timeout"),
    "list": (),
}
_OPTIONS = sorted(
    {name for table in (_NEEDS, _ALSO_WITH) for its in table.values() for name in its}
)
_TIMEOUT_MS = 10_000

_EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
_MUST_VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure "
    "the throttle is removed."
)


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    action = _action(parser, options)
    with admin_of(parser, options) as admin, told_after("Error: "):
        _DO[action](admin, options)
    return 0


def generate(admin: Admin, options: argparse.Namespace) -> None:
    """Propose new places for all partitions of some topics."""
    topics = plan.parse_topics(_text_of(options.topics_to_move_json_file))
    brokers = plan.parse_brokers(options.broker_list)
    current = _assignment_of_topics(admin, topics)
    known = {b.node.id: b.node.rack for b in admin.describe_cluster().brokers}
    racks = plan.racks_for(known, brokers, aware=not options.disable_rack_aware)
    start, shift = (random.randrange(max(1, len(racks))) for _ in range(2))
    proposed = plan.propose(current, racks, start=start, shift=shift)
    before = plan.as_json(current, directories.paths(admin, current))
    print(f"Current partition replica assignment\n{before}\n")
    print(f"Proposed partition reassignment configuration\n{plan.as_json(proposed)}")


def execute(admin: Admin, options: argparse.Namespace) -> None:
    """Have the controller begin the moves of a file, throttled if so wanted."""
    wanted = plan.parse_reassignment(_text_of(options.reassignment_json_file))
    under_way = admin.list_partition_reassignments()
    if under_way and not options.additional:
        raise CommandError(_EXISTING)
    _refuse_unknown_brokers(admin, wanted.replicas)
    current = _assignment_of(admin, list(wanted.replicas))
    print(
        "Current partition replica assignment\n\n"
        f"{plan.as_json(current, directories.paths(admin, current))}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    _throttle(admin, options, wanted, current, under_way)
    _begin(admin, wanted, allow_growth=not options.disallow_replication_factor_change)
    if wanted.directories:
        directories.move(admin, wanted.directories, timeout_ms=options.timeout or _TIMEOUT_MS)


def verify(admin: Admin, options: argparse.Namespace) -> None:
    """Tell how far the moves of a file are; when all are done, lift the throttles."""
    wanted = plan.parse_reassignment(_text_of(options.reassignment_json_file))
    under_way = admin.list_partition_reassignments()
    current = _assignment_or_nothing(admin, list(wanted.replicas))
    print("Status of partition reassignment:")
    for at in sorted(wanted.replicas):
        print(status_line(at, wanted.replicas[at], current[at], is_moving=at in under_way))
    moving = directories.show(admin, wanted.directories)
    print()
    if not under_way and not moving and not options.preserve_throttles:
        throttles.clear(admin, {at.topic for at in wanted.replicas})


def cancel(admin: Admin, options: argparse.Namespace) -> None:
    """Stop the moves of a file and go back to where the partitions were."""
    wanted = plan.parse_reassignment(_text_of(options.reassignment_json_file))
    active = sorted(admin.list_partition_reassignments(list(wanted.replicas)))
    if active:
        errors = _failures(admin.alter_partition_reassignments(dict.fromkeys(active)))
        if errors:
            raise CommandError(
                f"Error cancelling partition reassignment{_s(errors)} for:\n{errors}"
            )
        print(f"Successfully cancelled partition reassignment{_s(active)} for: {_joined(active)}")
    else:
        print("None of the specified partition reassignments are active.")
    directories.stay(admin, wanted.directories, timeout_ms=options.timeout or _TIMEOUT_MS)
    if not options.preserve_throttles:
        throttles.clear(admin, {at.topic for at in wanted.replicas})


def show(admin: Admin, _: argparse.Namespace) -> None:
    """List every move under way."""
    print(moves_text(admin.list_partition_reassignments()))


def moves_text(under_way: Mapping[TopicPartition, PartitionReassignment]) -> str:
    """What --list prints."""
    if not under_way:
        return "No partition reassignments found."
    lines = []
    for at in sorted(under_way):
        move = under_way[at]
        adding = f" adding: {_numbers(move.adding)}." if move.adding else ""
        removing = f" removing: {_numbers(move.removing)}." if move.removing else ""
        lines.append(f"{at}: replicas: {_numbers(move.replicas)}.{adding}{removing}")
    return "\n".join(["Current partition reassignments:", *lines])


def status_line(
    at: TopicPartition, target: Sequence[int], current: Sequence[int], *, is_moving: bool
) -> str:
    """What --verify prints of one partition."""
    if is_moving:
        return f"Reassignment of partition {at} is still in progress."
    if list(current) == list(target):
        return f"Reassignment of partition {at} is completed."
    return (
        f"There is no active reassignment of partition {at}, but replica set is "
        f"{_numbers(current)} rather than {_numbers(target)}."
    )


_DO = {
    "generate": generate,
    "execute": execute,
    "verify": verify,
    "cancel": cancel,
    "list": show,
}


def _throttle(
    admin: Admin,
    options: argparse.Namespace,
    wanted: plan.Wanted,
    current: plan.Assignment,
    under_way: Mapping[TopicPartition, PartitionReassignment],
) -> None:
    rate, directory_rate = options.throttle, options.replica_alter_log_dirs_throttle
    if rate is None and directory_rate is None:
        return
    print(_MUST_VERIFY)
    if rate is not None:
        planned = plan.moves(wanted.replicas, current, under_way)
        throttles.limit_moves(admin, planned, bytes_per_s=rate)
        print(f"The inter-broker throttle limit was set to {rate} B/s")
    if directory_rate is not None:
        brokers = {replica.broker_id for replica in wanted.directories}
        throttles.limit_directories(admin, brokers, bytes_per_s=directory_rate)
        print(f"The replica-alter-dir throttle limit was set to {directory_rate} B/s")


def _begin(admin: Admin, wanted: plan.Wanted, *, allow_growth: bool) -> None:
    results = admin.alter_partition_reassignments(
        wanted.replicas, allow_replication_factor_change=allow_growth
    )
    if errors := _failures(results):
        raise CommandError(f"Error reassigning partition(s):\n{errors}")
    partitions = sorted(wanted.replicas)
    print(f"Successfully started partition reassignment{_s(partitions)} for {_joined(partitions)}")


def _failures(results: Mapping[TopicPartition, ProtocolError | None]) -> str:
    failed = {at: error for at, error in results.items() if error is not None}
    return "\n".join(f"{at}: {sentence(failed[at])}" for at in sorted(failed))


def _refuse_unknown_brokers(admin: Admin, wanted: plan.Assignment) -> None:
    known = {broker.node.id for broker in admin.describe_cluster().brokers}
    for broker in sorted({b for replicas in wanted.values() for b in replicas}):
        if broker not in known:
            raise CommandError(f"Unknown broker id {broker}")


def _assignment_of_topics(admin: Admin, topics: Sequence[str]) -> dict[TopicPartition, list[int]]:
    known = {listing.name for listing in admin.list_topics()}
    for topic in topics:
        if topic not in known:
            raise CommandError(f"Topic {topic} not found.")
    return {
        TopicPartition(topic.name, part.partition): [node.id for node in part.replicas]
        for topic in admin.describe_topics(topics).values()
        for part in topic.partitions
    }


def _assignment_of(
    admin: Admin, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, list[int]]:
    found = _assignment_of_topics(admin, sorted({at.topic for at in partitions}))
    for at in partitions:
        if at not in found:
            raise CommandError(f"Unable to find partition: {at}")
    return {at: found[at] for at in partitions}


def _assignment_or_nothing(
    admin: Admin, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, list[int]]:
    """Like the above, with no replicas for what does not exist (any more)."""
    found: dict[TopicPartition, list[int]] = {}
    for topic in sorted({at.topic for at in partitions}):
        try:
            described = admin.describe_topics([topic])[topic]
        except UnknownTopicOrPartition:
            continue
        for part in described.partitions:
            at = TopicPartition(topic, part.partition)
            found[at] = [node.id for node in part.replicas]
    return {at: found.get(at, []) for at in partitions}


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError as error:
        raise CommandError(f"Error: Cannot read {file}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"Error: {file} is no text: {error.reason}.") from error


def _numbers(brokers: Sequence[int]) -> str:
    return ",".join(str(broker) for broker in brokers)


def _joined(partitions: Sequence[TopicPartition]) -> str:
    return ",".join(str(at) for at in partitions)


def _s(items: Sequence[object]) -> str:
    return "" if len(items) == 1 else "s"


def _action(parser: ToolParser, options: argparse.Namespace) -> str:
    given = [action for action in ACTIONS if getattr(options, action)]
    if len(given) != 1:
        listed = ", ".join(f"--{action}" for action in ACTIONS)
        parser.error(f"Command must include exactly one action: {listed}")
    (action,) = given
    parser.required(options, *_NEEDS[action])
    for name in _OPTIONS:
        is_given = getattr(options, name.replace("-", "_")) not in (None, False)
        if is_given and name not in (*_NEEDS[action], *_ALSO_WITH[action]):
            parser.error(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    for name in ("throttle", "replica_alter_log_dirs_throttle"):
        rate = getattr(options, name)
        if rate is not None and rate < 1:
            parser.error(f"--{name.replace('_', '-')} {rate}: write bytes per second, above 0")
    return action


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-reassign-partitions", "This tool helps to move topic partitions between replicas."
    )
    add_bootstrap(parser, zookeeper=True)
    add_command_config(parser)
    flag, option = parser.flag, parser.add_argument
    flag("generate", "Propose a reassignment; nothing is moved.")
    flag("execute", "Begin the moves of --reassignment-json-file.")
    flag(
        "verify",
        "Tell whether the moves of --reassignment-json-file are done; if all moves are, remove "
        "the throttles.",
    )
    flag("cancel", "Cancel the active moves of --reassignment-json-file.")
    flag("list", "List all moves under way.")
    option(
        "--reassignment-json-file",
        metavar="manual assignment json file path",
        help="The JSON file with the partitions and their replicas. The format to use is:\n"
        '{"partitions":[{"topic": "foo", "partition": 1, "replicas": [1,2,3], '
        '"log_dirs": ["any","any","any"]}], "version":1}\n'
        '"log_dirs" is optional: "any", or the path of a log directory of that broker.',
    )
    option(
        "--topics-to-move-json-file",
        metavar="topics to reassign json file path",
        help="The JSON file with the topics to propose new places for, on the brokers of "
        '--broker-list. The format to use is:\n{"topics":[{"topic": "foo"}], "version":1}',
    )
    option(
        "--broker-list",
        metavar="brokerlist",
        help='The brokers to move partitions to, in the form "0,1,2"; for --generate.',
    )
    flag("disable-rack-aware", "Propose places without regard to racks.")
    option(
        "--throttle",
        type=int,
        metavar="Long: throttle",
        help="The most bytes per second that moves between brokers may take on each. It can be "
        "changed by giving the same file again with --additional.",
    )
    option(
        "--replica-alter-log-dirs-throttle",
        type=int,
        metavar="Long: replicaAlterLogDirsThrottle",
        help="The most bytes per second that moves between directories of a broker may take.",
    )
    option(
        "--timeout",
        type=int,
        metavar="Long: timeout",
        help="How long to wait in ms for moves between directories to begin. (default: 10000)",
    )
    flag("additional", "Begin these moves beside those under way, or change their throttle.")
    flag("preserve-throttles", "Leave the throttles as they are.")
    flag("disallow-replication-factor-change", "Refuse moves that change a replication factor.")
    return parser
