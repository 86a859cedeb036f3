"""One partition of `__consumer_offsets` as a machine: all its groups and all their offsets.

A shard is the state of one partition at one leader epoch. It is driven from one thread: a request
or a timer comes in, records go to the journal, answers go out. A request that must wait gets a
ticket, and its answer follows under that ticket (`take_answers`). What the log does not hold (who
waits, sessions, half a rebalance) is lost when the shard is thrown away, and everything else is
found again by replaying the log: `replay` for each record, then `start`.

Rules that every kind of group keeps:

- *Write, then believe.* Decide first, `shard.write` the records, change state after. A write that
  fails raises the error for the client, and state is as it was.
- *Answers may wait.* The coordinator holds every answer back until the high watermark has passed
  all that this shard wrote before it, so nothing here needs to know about replication.
- *No time of its own.* `around.clock` and `timers` are the only clocks; timers are named
  `(group_id, what, ...)` so that a group's timers can be dropped together.

Kinds of groups share one name space: `groups[group_id]` is of kind "classic" (classic/group.py),
"consumer" (KIP-848, consumer/group.py) or later "share". A kind brings

- an implementation of `Group` (group.py), which also answers the four classic requests;
- a `Family`: the record types it stores, and `replay` of such a record. Register it in the
  `families` given to the shard; each is called once per shard to make the kind's own room;
- its own verbs. The consumer kind's are called as `shard.family(ConsumerGroups).heartbeat(...)`,
  with the class of its family: they look into `shard.groups`, write with `shard.write`, and put
  new groups in with `shard.place`.

Conversion is replacement: `shard.place(group)` puts another object under the same group id. Up
(classic to consumer): read `members`, `generation`, `protocol_type` of the ClassicGroup; write its
`tombstones()` and the new kind's records in one batch; `place` the new group, which calls
`stop(REBALANCE_IN_PROGRESS)` on the old one so that its waiting members rejoin. Down (consumer
to classic): make a `ClassicGroup(..., members=[ClassicMember(...)])`, which is stable from the
start; write the old kind's tombstones and its `record()` in one batch; `place` it and call its
`start()`, which sets its timers; `rebalance(reason)` makes its members join anew.
Offsets are by group id and are not touched by a conversion.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeVar

from penstock.coordination.answers import LateAnswer
from penstock.coordination.machine import NO_PRODUCER, KeyValue
from penstock.coordination.timers import Timers
from penstock.errors import (
    ErrorCode,
    GroupIdNotFound,
    InvalidGroupId,
    InvalidSessionTimeout,
    ProtocolError,
    UnknownMemberId,
)
from penstock.groups.classic.group import ClassicGroup
from penstock.groups.classic.members import refused_join, refused_sync
from penstock.groups.group import CLASSIC, Group, JoinAnswer, SyncAnswer
from penstock.groups.offsets.commits import OffsetCommits
from penstock.groups.offsets.table import GroupOffsets
from penstock.groups.record_formats import (
    GROUP_TYPE,
    OFFSET_TYPES,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
    record_type,
)
from penstock.groups.surroundings import Caller, GroupSurroundings
from penstock.protocol.messages.describe_groups import DescribedGroup
from penstock.protocol.messages.group_records import GroupMetadataValue
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest
from penstock.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from penstock.protocol.messages.list_groups import ListedGroup
from penstock.protocol.messages.sync_group import SyncGroupRequest
from penstock.protocol.primitives import MalformedMessage


class Family(Protocol):
    """A kind of group within one shard: what it stores, and how that is read back."""

    @property
    def kind(self) -> str: ...

    @property
    def record_types(self) -> frozenset[int]:
        """The types of records, the first two bytes of their keys, that only this kind writes."""
        ...

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        """Take in a record of the log; raises MalformedMessage for what cannot be read."""
        ...


F = TypeVar("F", bound=Family)


class GroupShard:
    """All groups of one partition, while this broker leads it."""

    def __init__(
        self, around: GroupSurroundings, families: Iterable[Callable[["GroupShard"], Family]] = ()
    ) -> None:
        self.around = around
        self.timers = Timers(around.clock.elapsed_ms)
        self.groups: dict[str, Group] = {}
        self.offsets = GroupOffsets()
        self.commits = OffsetCommits(self)
        self._families = tuple(make(self) for make in families)
        self._family_of_type = {
            number: family for family in self._families for number in family.record_types
        }
        self._stored: dict[str, GroupMetadataValue] = {}  # Classic groups, while loading.
        self._skipped_types: set[int] = set()

    def family(self, kind: type[F]) -> F:
        """The room of a kind of group, asked for by its class."""
        return next(family for family in self._families if isinstance(family, kind))

    def group(self, group_id: str) -> Group:
        found = self.groups.get(group_id)
        if found is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return found

    def place(self, group: Group) -> None:
        """Put a group in, in place of any other kind of group of that id."""
        replaced = self.groups.get(group.group_id)
        if replaced is group:
            return
        if replaced is not None:
            replaced.stop(ErrorCode.REBALANCE_IN_PROGRESS)
        self.groups[group.group_id] = group

    def write(
        self,
        records: Sequence[KeyValue],
        *,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_PRODUCER,
    ) -> int:
        """Bring records into the log, all or none; the offset of the first."""
        return self.around.journal.write(
            records, producer_id=producer_id, producer_epoch=producer_epoch
        )

    # The classic protocol

    def join_group(self, request: JoinGroupRequest, caller: Caller) -> JoinAnswer:
        try:
            group = self._group_to_join(request)
        except ProtocolError as error:
            return refused_join(request.member_id, error.code)
        answer = group.join(request, caller)
        if request.group_id not in self.groups and not group.is_empty:
            self.groups[request.group_id] = group
        return answer

    def _group_to_join(self, request: JoinGroupRequest) -> Group:
        _check_group_id(request.group_id)
        config = self.around.config()
        shortest_ms = config.group_min_session_timeout_ms
        longest_ms = config.group_max_session_timeout_ms
        if not shortest_ms <= request.session_timeout_ms <= longest_ms:
            raise InvalidSessionTimeout(
                f"a session of {request.session_timeout_ms} ms is not within "
                f"group.min.session.timeout.ms={shortest_ms} and "
                f"group.max.session.timeout.ms={longest_ms}"
            )
        group = self.groups.get(request.group_id)
        if group is not None:
            return group
        if request.member_id:
            raise UnknownMemberId(f"group {request.group_id} is not known")
        return ClassicGroup(request.group_id, self.around, self.timers)

    def sync_group(self, request: SyncGroupRequest, caller: Caller) -> SyncAnswer:
        try:
            group = self._group_of_member(request.group_id)
        except ProtocolError as error:
            return refused_sync(error.code)
        return group.sync(request, caller)

    def heartbeat(self, request: HeartbeatRequest) -> None:
        self._group_of_member(request.group_id).heartbeat(request)

    def leave_group(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        _check_group_id(request.group_id)
        group = self.groups.get(request.group_id)
        return _nobody_left(request) if group is None else group.leave(request)

    def _group_of_member(self, group_id: str) -> Group:
        _check_group_id(group_id)
        group = self.groups.get(group_id)
        if group is None:
            raise UnknownMemberId(f"group {group_id} is not known")
        return group

    # Groups as a whole

    def listed(self, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
        """The groups in one of these states and of one of these types, if any are named."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {name.lower() for name in types}
        return [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.kind,
            )
            for group in self.groups.values()
            if (not wanted_states or group.state.lower() in wanted_states)
            and (not wanted_types or group.kind in wanted_types)
        ]

    def described(self, group_id: str) -> DescribedGroup:
        """A classic group with its members."""
        group = self.group(group_id)
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a {CLASSIC} group.")
        return group.described()

    def delete_group(self, group_id: str) -> None:
        """Forget an empty group and all its offsets."""
        group = self.group(group_id)
        group.check_delete()
        self.commits.delete_all(group_id)
        self._drop(group)

    def expire(self, group_id: str) -> int:
        """Forget old offsets, and the group with the last of them; how many offsets went."""
        expired_count = self.commits.expire(group_id)
        group = self.groups.get(group_id)
        if (
            group is not None
            and group.is_empty
            and not self.offsets.of_group(group_id)
            and not self.offsets.has_pending(group_id)
        ):
            self._drop(group)
        return expired_count

    def _drop(self, group: Group) -> None:
        self.write(group.tombstones())
        del self.groups[group.group_id]
        group.stop(ErrorCode.GROUP_ID_NOT_FOUND)

    # Loading and leaving

    def replay(
        self, key: bytes | None, value: bytes | None, record_offset: int, producer_id: int
    ) -> None:
        """Take in one record of the log; what cannot be read is reported and left out."""
        if key is None:
            self.around.report("A record without a key is left out")
            return
        try:
            self._replay(record_type(key), key, value, record_offset, producer_id)
        except MalformedMessage as error:
            self.around.report(f"The record at offset {record_offset} is left out: {error}")

    def _replay(
        self, number: int, key: bytes, value: bytes | None, record_offset: int, producer_id: int
    ) -> None:
        if number in OFFSET_TYPES:
            self._replay_offset(key, value, record_offset, producer_id)
        elif number == GROUP_TYPE:
            self._replay_group(read_group_key(key), value)
        elif number in self._family_of_type:
            self._family_of_type[number].replay(number, key, value)
        elif number not in self._skipped_types:
            self._skipped_types.add(number)
            self.around.report(f"Records of the unknown type {number} are left out")

    def _replay_offset(
        self, key: bytes, value: bytes | None, record_offset: int, producer_id: int
    ) -> None:
        group_id, topic, partition = read_offset_key(key)
        if value is None:
            self.offsets.remove(group_id, topic, partition)
            return
        committed = read_offset_value(value, record_offset)
        if producer_id == NO_PRODUCER:
            self.offsets.put(group_id, topic, partition, committed)
        else:
            self.offsets.put_pending(producer_id, group_id, topic, partition, committed)

    def _replay_group(self, group_id: str, value: bytes | None) -> None:
        if value is None:
            self._stored.pop(group_id, None)
        else:
            self._stored[group_id] = read_group_value(value)

    def start(self) -> None:
        """All of the log was replayed: bring the groups to life."""
        for group_id, value in self._stored.items():
            if group_id in self.groups:
                self.around.report(f"Group {group_id} is stored twice; the classic one is left out")
            else:
                self.place(ClassicGroup.of_record(group_id, value, self.around, self.timers))
        self._stored.clear()
        for group_id in tuple(self.offsets.groups()):
            if group_id not in self.groups:
                self.place(ClassicGroup(group_id, self.around, self.timers))
        for group in tuple(self.groups.values()):
            group.start()

    def stop(self, error: ErrorCode) -> None:
        """This broker leads the partition no more: whoever waits is told so."""
        for group in self.groups.values():
            group.stop(error)
        self.groups.clear()

    def take_marker(self, producer_id: int, *, is_committed: bool, marker_offset: int) -> None:
        """A transaction has ended, and with it is decided whether its offsets count."""
        self.commits.complete_transaction(
            producer_id, is_committed=is_committed, marker_offset=marker_offset
        )

    def take_answers(self) -> Sequence[LateAnswer]:
        return self.around.answers.take()

    def content(self) -> str:
        return f"{len(self.groups)} groups and {len(self.offsets)} offsets"

    # Time

    def next_timer_ms(self) -> int | None:
        return self.timers.next_ms()

    def ring(self) -> None:
        self.timers.run_due()


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise InvalidGroupId("a group needs a name")


def _nobody_left(request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Of a group that is not there nobody is a member."""
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=int(ErrorCode.UNKNOWN_MEMBER_ID),
            )
            for identity in request.members
        ]
    )
