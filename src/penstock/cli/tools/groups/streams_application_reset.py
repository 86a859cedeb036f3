"""kafka-streams-application-reset: let a streams application begin again.

The application is the group that carries its id. Its offsets on input topics are set back, those
on intermediate topics to the end, and the topics it made for itself are deleted.
"""

import argparse
import re
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from penstock.cli.bootstrap import add_bootstrap, add_command_config
from penstock.cli.offset_reset import parse_datetime, parse_duration, parse_plan, within
from penstock.cli.parser import ToolParser, settings_from, warn_deprecated
from penstock.cli.progress import Progress
from penstock.cli.sentences import sentence, told_after
from penstock.cli.tools.groups.reset import ends_of, offsets_at, ranges_of
from penstock.client.admin import Admin
from penstock.client.operations.groups import CONSUMER, GroupDescription
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.errors import (
    CommandError,
    GroupIdNotFound,
    PenstockError,
    ProtocolError,
    UnknownMemberId,
)

SCENARIOS = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "from-file",
    "shift-by",
)
_REMOVALS_MAX = 4  # Members may leave by themselves between the look and the removal.
# What a streams application calls the topics it makes, behind its own id.
_INTERNAL = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|.-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)"
)


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    _check(parser, options)
    settings: dict[str, object] = dict(settings_from(options.command_config or options.config_file))
    settings["bootstrap.servers"] = options.bootstrap_server or "localhost:9092"
    with Admin(settings) as admin, told_after("ERROR: ", errors=ProtocolError):
        return reset(admin, options)


def reset(admin: Admin, options: argparse.Namespace) -> int:
    """Do all of it, or tell all of it; 1 if a topic that was named does not exist."""
    _clear_members(admin, options)
    topics = [topic.name for topic in admin.list_topics(internal=False)]
    if options.dry_run:
        print(
            "----Dry run displays the actions which will be performed when running Streams Reset "
            "Tool----"
        )
    code = _reset_offsets(admin, options, topics)
    _delete_topics(admin, options, topics)
    return code


def internal_topics(
    application_id: str, topics: Sequence[str], named: Collection[str]
) -> list[str]:
    """The topics that the application made for itself; those the user named are not."""
    return [
        topic
        for topic in topics
        if topic not in named
        and topic.startswith(f"{application_id}-")
        and _INTERNAL.fullmatch(topic)
    ]


def _clear_members(admin: Admin, options: argparse.Namespace) -> None:
    """Refuse while the application runs; with --force its members are removed."""
    group_id = options.application_id
    for _ in range(_REMOVALS_MAX):
        group = admin.describe_consumer_groups([group_id])[group_id]
        if isinstance(group, GroupIdNotFound):
            return
        if isinstance(group, ProtocolError):
            raise group
        if not group.members:
            return
        if not options.force:
            raise CommandError(_still_active(group))
        if group.type == CONSUMER:
            raise CommandError(
                f"Group '{group_id}' uses the new group protocol, whose members cannot be removed "
                "from outside: stop them."
            )
        print(f"Force deleting all active members in the group: {group_id}", flush=True)
        try:
            admin.remove_members_from_consumer_group(
                group_id, group.members, reason="application reset"
            )
        except UnknownMemberId:
            continue  # One has left by itself: look again.
        return
    raise CommandError(f"The members of group '{group_id}' keep coming back: stop them first.")


def _still_active(group: GroupDescription) -> str:
    members = ", ".join(f"{m.member_id} ({m.client_id} at {m.host})" for m in group.members)
    return (
        f"ERROR: Consumer group '{group.group_id}' is still active and has following members: "
        f"[{members}]. Make sure to stop all running application instances before running the "
        "reset tool. You can use option '--force' to remove active members from the group."
    )


def _reset_offsets(admin: Admin, options: argparse.Namespace, topics: Sequence[str]) -> int:
    inputs, between = options.input_topics, options.intermediate_topics
    if not inputs and not between:
        print("No input or intermediate topics specified. Skipping seek.")
        return 0
    if inputs:
        print(f"Reset-offsets for input topics {_listed(inputs)}")
    if between:
        print(f"Seek-to-end for intermediate topics {_listed(between)}")
    missing = [topic for topic in [*inputs, *between] if topic not in topics]
    _tell_missing("input", [topic for topic in inputs if topic not in topics])
    _tell_missing("intermediate", [topic for topic in between if topic not in topics])
    offsets = {
        **_input_offsets(admin, options, [topic for topic in inputs if topic in topics]),
        **_intermediate_offsets(admin, options, [topic for topic in between if topic in topics]),
    }
    if not options.dry_run:
        commits = {at: OffsetAndMetadata(offset) for at, offset in offsets.items()}
        admin.alter_consumer_group_offsets(options.application_id, commits)
    if offsets:
        print("Done.")
    return 1 if missing else 0


def _input_offsets(
    admin: Admin, options: argparse.Namespace, topics: Sequence[str]
) -> dict[TopicPartition, int]:
    partitions = _partitions(admin, topics)
    if not partitions:
        return {}
    print(
        "Following input topics offsets will be reset to (for consumer group "
        f"{options.application_id})"
    )
    offsets = new_offsets(admin, options, partitions)
    for at, offset in offsets.items():
        print(f"Topic: {at.topic} Partition: {at.partition} Offset: {offset}")
    return offsets


def new_offsets(
    admin: Admin, options: argparse.Namespace, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Where to begin again, by the scenario that was chosen; at the beginning if none was."""
    if options.to_offset is not None:
        wanted = dict.fromkeys(partitions, options.to_offset)
        return within(wanted, ranges_of(admin, partitions), print)
    if options.shift_by is not None:
        wanted = _shifted(admin, options, partitions)
        return within(wanted, ranges_of(admin, partitions), print)
    if options.from_file is not None:
        wanted = _from_file(options.from_file, partitions)
        return within(wanted, ranges_of(admin, list(wanted)), print)
    if options.to_datetime is not None:
        return offsets_at(admin, partitions, parse_datetime(options.to_datetime))
    if options.by_duration is not None:
        at_ms = int(time.time() * 1000) - parse_duration(options.by_duration)
        return offsets_at(admin, partitions, at_ms)
    spec = OffsetSpec.LATEST if options.to_latest else OffsetSpec.EARLIEST
    return ends_of(admin, partitions, spec)


def _shifted(
    admin: Admin, options: argparse.Namespace, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """From what is committed; where nothing is, from the end, where a consumer would begin."""
    committed = admin.list_consumer_group_offsets(options.application_id)
    ends = ends_of(admin, [at for at in partitions if at not in committed])
    now: Mapping[TopicPartition, int] = {**ends, **{at: o.offset for at, o in committed.items()}}
    return {at: now[at] + options.shift_by for at in partitions}


def _from_file(file: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    try:
        plan = parse_plan(Path(file).read_text(), ["application"]).get("application", {})
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"Cannot read the reset plan {file}: {error}.") from error
    missing = [str(at) for at in partitions if at not in plan]
    if missing:
        raise CommandError(f"The reset plan {file} has no offset for {', '.join(missing)}.")
    return {at: plan[at] for at in partitions}


def _intermediate_offsets(
    admin: Admin, options: argparse.Namespace, topics: Sequence[str]
) -> dict[TopicPartition, int]:
    partitions = _partitions(admin, topics)
    if not partitions:
        return {}
    print(
        "Following intermediate topics offsets will be reset to end (for consumer group "
        f"{options.application_id})"
    )
    for at in partitions:
        print(f"Topic: {at.topic}")
    return ends_of(admin, partitions)


def _delete_topics(admin: Admin, options: argparse.Namespace, topics: Sequence[str]) -> None:
    named = {*options.input_topics, *options.intermediate_topics}
    inferred = internal_topics(options.application_id, topics, named)
    if options.internal_topics:
        if not set(options.internal_topics) <= set(inferred):
            raise CommandError(
                "Invalid topic specified in the --internal-topics option. Ensure that the topics "
                "specified are all internal topics. Do a dry run without the --internal-topics "
                "option to see the list of all internal topics that can be deleted."
            )
        inferred = options.internal_topics
        print(f"Deleting specified internal topics {_listed(inferred)}", flush=True)
    else:
        print(f"Deleting inferred internal topics {_listed(inferred)}", flush=True)
    if not options.dry_run:
        _delete(admin, inferred)
    print("Done.")


def _delete(admin: Admin, topics: Sequence[str]) -> None:
    failed = False
    with Progress("topics", len(topics)) as progress:
        for topic in topics:
            try:
                admin.delete_topics([topic])
            except PenstockError as error:
                failed = True
                print(f"ERROR: deleting topic {topic}: {sentence(error)}", file=sys.stderr)
            progress.step()
    if failed:
        raise CommandError("Encountered an error deleting one or more topics")


def _partitions(admin: Admin, topics: Sequence[str]) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, part.partition)
        for topic in admin.describe_topics(list(topics)).values()
        for part in topic.partitions
    ]


def _tell_missing(kind: str, topics: Sequence[str]) -> None:
    if topics:
        print(f"Following {kind} topics are not found, skipping them")
        for topic in topics:
            print(f"Topic: {topic}")


def _listed(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    parser.required(options, "application-id")
    given = [name for name in SCENARIOS if _is_given(options, name)]
    if len(given) > 1:
        parser.error(f'Option "[{given[0]}]" can\'t be used with option "[{given[1]}]"')
    if options.config_file and options.command_config:
        parser.error('Option "[config-file]" can\'t be used with option "[command-config]"')
    warn_deprecated(options, {"config-file": "command-config"})
    if options.intermediate_topics:
        print(
            "WARN: `--intermediate-topics` is deprecated and will be removed in a future release",
            file=sys.stderr,
        )


def _is_given(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name.replace("-", "_"))
    return value is not None and value is not False


def _names(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-streams-application-reset",
        "This tool helps to quickly reset an application in order to reprocess its data from "
        "scratch.\n* It sets the offsets of input topics to the earliest or another position.\n"
        "* It deletes the topics that the application made for itself: those that begin with "
        '"<application.id>-" and end as such topics do.\n* It does not touch output topics, nor '
        "the local state of instances.\nIt cannot be undone: run it with --dry-run first.",
    )
    parser.missing = "Missing required option(s) [{}]"
    parser.told_when_bare = ""
    add_bootstrap(parser)
    add_command_config(parser)
    flag, option = parser.flag, parser.add_argument
    option("--application-id", metavar="id", help="REQUIRED: The application.id.")
    option(
        "--input-topics",
        type=_names,
        action="extend",
        default=[],
        metavar="list",
        help="Comma-separated input topics, to be read again from the earliest offset, or from "
        "where another option says: --input-topics foo --shift-by 5",
    )
    option(
        "--intermediate-topics",
        type=_names,
        action="extend",
        default=[],
        metavar="list",
        help="(DEPRECATED) Comma-separated topics that the application writes and reads, to be "
        "skipped to their end.",
    )
    option(
        "--internal-topics",
        type=_names,
        action="extend",
        default=[],
        metavar="list",
        help="Comma-separated internal topics to delete, of those that --dry-run shows.",
    )
    option("--to-offset", type=int, metavar="offset", help="Reset offsets to a specific offset.")
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
    flag("to-earliest", "Reset offsets to earliest offset.")
    flag("to-latest", "Reset offsets to latest offset.")
    option("--from-file", metavar="file", help="Reset offsets to values defined in CSV file.")
    option(
        "--shift-by",
        type=int,
        metavar="number-of-offsets",
        help="Reset offsets shifting current offset by 'n', where 'n' can be positive or negative",
    )
    flag("force", "Remove members that are still in the group; stop the application first.")
    flag("dry-run", "Display the actions without executing them.")
    option("--config-file", metavar="file", help="(DEPRECATED) Use --command-config instead.")
    return parser
