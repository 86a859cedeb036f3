"""How kafka-consumer-groups describes groups: offsets with lag, members, states.

Collecting asks the cluster; the tables are pure, and have Kafka's columns and widths.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.cli.progress import Progress
from penstock.cli.sentences import sentence
from penstock.client.admin import Admin
from penstock.client.operations.groups import GroupDescription, MemberDescription
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.values import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from penstock.errors import GroupIdNotFound, ProtocolError

MISSING = "-"
_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRow:
    """One partition of a group; None is printed as a dash."""

    group: str
    topic: str
    partition: int
    current: int | None
    end: int | None
    leader_epoch: int | None = None
    consumer_id: str = MISSING
    host: str = MISSING
    client_id: str = MISSING

    @property
    def lag(self) -> int | None:
        """How many records the group has not read yet."""
        return None if self.current is None or self.end is None else self.end - self.current


def describe(admin: Admin, options: argparse.Namespace, group_ids: Sequence[str]) -> int:
    """Print what was asked of each group; 1 if one of them does not exist."""
    code = 0
    described = admin.describe_consumer_groups(group_ids)
    with Progress("groups", len(described)) as progress:
        for group_id, group in sorted(described.items()):
            progress.step()
            if isinstance(group, ProtocolError) or group.state == "Dead":
                code = 1
                _tell(f"\nError: {_what_is_wrong(group_id, group)}")
                continue
            text = _described(admin, options, group)
            note = note_on(group)
            if note:
                _tell(f"\n{note}")
            if text:
                print(text, flush=True)
    return code


def note_on(group: GroupDescription) -> str | None:
    """What Kafka's tool remarks on a group that is not simply at work."""
    if group.state == "Empty":
        return f"Consumer group '{group.group_id}' has no active members."
    if group.state in _REBALANCING:
        return f"Warning: Consumer group '{group.group_id}' is rebalancing."
    return None


def rows_of(
    group: GroupDescription,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int],
) -> list[OffsetRow]:
    """A row per partition: those of the busiest member first, those that nobody reads last."""
    rows: list[OffsetRow] = []
    busiest_first = sorted(group.members, key=lambda member: -len(member.assignment))
    for member in busiest_first:
        rows += [
            _row(group.group_id, at, committed, ends, member) for at in sorted(member.assignment)
        ]
    read = {at for member in group.members for at in member.assignment}
    unread = sorted(at for at in committed if at not in read)
    return rows + [_row(group.group_id, at, committed, ends, None) for at in unread]


def offsets_table(rows: Sequence[OffsetRow], *, verbose: bool) -> str:
    """Kafka's table of partitions and lag."""
    group = max([15, *(len(row.group) for row in rows)])
    topic = max([15, *(len(row.topic) for row in rows)])
    consumer = max([15, *(len(row.consumer_id) for row in rows)])
    host = max([15, *(len(row.host) for row in rows)])
    epoch = [15] if verbose else []
    widths = [group, topic, 10, *epoch, 15, 15, 15, consumer, host, 0]
    header = ["GROUP", "TOPIC", "PARTITION", *(["LEADER-EPOCH"] if verbose else [])]
    header += ["CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    table = [_columns(header, widths)]
    for row in rows:
        cells = [row.group, row.topic, row.partition, *([row.leader_epoch] if verbose else [])]
        cells += [row.current, row.end, row.lag, row.consumer_id, row.host, row.client_id]
        table.append(_columns(cells, widths))
    return "\n" + "\n".join(table)


def members_table(group: GroupDescription, *, verbose: bool) -> str:
    """Kafka's table of members, with their assignments if asked for."""
    members = group.members
    static = any(member.instance_id for member in members)
    kinds = {member.is_upgraded for member in members}
    migrating = {True, False} <= kinds
    widths = _member_widths(group, static=static, verbose=verbose, migrating=migrating)
    header = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else [])]
    header += ["HOST", "CLIENT-ID", "#PARTITIONS"]
    if verbose:
        header += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        header += ["UPGRADED"] if migrating else []
    table = [_columns(header, widths)]
    for member in members:
        cells: list[object] = [group.group_id, member.member_id]
        cells += [member.instance_id or ""] if static else []
        cells += [member.host, member.client_id, len(member.assignment)]
        if verbose:
            cells += [member.epoch, assignment_text(member.assignment)]
            cells += [group.target_epoch, assignment_text(member.target)]
            cells += [_yes_or_no(member.is_upgraded)] if migrating else []
        table.append(_columns(cells, widths))
    end = "" if verbose else " "  # Kafka's format leaves a space where the rest would follow.
    return "\n" + "\n".join(line + end for line in table)


def state_table(group: GroupDescription, *, verbose: bool) -> str:
    """Kafka's line on a group's state."""
    node = group.coordinator
    coordinator = f"{node.host}:{node.port}  ({node.id})"
    widths = [max(15, len(group.group_id)), max(25, len(coordinator)), 20, 20]
    header = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    cells: list[object] = [group.group_id, coordinator, group.assignor or MISSING, group.state]
    if verbose:
        widths += [15, 25]
        header += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells += [group.epoch, group.target_epoch]
    header.append("#MEMBERS")
    cells.append(len(group.members))
    widths.append(0)
    return f"\n{_columns(header, widths)}\n{_columns(cells, widths)}"


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """`orders:0,1;payments:2`, or a dash for none."""
    topics: dict[str, list[int]] = {}
    for at in sorted(partitions):
        topics.setdefault(at.topic, []).append(at.partition)
    texts = [f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in topics.items()]
    return ";".join(sorted(texts)) or MISSING


def log_ends(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The end of each partition that exists and has a leader; the others are left out."""
    wanted = set(partitions)
    if not wanted:
        return {}
    answer = admin.cluster.metadata(sorted({at.topic for at in wanted}))
    led = {
        TopicPartition(topic.name or "", part.partition_index)
        for topic in answer.topics
        if not topic.error_code
        for part in topic.partitions
        if part.leader_id >= 0
    }
    asked = dict.fromkeys(sorted(wanted & led), int(OffsetSpec.LATEST))
    found = admin.list_offsets(asked) if asked else {}
    return {at: one.offset for at, one in found.items() if isinstance(one, OffsetAndTimestamp)}


def _described(admin: Admin, options: argparse.Namespace, group: GroupDescription) -> str:
    if options.members:
        return members_table(group, verbose=options.verbose)
    if options.state is not None:
        return state_table(group, verbose=options.verbose)
    committed = admin.list_consumer_group_offsets(group.group_id)
    assigned = {at for member in group.members for at in member.assignment}
    rows = rows_of(group, committed, log_ends(admin, assigned | set(committed)))
    return offsets_table(rows, verbose=options.verbose) if rows else ""


def _row(
    group_id: str,
    at: TopicPartition,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int],
    member: MemberDescription | None,
) -> OffsetRow:
    stored = committed.get(at)
    return OffsetRow(
        group=group_id,
        topic=at.topic,
        partition=at.partition,
        current=None if stored is None else stored.offset,
        end=ends.get(at),
        leader_epoch=None if stored is None else stored.leader_epoch,
        consumer_id=MISSING if member is None else member.member_id,
        host=MISSING if member is None else member.host,
        client_id=MISSING if member is None else member.client_id,
    )


def _member_widths(
    group: GroupDescription, *, static: bool, verbose: bool, migrating: bool
) -> list[int]:
    members = group.members
    widths = [max(15, len(group.group_id)), max([15, *(len(m.member_id) for m in members)])]
    if static:
        widths.append(max([17, *(len(m.instance_id or "") for m in members)]))
    widths.append(max([15, *(len(m.host) for m in members)]))
    widths += [max([15, *(len(m.client_id) for m in members)]), 15]
    if verbose:
        widths += [15, max([20, *(len(assignment_text(m.assignment)) for m in members)])]
        widths += [15, max([20, *(len(assignment_text(m.target)) for m in members)])]
        widths += [0] if migrating else []
    return widths


def _columns(cells: Sequence[object], widths: Sequence[int]) -> str:
    shown = [MISSING if cell is None else str(cell) for cell in cells]
    return " ".join(f"{cell:<{width}}" for cell, width in zip(shown, widths, strict=True))


def _yes_or_no(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def _what_is_wrong(group_id: str, group: GroupDescription | ProtocolError) -> str:
    if isinstance(group, ProtocolError) and not isinstance(group, GroupIdNotFound):
        return sentence(group)
    return f"Consumer group '{group_id}' does not exist."


def _tell(text: str) -> None:
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)
