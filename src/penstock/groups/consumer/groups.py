"""All consumer groups of a shard: their members' heartbeats, and their records in the log.

One request does everything in this protocol: join, say what one owns, learn what one shall own,
leave. What it does to the group is worked out on a draft (draft.py), written, and
only then true.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import GroupIdNotFound
from penstock.groups.classic.group import ClassicGroup
from penstock.groups.consumer import records
from penstock.groups.consumer.admission import (
    check_epoch,
    check_heartbeat,
    check_size,
    joining_member,
    known_member,
)
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.group import ConsumerGroup
from penstock.groups.consumer.member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    ConsumerMember,
    Holdings,
    holdings,
    without_epochs,
)
from penstock.groups.consumer.migration import upgrade
from penstock.groups.consumer.reconcile import Owned
from penstock.groups.consumer.view import ClusterView
from penstock.groups.group import CONSUMER
from penstock.groups.surroundings import Caller
from penstock.protocol.messages import consumer_group_describe as describe
from penstock.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.protocol.stored import group_record_classes

if TYPE_CHECKING:
    from penstock.groups.shard import GroupShard

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1  # Types of members, as ConsumerGroupDescribe spells them.


class ConsumerGroups:
    """The room of consumer groups in a shard."""

    kind = CONSUMER
    record_types = records.RECORD_TYPES

    def __init__(self, shard: "GroupShard") -> None:
        self._shard = shard
        self._view = ClusterView(shard.around)

    # ConsumerGroupHeartbeat

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> ConsumerGroupHeartbeatResponse:
        check_heartbeat(request, caller.version, self._view.assignors())
        if request.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE):
            return self._leave(request)
        group, draft = self._group_of(request)
        draft.visible = caller.visible
        check_size(draft.state, request.member_id, self._view.config.group_consumer_max_size)
        owned = _owned(request)
        before = self._member_of(request, draft, owned)
        after = draft.follow(before, _told(before, request, caller), owned)
        self._commit(group, draft)
        self._set_timers(group, request, before, after)
        return self._answer(request, before, after)

    def _group_of(self, request: ConsumerGroupHeartbeatRequest) -> tuple[ConsumerGroup, Draft]:
        """The group with a draft of it; whoever joins may be the first of it."""
        group_id = request.group_id
        found = self._shard.groups.get(group_id)
        if isinstance(found, ConsumerGroup):
            return found, found.draft()
        if request.member_epoch != JOINING:
            what = "not found" if found is None else "not a consumer group"
            raise GroupIdNotFound(f"Group {group_id} is {what}.")
        group = ConsumerGroup(group_id, self._shard, self._view)
        if isinstance(found, ClassicGroup):
            return group, upgrade(found, self._view)
        if found is not None:
            raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")
        return group, group.draft()

    def _member_of(
        self, request: ConsumerGroupHeartbeatRequest, draft: Draft, owned: Owned | None
    ) -> ConsumerMember:
        if request.member_epoch == JOINING:
            member_id = request.member_id or self._view.around.new_id()
            return joining_member(draft, member_id, request.instance_id, is_classic=False)
        member = known_member(draft.state, request.member_id, request.instance_id)
        check_epoch(member, request.member_epoch, owned)
        return member

    def _commit(self, group: ConsumerGroup, draft: Draft) -> None:
        is_upgrade = isinstance(self._shard.groups.get(group.group_id), ClassicGroup)
        group.commit(draft)
        if is_upgrade:
            group.start()
            self._view.around.report(
                f"[GroupId {group.group_id}] Converted the classic group to a consumer group."
            )

    def _set_timers(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        before: ConsumerMember,
        after: ConsumerMember,
    ) -> None:
        if request.member_epoch == JOINING:
            group.forget_timers(after.member_id)  # It may have been a classic member until now.
        group.hear(after)
        if after != before:
            group.watch_revocation(after)

    def _answer(
        self, request: ConsumerGroupHeartbeatRequest, before: ConsumerMember, after: ConsumerMember
    ) -> ConsumerGroupHeartbeatResponse:
        """The assignment is told when it changed, or when the member seems to have lost it."""
        is_full_request = (
            request.rebalance_timeout_ms != -1
            and (request.subscribed_topic_names, request.subscribed_topic_regex) != (None, None)
            and request.topic_partitions is not None
        )
        must_tell = request.member_epoch == JOINING or is_full_request
        return ConsumerGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self._view.settings(request.group_id).heartbeat_interval_ms,
            assignment=(
                _assignment(after.assigned)
                if must_tell or before.assigned != after.assigned
                else None
            ),
        )

    # Leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        group = self.group(request.group_id)
        member = known_member(group.known, request.member_id, request.instance_id)
        if request.member_epoch == LEAVING_FOR_A_WHILE and request.instance_id is not None:
            self._let_go(group, member)
        else:
            group.fence([member], "it left")
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )

    def _let_go(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """A static member will be back: until its session ends, all it has is kept for it."""
        draft = group.draft()
        away = replace(
            member,
            epoch=LEAVING_FOR_A_WHILE,
            assigned=holdings(without_epochs(member.assigned), 0),
            revoking={},
        )
        draft.add([records.current(group.group_id, away)])
        group.commit(draft)
        group.forget_revocation(away)

    # Asking

    def group(self, group_id: str) -> ConsumerGroup:
        found = self._shard.group(group_id)
        if not isinstance(found, ConsumerGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")
        return found

    def described(self, group_id: str) -> describe.DescribedGroup:
        state = self.group(group_id).known
        assignor = state.preferred_assignor() or next(iter(self._view.assignors()))
        return describe.DescribedGroup(
            group_id=group_id,
            group_state=state.phase,
            group_epoch=state.group_epoch,
            assignment_epoch=state.assignment_epoch,
            assignor_name=assignor,
            members=[
                self._described_member(member, state.target_of(member.member_id))
                for member in state.members.values()
            ],
        )

    def _described_member(
        self, member: ConsumerMember, target: Mapping[bytes, Iterable[int]]
    ) -> describe.Member:
        """What it has includes what it has yet to give up."""
        held = {
            topic_id: {*member.assigned.get(topic_id, ()), *member.revoking.get(topic_id, ())}
            for topic_id in {**member.assigned, **member.revoking}
        }
        return describe.Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
            subscribed_topic_regex=member.topic_pattern,
            assignment=self._described_partitions(held),
            target_assignment=self._described_partitions(target),
            member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
        )

    def _described_partitions(
        self, partitions: Mapping[bytes, Iterable[int]]
    ) -> describe.Assignment:
        named = [(self._view.topic_name(topic_id), topic_id) for topic_id in partitions]
        return describe.Assignment(
            topic_partitions=[
                describe.TopicPartitions(
                    topic_id=topic_id, topic_name=name, partitions=sorted(partitions[topic_id])
                )
                for name, topic_id in sorted((n, t) for n, t in named if n is not None)
            ]
        )

    # Loading

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        """Take in a record of the log; raises MalformedMessage for what cannot be read."""
        classes = group_record_classes(record_type)
        assert classes is not None, "the shard hands over only what is in record_types"
        read_key = classes[0].from_bytes(key)
        read_value = None if value is None else classes[1].from_bytes(value)
        group_id: str = getattr(read_key, "group_id")  # noqa: B009 - every one of them has it
        group = self._shard.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if read_value is None:
                return  # It tells of the end of what was never seen.
            group = ConsumerGroup(group_id, self._shard, self._view)
            self._shard.place(group)
        group.known.apply(read_key, read_value)
        if group.known.is_deleted:
            del self._shard.groups[group_id]


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: set(topic.partitions) for topic in request.topic_partitions}


def _told(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> ConsumerMember:
    """The member as it tells of itself now; what it leaves out is as before."""
    names = request.subscribed_topic_names
    pattern = request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        client_id=caller.client_id,
        client_host=caller.client_host,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_pattern=member.topic_pattern if pattern is None else pattern,
        assignor=request.server_assignor or member.assignor,
        classic=None,
    )


def _assignment(assigned: Holdings) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
            for topic_id, numbers in sorted(assigned.items())
        ]
    )
