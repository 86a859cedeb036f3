"""Who may speak for a member of a consumer group, and in which epoch.

The refusals carry Apache Kafka's codes and sentences, since clients show them to people.
"""

from collections.abc import Collection
from dataclasses import replace

from penstock.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupMaxSizeReached,
    InvalidRequest,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    ConsumerMember,
)
from penstock.groups.consumer.reconcile import Owned
from penstock.groups.consumer.state import GroupState
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_OWN_MEMBER_ID_FROM = 1  # From this version on, members make up their ids themselves (KIP-1082).


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]
) -> None:
    """Refuse what no member of any group could send."""
    epoch = request.member_epoch
    if version >= _OWN_MEMBER_ID_FROM or epoch > JOINING or epoch == LEAVING:
        _check_text(request.member_id, "MemberId")
    _check_text(request.group_id, "GroupId")
    _check_text(request.instance_id, "InstanceId")
    _check_text(request.rack_id, "RackId")
    if epoch == JOINING:
        _check_joining(request)
    elif epoch == LEAVING_FOR_A_WHILE and request.instance_id is None:
        raise InvalidRequest("InstanceId can't be null.")
    elif epoch < LEAVING_FOR_A_WHILE:
        raise InvalidRequest("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}."
        )


def _check_text(value: str | None, name: str) -> None:
    if value is not None and not value.strip():
        raise InvalidRequest(f"{name} can't be empty.")


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise InvalidRequest(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )


def check_size(state: GroupState, member_id: str, size_max: int) -> None:
    if len(state.members) >= size_max and member_id not in state.members:
        raise GroupMaxSizeReached(
            f"The consumer group has reached its maximum capacity of {size_max} members."
        )


def dynamic_member(state: GroupState, member_id: str) -> ConsumerMember:
    found = state.members.get(member_id)
    if found is None:
        raise UnknownMemberId(f"Member {member_id} is not a member of group {state.group_id}.")
    return found


def static_member(state: GroupState, member_id: str, instance_id: str) -> ConsumerMember:
    """The one that is both; an instance id names only its latest owner."""
    found = state.static_member(instance_id)
    if found is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
    if found.member_id != member_id:
        raise FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{found.member_id}."
        )
    return found


def known_member(state: GroupState, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        return dynamic_member(state, member_id)
    return static_member(state, member_id, instance_id)


def joining_member(
    draft: Draft, member_id: str, instance_id: str | None, *, is_classic: bool
) -> ConsumerMember:
    """The member that joins: a new one, one that was here, or a static one that is back."""
    state = draft.state
    before = state.static_member(instance_id)
    if before is None or instance_id is None:
        return state.members.get(member_id) or ConsumerMember(member_id=member_id)
    if not is_classic and before.classic is None and before.epoch != LEAVING_FOR_A_WHILE:
        raise UnreleasedInstanceId(
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {before.member_id} member."
        )
    after = replace(before, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
    draft.replace_member(before, after)
    return after


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """Refuse a member that is not where the group believes it to be."""
    if epoch in (JOINING, member.epoch):
        return
    if epoch > member.epoch:
        raise _fenced("greater", epoch, member)
    # Our last answer may have been lost: then it knows the epoch before, and owns nothing that
    # it was not given in this one.
    if epoch != member.previous_epoch or owned is None or not _is_within(owned, member):
        raise _fenced("smaller", epoch, member)


def _is_within(owned: Owned, member: ConsumerMember) -> bool:
    return all(numbers <= member.assigned.get(t, {}).keys() for t, numbers in owned.items())


def _fenced(how: str, epoch: int, member: ConsumerMember) -> FencedMemberEpoch:
    return FencedMemberEpoch(
        f"The consumer group member has a {how} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin."
    )
