"""kafka-consumer-groups: list, describe, reset and delete groups, printed as Kafka prints them."""

import argparse
import sys
from collections.abc import Sequence

from penstock.cli.bootstrap import add_bootstrap, add_command_config, bootstrap_of
from penstock.cli.internal_groups import add_include_internal, shown_groups
from penstock.cli.parser import ToolParser, settings_from
from penstock.cli.sentences import sentence, told_after
from penstock.cli.tools.groups.describe import describe
from penstock.cli.tools.groups.reset import (
    NO_ACTION,
    SCENARIOS,
    partitions_named,
    reset,
)
from penstock.client.admin import Admin
from penstock.client.operations.groups import CLASSIC, CONSUMER, GroupListing
from penstock.client.values import TopicPartition
from penstock.errors import (
    InvalidRegularExpression,
    ProtocolError,
    UnknownTopicOrPartition,
)

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
STATES = (
    "Reconciling",
    "Stable",
    "PreparingRebalance",
    "Dead",
    "Empty",
    "Assigning",
    "CompletingRebalance",
)
_VIEWS = ("members", "offsets", "state")
_WHOLE_TOPIC = -1  # Stands for the partitions of a topic that could not be asked for them.


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    action = _check(parser, options)
    if action == "validate-regex":
        return validate_regex(options.validate_regex)
    opening = "Error: Executing consumer group command failed due to "
    with _admin(parser, options) as admin, told_after(opening, errors=ProtocolError):
        return _run(admin, action, options)


def _run(admin: Admin, action: str, options: argparse.Namespace) -> int:
    if action == "list":
        print_list(admin, options)
        return 0
    if action == "delete-offsets":
        return delete_offsets(admin, options)
    groups = _all(admin, options) if options.all_groups else list(dict.fromkeys(options.group))
    if action == "describe":
        return describe(admin, options, groups)
    if action == "reset-offsets":
        return reset(admin, options, groups)
    return delete(admin, groups)


def print_list(admin: Admin, options: argparse.Namespace) -> None:
    """Print the names of all consumer groups, with type and state if asked for."""
    if options.state is None and options.type is None:
        print("".join(f"{name}\n" for name in _all(admin, options)), end="")
        return
    listed = admin.list_consumer_groups(states=options.states, types=options.types)
    groups = shown_groups(listed, options)
    print(
        listing_table(
            groups, with_type=options.type is not None, with_state=options.state is not None
        )
    )


def _all(admin: Admin, options: argparse.Namespace) -> list[str]:
    return [group.group_id for group in shown_groups(admin.list_consumer_groups(), options)]


def listing_table(groups: Sequence[GroupListing], *, with_type: bool, with_state: bool) -> str:
    """Kafka's table of groups."""
    width = max([15, *(len(group.group_id) for group in groups)]) + 10
    rows = [("GROUP", "TYPE", "STATE")]
    rows += [(g.group_id, g.type or "Unknown", g.state or "Unknown") for g in groups]
    lines: list[str] = []
    for name, kind, state in rows:
        line = f"{name:<{width}}"
        line += f" {kind:<20}" if with_type else ""
        line += f" {state:<20}" if with_state else ""
        lines.append(line)
    return "\n".join(lines)


def delete(admin: Admin, groups: Sequence[str]) -> int:
    """Delete groups, and tell which could not be."""
    results = admin.delete_consumer_groups(groups)
    gone = [group for group in groups if results[group] is None]
    kept = {group: error for group, error in results.items() if error is not None}
    if not kept:
        print(f"Deletion of requested consumer groups ({_quoted(gone)}) was successful.")
        return 0
    _complain("Deletion of some consumer groups failed:")
    for group, error in kept.items():
        print(f"* Group '{group}' could not be deleted due to: {sentence(error)}", file=sys.stderr)
    if gone:
        print(f"\nThese consumer groups were deleted successfully: {_quoted(gone)}")
    return 1


def delete_offsets(admin: Admin, options: argparse.Namespace) -> int:
    """Forget the offsets of some topics, and tell of each partition what became of it."""
    group = options.group[0]
    results: dict[TopicPartition, ProtocolError | None] = {}
    partitions: list[TopicPartition] = []
    for word in options.topic:
        try:
            partitions += partitions_named(admin, [word])
        except UnknownTopicOrPartition as error:
            results[TopicPartition(word, _WHOLE_TOPIC)] = error
    whole: ProtocolError | None = None
    try:
        results.update(admin.delete_consumer_group_offsets(group, sorted(set(partitions))))
    except ProtocolError as error:
        whole = error
        results.update(dict.fromkeys(partitions, error))
    failed = whole is not None or any(error is not None for error in results.values())
    if whole is not None:
        _complain(sentence(whole))
    elif failed:
        _complain("Encountered some partition-level error, see the follow-up details.")
    else:
        print(f"Request succeeded for deleting offsets from group {group}.")
    print(deletion_table(results), flush=True)
    return 1 if failed else 0


def deletion_table(results: dict[TopicPartition, ProtocolError | None]) -> str:
    """Kafka's table of deleted offsets."""
    width = max([15, *(len(at.topic) for at in results)])
    rows = [("TOPIC", "PARTITION", "STATUS")]
    for at, error in sorted(results.items()):
        number = "-" if at.partition == _WHOLE_TOPIC else str(at.partition)
        status = "Successful" if error is None else f"Error: {sentence(error)}"
        rows.append((at.topic, number, status))
    return "\n" + "\n".join(f"{t:<{width}} {p:<10} {s:<15}" for t, p, s in rows)


def validate_regex(text: str) -> int:
    """Say whether a pattern is one that the new group protocol takes."""
    from penstock.groups.patterns.pattern import TopicPattern

    try:
        TopicPattern(text)
    except InvalidRegularExpression as error:
        reason = str(error).rpartition("regular expression: ")[2]
        print(f"The regular expression `{text}` is invalid: {reason}")
        return 1
    print(f"The regular expression `{text}` is valid.")
    return 0


def _quoted(groups: Sequence[str]) -> str:
    return ", ".join(f"'{group}'" for group in groups)


def _complain(text: str) -> None:
    sys.stdout.flush()
    print(f"\nError: {text}", file=sys.stderr, flush=True)


def _admin(parser: ToolParser, options: argparse.Namespace) -> Admin:
    settings: dict[str, object] = dict(settings_from(options.command_config))
    settings["default.api.timeout.ms"] = options.timeout
    settings.setdefault("request.timeout.ms", min(options.timeout, 30_000))
    if options.zookeeper:
        print(
            "Note: groups are kept by the brokers; --zookeeper is taken as --bootstrap-server.",
            file=sys.stderr,
        )
    settings["bootstrap.servers"] = bootstrap_of(parser, options, settings)
    return Admin(settings)


def _check(parser: ToolParser, options: argparse.Namespace) -> str:
    """The one action that was asked for; what does not go together ends the process."""
    given = [action for action in ACTIONS if _is_given(options, action)]
    if len(given) != 1:
        words = ", ".join(f"--{action}" for action in ACTIONS)
        parser.error(f"Command must include exactly one action: {words}")
    action = given[0]
    _check_available(parser, options, action)
    if action in ("describe", "delete", "reset-offsets") and not (
        options.group or options.all_groups
    ):
        parser.error(f"Option [{action}] takes one of these options: [group], [all-groups]")
    if action == "describe":
        _check_describe(parser, options)
    if action == "delete" and options.topic:
        parser.error(
            "The consumer does not support topic-specific offset deletion from a consumer group."
        )
    if action == "delete-offsets" and not (options.group and options.topic):
        parser.error("Option [delete-offsets] takes the following options: [topic], [group]")
    if action == "reset-offsets":
        _check_reset(parser, options)
    _exclude(parser, options, "group", ("all-groups", "list"))
    _exclude(parser, options, "topic", ("list", "describe"))
    options.states = _words(parser, options.state, STATES, "Invalid state list '{}'. Valid states")
    options.types = _words(
        parser, options.type, (CONSUMER, CLASSIC), "Invalid types list '{}'. Valid types"
    )
    return action


def _check_available(parser: ToolParser, options: argparse.Namespace, action: str) -> None:
    fits = {
        "members": ("describe",),
        "verbose": ("describe",),
        "offsets": ("describe",),
        "state": ("describe", "list"),
        "type": ("list",),
    }
    lost = [
        name for name, with_ in fits.items() if _is_given(options, name) and action not in with_
    ]
    if lost:
        parser.error(
            f"Option(s) [{', '.join(lost)}] are unavailable given other options on the command line"
        )


def _check_describe(parser: ToolParser, options: argparse.Namespace) -> None:
    if sum(_is_given(options, view) for view in _VIEWS) > 1:
        views = ", ".join(f"[{view}]" for view in _VIEWS)
        parser.error(f"Option [describe] takes at most one of these options: {views}")
    if options.state:
        parser.error("Option [describe] does not take a value for [state]")


def _check_reset(parser: ToolParser, options: argparse.Namespace) -> None:
    if options.dry_run and options.execute:
        parser.error("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.dry_run and not options.execute:
        print(NO_ACTION, file=sys.stderr)
    for scenario in SCENARIOS:
        _exclude(parser, options, scenario, SCENARIOS)
    if not any(_is_given(options, scenario) for scenario in SCENARIOS):
        known = ", ".join(f"[{scenario}]" for scenario in SCENARIOS)
        parser.error(f"Option '[reset-offsets]' requires one of the following scenarios: [{known}]")
    if not (options.topic or options.all_topics or options.from_file):
        parser.error("One of the reset scopes should be defined: --all-topics, --topic.")


def _exclude(
    parser: ToolParser, options: argparse.Namespace, name: str, others: Sequence[str]
) -> None:
    if not _is_given(options, name):
        return
    for other in others:
        if other != name and _is_given(options, other):
            parser.error(f'Option "[{name}]" can\'t be used with option "[{other}]"')


def _words(
    parser: ToolParser, text: str | None, known: Sequence[str], complaint: str
) -> frozenset[str]:
    """`stable,empty` as the known words they mean."""
    if not text:
        return frozenset()
    by_word = {word.lower(): word for word in known}
    asked = [word.strip().lower() for word in text.split(",")]
    if not all(word in by_word for word in asked):
        parser.error(f"{complaint.format(text)} are: {', '.join(known)}")
    return frozenset(by_word[word] for word in asked)


def _is_given(options: argparse.Namespace, name: str) -> bool:
    # --state without a value is given, and empty; an offset of 0 is given too.
    value = getattr(options, name.replace("-", "_"))
    return value is not None and value is not False and value != []


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-consumer-groups",
        "This tool helps to list all consumer groups, describe a consumer group, delete consumer "
        "group info, or reset consumer group offsets.",
    )
    add_bootstrap(parser)
    parser.add_argument(
        "--zookeeper",
        "--zoopkeeper",  # Typed so in a well-known tutorial.
        metavar="server to connect to",
        help="(DEPRECATED) Use --bootstrap-server instead.",
    )
    add_command_config(parser)
    _add_actions(parser)
    _add_reset_options(parser)
    return parser


def _add_actions(parser: ToolParser) -> None:
    flag, option = parser.flag, parser.add_argument
    flag("list", "List all consumer groups.")
    flag("describe", "Describe groups and list their lag: how many records they have not read.")
    flag("delete", "Delete groups with all their offsets. For instance --group g1 --group g2")
    flag("delete-offsets", "Delete the offsets of a group for one or more topics.")
    flag("all-groups", "Apply to all consumer groups.")
    add_include_internal(parser, "--list and --all-groups")
    flag("members", "With --describe: the members of the group.")
    flag("offsets", "With --describe: the partitions of the group and their lag (the default).")
    flag("verbose", "With --describe: more columns, such as the assignments of members.")
    option(
        "--group",
        action="append",
        default=[],
        metavar="consumer group",
        help="The consumer group to act on. May be given many times.",
    )
    option(
        "--topic",
        action="append",
        default=[],
        metavar="topic",
        help="A topic to include when resetting or deleting offsets; topic1:0,1,2 for some of its "
        "partitions. May be given many times.",
    )
    option(
        "--state",
        nargs="?",
        const="",
        metavar="states",
        help="With --describe: the state of the group. With --list: show states, and only groups "
        "of the given ones.\nExample: --list --state stable,empty",
    )
    option(
        "--type",
        nargs="?",
        const="",
        metavar="types",
        help="With --list: show types, and only groups of the given ones.\n"
        "Example: --list --type classic,consumer",
    )
    option(
        "--timeout",
        type=int,
        default=30_000,
        metavar="timeout (ms)",
        help="How long to wait for coordinators, for instance while they load (default: 30000)",
    )
    option(
        "--validate-regex",
        metavar="regex",
        help="Say whether a regular expression is one that consumers may subscribe with (RE2).",
    )


def _add_reset_options(parser: ToolParser) -> None:
    flag, option = parser.flag, parser.add_argument
    flag(
        "reset-offsets",
        "Reset offsets of groups without members. --dry-run (the default) shows what would be "
        "done, --execute does it, --export prints it as CSV.\nOne of --to-datetime, --by-duration, "
        "--to-earliest, --to-latest, --shift-by, --from-file, --to-current, --to-offset says "
        "where to; --all-topics or --topic says of what.",
    )
    flag("all-topics", "With --reset-offsets: all topics that the group has offsets of.")
    flag("dry-run", "Only show results without executing changes.")
    flag("execute", "Execute the change.")
    flag("export", "Print the new offsets as CSV, for --from-file.")
    flag("to-earliest", "Reset offsets to earliest offset.")
    flag("to-latest", "Reset offsets to latest offset.")
    flag("to-current", "Reset offsets to current offset.")
    option("--to-offset", type=int, metavar="offset", help="Reset offsets to a specific offset.")
    option(
        "--shift-by",
        type=int,
        metavar="number-of-offsets",
        help="Reset offsets shifting current offset by 'n', where 'n' can be positive or negative.",
    )
    option(
        "--to-datetime",
        metavar="datetime",
        help="Reset offsets to offset from datetime. Format: 'YYYY-MM-DDThh:mm:ss.sss'",
    )
    option(
        "--by-duration",
        metavar="duration",
        help="Reset offsets to offset by duration from current timestamp. Format: 'PnDTnHnMnS'",
    )
    option("--from-file", metavar="path to CSV file", help="Reset offsets to those of a CSV file.")
