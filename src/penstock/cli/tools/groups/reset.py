"""How kafka-consumer-groups sets offsets: plan for every group, show it, commit it with --execute.

Only a group without members is touched: a member would go on from where it was and commit over it.
"""

import argparse
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.cli.offset_reset import (
    export_plan,
    parse_datetime,
    parse_duration,
    parse_plan,
    parse_topic,
    reset_table,
    within,
)
from penstock.cli.progress import Progress
from penstock.cli.sentences import sentence
from penstock.client.admin import Admin
from penstock.client.operations import group_reset
from penstock.client.operations.group_reset import OffsetBounds, OffsetLookupError
from penstock.client.operations.groups import GroupDescription
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.errors import CommandError, ProtocolError, UnknownTopicOrPartition

SCENARIOS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
NO_ACTION = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this "
    "command will require either --dry-run or --execute to be specified. You should add the "
    "--dry-run option explicitly if you are scripting this command and want to keep the current "
    "default behavior without prompting."
)


def reset(admin: Admin, options: argparse.Namespace, group_ids: Sequence[str]) -> int:
    """Print the new offsets of every group, and commit them if told to; 1 if one was refused."""
    from_file = _plan_of(options.from_file, group_ids) if options.from_file else None
    described = admin.describe_consumer_groups(group_ids)
    plan: dict[str, dict[TopicPartition, int]] = {}
    refused = 0
    with Progress("groups", len(described)) as progress:
        for group_id, group in sorted(described.items()):
            progress.step()
            why_not = why_untouched(group_id, group)
            if why_not is None and from_file is not None and group_id not in from_file:
                why_not = f"No reset plan for group {group_id} found."
            if why_not is not None:
                refused += 1
                print(f"\nError: {why_not}", file=sys.stderr, flush=True)
                continue
            wanted = None if from_file is None else from_file[group_id]
            plan[group_id] = new_offsets(admin, options, group_id, wanted)
            if options.execute:
                commits = {at: OffsetAndMetadata(to) for at, to in plan[group_id].items()}
                admin.alter_consumer_group_offsets(group_id, commits)
    if plan and options.export:
        print(export_plan(plan, with_group=len(group_ids) != 1))
    elif plan:
        print(reset_table(plan))
    return 1 if refused else 0


def why_untouched(group_id: str, group: GroupDescription | ProtocolError) -> str | None:
    """Why the offsets of a group may not be set; None when they may."""
    refusal = group_reset.why_untouched(group_id, group)
    return None if refusal is None else sentence(refusal)


def new_offsets(
    admin: Admin,
    options: argparse.Namespace,
    group_id: str,
    from_file: dict[TopicPartition, int] | None,
) -> dict[TopicPartition, int]:
    """The offsets of one group by the scenario that was chosen."""
    committed = {at: one.offset for at, one in admin.list_consumer_group_offsets(group_id).items()}
    if from_file is not None:
        _check_exist(admin, from_file)
        return within(from_file, ranges_of(admin, from_file), warn)
    partitions = _scope(admin, options, committed)
    _check_exist(admin, partitions)
    if options.to_offset is not None:
        wanted = dict.fromkeys(partitions, options.to_offset)
        return within(wanted, ranges_of(admin, partitions), warn)
    if options.shift_by is not None:
        wanted = {at: _committed(committed, at) + options.shift_by for at in partitions}
        return within(wanted, ranges_of(admin, partitions), warn)
    if options.to_datetime is not None:
        return offsets_at(admin, partitions, parse_datetime(options.to_datetime))
    if options.by_duration is not None:
        at_ms = int(time.time() * 1000) - parse_duration(options.by_duration)
        return offsets_at(admin, partitions, at_ms)
    if options.to_current:
        new = [at for at in partitions if at not in committed]
        known = {at: committed[at] for at in partitions if at in committed}
        return dict(sorted({**known, **ends_of(admin, new)}.items()))
    spec = OffsetSpec.EARLIEST if options.to_earliest else OffsetSpec.LATEST
    return ends_of(admin, partitions, spec)


def ends_of(
    admin: Admin, partitions: Collection[TopicPartition], spec: int = OffsetSpec.LATEST
) -> dict[TopicPartition, int]:
    """The first or last offset of every partition, or another the protocol has a word for."""
    with _explain_lookup_errors():
        return group_reset.ends_of(admin.cluster, partitions, spec, timeout_ms=admin.api_timeout_ms)


def ranges_of(
    admin: Admin, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, OffsetBounds]:
    """From where to where the partitions reach."""
    with _explain_lookup_errors():
        return group_reset.ranges_of(admin.cluster, partitions, timeout_ms=admin.api_timeout_ms)


def offsets_at(
    admin: Admin, partitions: Collection[TopicPartition], at_ms: int
) -> dict[TopicPartition, int]:
    """The first record at or after a time; the end where there is none, which is told."""
    with _explain_lookup_errors():
        new = group_reset.offsets_at(
            admin.cluster, partitions, at_ms, timeout_ms=admin.api_timeout_ms
        )
    for at in new.too_late:
        print(
            f"\nWarn: Partition {at.partition} from topic {at.topic} is empty. "
            "Falling back to latest known offset.",
            flush=True,
        )
    return new.offsets


@contextmanager
def _explain_lookup_errors() -> Iterator[None]:
    """What a leader said of an offset, in words instead of a code's name."""
    try:
        yield
    except OffsetLookupError as error:
        why = "." if error.reason is None else f": {sentence(error.reason)}"
        text = f"Error getting offset of topic partition {error.partition}{why}"
        raise CommandError(text) from error


def warn(text: str) -> None:
    """Say on stderr what was changed in passing."""
    print(f"WARN {text}", file=sys.stderr, flush=True)


def _plan_of(file: str, group_ids: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    try:
        text = Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"Cannot read the reset plan {file}: {error}.") from error
    return parse_plan(text, group_ids)


def _scope(
    admin: Admin, options: argparse.Namespace, committed: Collection[TopicPartition]
) -> list[TopicPartition]:
    if options.all_topics:
        return sorted(committed)
    return partitions_named(admin, options.topic)


def partitions_named(admin: Admin, words: Sequence[str]) -> list[TopicPartition]:
    """The partitions that `--topic` options name; a bare topic stands for all it has."""
    named = [parse_topic(word) for word in words]
    whole = [topic for topic, numbers in named if numbers is None]
    found = [TopicPartition(t, n) for t, numbers in named for n in numbers or ()]
    for topic in admin.describe_topics(whole).values():
        found += [TopicPartition(topic.name, part.partition) for part in topic.partitions]
    return sorted(set(found))


def _check_exist(admin: Admin, partitions: Collection[TopicPartition]) -> None:
    topics = sorted({at.topic for at in partitions})
    known = {
        TopicPartition(topic.name, part.partition)
        for topic in admin.describe_topics(topics).values()
        for part in topic.partitions
    }
    missing = ",".join(str(at) for at in sorted(partitions) if at not in known)
    if missing:
        raise UnknownTopicOrPartition(f'The partitions "{missing}" do not exist')


def _committed(committed: dict[TopicPartition, int], at: TopicPartition) -> int:
    if at not in committed:
        raise CommandError(
            f"Cannot shift offset for partition {at} since there is no current committed offset"
        )
    return committed[at]
