"""Members of a consumer group that still speak the classic protocol.

They join, sync and beat as ever, but nobody of them leads: the assignment is the coordinator's, and
a rebalance is each member's own. A member that must give up partitions, or may have more, is told
by its heartbeat that a rebalance is in progress. It joins again, saying in its subscription what it
owns, and gets its assignment by syncing.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import (
    ErrorCode,
    IllegalGeneration,
    InconsistentGroupProtocol,
    ProtocolError,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownServerError,
)
from penstock.groups.classic.members import Strategy, refused_join, refused_sync
from penstock.groups.classic.subscriptions import CONSUMER_PROTOCOL
from penstock.groups.consumer import migration
from penstock.groups.consumer.admission import (
    check_size,
    joining_member,
    known_member,
    static_member,
)
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.embedded import (
    encode_assignment,
    owned_partitions,
    read_subscription,
)
from penstock.groups.consumer.member import ClassicSide, ConsumerMember, MemberState
from penstock.groups.consumer.state import GroupState
from penstock.groups.group import JoinAnswer
from penstock.groups.surroundings import Caller
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.protocol.primitives import MalformedMessage

if TYPE_CHECKING:
    from penstock.groups.consumer.group import ConsumerGroup

_ID_REQUIRED_FROM = 4  # JoinGroup: a member without an id is given one first (KIP-394).


# JoinGroup


def join(group: "ConsumerGroup", request: JoinGroupRequest, caller: Caller) -> JoinAnswer:
    try:
        if group.is_empty:
            return migration.downgrade_empty(group, request, caller)
        return _join(group, request, caller)
    except ProtocolError as error:
        return refused_join(request.member_id, error.code)


def _join(group: "ConsumerGroup", request: JoinGroupRequest, caller: Caller) -> JoinGroupResponse:
    if group.view.migration_policy().is_disabled:
        raise InconsistentGroupProtocol(
            f"Cannot join the consumer group {group.group_id} with the classic protocol because "
            "the group migration is disabled."
        )
    member_id = request.member_id or group.view.around.new_id()
    check_size(group.known, member_id, group.view.config.group_consumer_max_size)
    _check_strategies(group.known, request)
    is_static = request.group_instance_id is not None
    if not request.member_id and not is_static and caller.version >= _ID_REQUIRED_FROM:
        return refused_join(member_id, ErrorCode.MEMBER_ID_REQUIRED)
    subscription = _subscription(request)
    draft = group.draft()
    before = _member_to_join(draft, request, member_id, subscription)
    after = _joined(before, request, caller, subscription)
    replaced = group.known.static_member(request.group_instance_id)
    if replaced is not None and migration.may_downgrade_with(group, replaced):
        member = migration.downgrade_with(group, draft, before, after, subscription)
        return _response(member)
    owned = owned_partitions(subscription, group.view)
    member = draft.follow(before, after, owned)
    group.commit(draft)
    if replaced is not None and replaced.member_id != member.member_id:
        group.forget_timers(replaced.member_id)
    group.expect_sync(member)
    return _response(member)


def _response(member: ConsumerMember) -> JoinGroupResponse:
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=_strategies(member)[0].name,
    )


def _check_strategies(known: GroupState, request: JoinGroupRequest) -> None:
    """All classic members must have one strategy in common, in case the group turns classic."""
    offered = {protocol.name for protocol in request.protocols}
    for member in known.members.values():
        if member.classic is not None:
            offered &= {strategy.name for strategy in member.classic.strategies}
    if request.protocol_type != CONSUMER_PROTOCOL or not offered:
        raise InconsistentGroupProtocol(
            f"Member {request.member_id}'s protocols are not supported."
        )


def _member_to_join(
    draft: Draft,
    request: JoinGroupRequest,
    member_id: str,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    instance_id = request.group_instance_id
    if instance_id is not None and request.member_id:
        return static_member(draft.state, member_id, instance_id)
    if member_id not in draft.state.members and subscription.owned_partitions:
        # Its session ended unnoticed, and others have what it believes to own.
        raise UnknownMemberId(f"Member {member_id} is not a member of group {draft.group_id}.")
    return joining_member(draft, member_id, instance_id, is_classic=True)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except MalformedMessage as error:
        raise UnknownServerError(f"the subscription cannot be read: {error}") from error


def _joined(
    before: ConsumerMember,
    request: JoinGroupRequest,
    caller: Caller,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    """The member as it tells of itself; patterns are matched by classic members themselves."""
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        before,
        instance_id=request.group_instance_id or before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_timeout_ms=request.session_timeout_ms if timeout_ms < 0 else timeout_ms,
        client_id=caller.client_id,
        client_host=caller.client_host,
        topic_names=frozenset(subscription.topics),
        topic_pattern="",
        classic=ClassicSide(
            request.session_timeout_ms,
            tuple(Strategy(protocol.name, protocol.metadata) for protocol in request.protocols),
        ),
    )


# SyncGroup


def sync(group: "ConsumerGroup", request: SyncGroupRequest) -> SyncGroupResponse:
    """Nobody waits here: what a member shall own is known."""
    try:
        return _sync(group, request)
    except ProtocolError as error:
        return refused_sync(error.code)


def _sync(group: "ConsumerGroup", request: SyncGroupRequest) -> SyncGroupResponse:
    member = _current_member(
        group.known, request.member_id, request.group_instance_id, request.generation_id
    )
    strategy = _strategies(member)[0]
    for asked, held in (
        (request.protocol_type, CONSUMER_PROTOCOL),
        (request.protocol_name, strategy.name),
    ):
        if asked is not None and asked != held:
            raise InconsistentGroupProtocol(f"the group uses {held!r}, not {asked!r}")
    # One that gives up partitions has joined again already, and will once more by itself.
    if group.known.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED:
        _ask_to_rejoin(group, member)
    group.note_sync(member)
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_assignment(member.assigned, strategy.metadata, group.view),
    )


def _ask_to_rejoin(group: "ConsumerGroup", member: ConsumerMember) -> None:
    """Tell the member to join again, and give it its rebalance timeout to do so."""
    group.expect_join(member)
    raise RebalanceInProgress(
        f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} "
        "should rejoin to catch up."
    )


# Heartbeat


def heartbeat(group: "ConsumerGroup", request: HeartbeatRequest) -> None:
    member = _current_member(
        group.known, request.member_id, request.group_instance_id, request.generation_id
    )
    group.hear(member)
    has_more = member.state is MemberState.UNRELEASED and not group.known.waits_for_others(member)
    if (
        member.epoch < group.known.assignment_epoch
        or member.state is MemberState.UNREVOKED
        or has_more
    ):
        _ask_to_rejoin(group, member)


def _current_member(
    known: GroupState, member_id: str, instance_id: str | None, generation: int
) -> ConsumerMember:
    member = known_member(known, member_id, instance_id)
    if member.classic is None:
        raise UnknownMemberId(f"Member {member_id} does not use the classic protocol.")
    if generation != member.epoch:
        raise IllegalGeneration(
            f"The request generation id {generation} is not equal to the member epoch "
            f"{member.epoch} of member {member_id}."
        )
    return member


# LeaveGroup


def leave(group: "ConsumerGroup", request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Let all go that may, in one step."""
    results: list[MemberResponse] = []
    leaving: dict[str, ConsumerMember] = {}
    for identity in request.members:
        error = ErrorCode.NONE
        try:
            member = _leaving_member(group.known, identity)
            leaving[member.member_id] = member
        except ProtocolError as refused:
            error = refused.code
        results.append(
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=int(error),
            )
        )
    group.fence(list(leaving.values()), "it left by LeaveGroup")
    return LeaveGroupResponse(members=results)


def _leaving_member(known: GroupState, identity: MemberIdentity) -> ConsumerMember:
    """Operators name members by their instance ids alone."""
    instance_id = identity.group_instance_id
    if instance_id is None or identity.member_id:
        return known_member(known, identity.member_id, instance_id)
    found = known.static_member(instance_id)
    if found is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
    return found


def _strategies(member: ConsumerMember) -> tuple[Strategy, ...]:
    return () if member.classic is None else member.classic.strategies
