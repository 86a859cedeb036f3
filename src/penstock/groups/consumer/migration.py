"""From the classic protocol to the new one and back, while the group runs.

Up: the first member of the new protocol turns a classic group into a consumer group. All who are
in it stay, with what they own. Down: when the last member of the new protocol is gone, those that
are left go on as a classic group. Either way all records are written in one batch, so that a
reader of the log finds one kind of group or the other. `group.consumer.migration.policy` says
which way is open.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from penstock.errors import GroupIdNotFound, UnknownMemberId
from penstock.groups.classic.group import ClassicGroup
from penstock.groups.classic.members import ClassicMember, ClassicMembers
from penstock.groups.classic.subscriptions import CONSUMER_PROTOCOL
from penstock.groups.consumer import records
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.embedded import (
    assigned_partitions,
    encode_assignment,
    owned_partitions,
    read_assignment,
    read_subscription,
)
from penstock.groups.consumer.member import ClassicSide, ConsumerMember, Partitions, holdings
from penstock.groups.consumer.state import GroupState
from penstock.groups.consumer.view import ClusterView
from penstock.groups.group import JoinAnswer
from penstock.groups.surroundings import Caller
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from penstock.protocol.messages.join_group import JoinGroupRequest
from penstock.protocol.primitives import MalformedMessage

if TYPE_CHECKING:
    from penstock.groups.consumer.group import ConsumerGroup

# Strategies whose own data is no loss: librdkafka leaves what members owned before in assignments.
_OWN_STRATEGIES: Final = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})


# Up


def upgrade(group: ClassicGroup, view: ClusterView) -> Draft:
    """The classic group as a consumer group, yet to be written; raises if that may not be."""
    draft = Draft(GroupState(group.group_id), view, records=group.tombstones())
    if not len(group.members):
        return draft
    _check_upgrade(group, view)
    try:
        found = [_member_of(group, member, view) for member in group.members]
    except MalformedMessage:
        reason = "the embedded consumer protocol is malformed"
        raise _cannot_upgrade(group, view, reason) from None
    _fill(draft, group.generation, found)
    return draft


def _fill(draft: Draft, epoch: int, found: Sequence[tuple[ConsumerMember, Partitions]]) -> None:
    """Members are where the last rebalance left them; whoever waits for another will join again."""
    group_id = draft.group_id
    draft.add(records.member(group_id, member) for member, _ in found)
    draft.begin_epoch(epoch)
    draft.add(records.target(group_id, member.member_id, target) for member, target in found)
    draft.add([records.target_epoch(group_id, epoch, 0)])
    draft.add(records.current(group_id, member) for member, _ in found)


def _check_upgrade(group: ClassicGroup, view: ClusterView) -> None:
    if not view.migration_policy().upgrade:
        raise _cannot_upgrade(group, view, "online upgrade is disabled")
    if group.protocol_type != CONSUMER_PROTOCOL:
        raise _cannot_upgrade(group, view, "the group does not use the consumer embedded protocol")
    if len(group.members) > view.config.group_consumer_max_size:
        raise _cannot_upgrade(group, view, "the group size exceeds the consumer group maximum size")


def _cannot_upgrade(group: ClassicGroup, view: ClusterView, reason: str) -> GroupIdNotFound:
    sentence = f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}."
    view.around.report(sentence)
    return GroupIdNotFound(sentence)


def _member_of(
    group: ClassicGroup, classic: ClassicMember, view: ClusterView
) -> tuple[ConsumerMember, Partitions]:
    assignment = read_assignment(classic.assignment)
    if assignment.user_data and group.strategy not in _OWN_STRATEGIES:
        raise _cannot_upgrade(
            group,
            view,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade",
        )
    subscription = read_subscription(
        classic.metadata_for(group.strategy) or classic.strategies[0].metadata
    )
    partitions = assigned_partitions(assignment, view)
    member = ConsumerMember(
        member_id=classic.member_id,
        epoch=group.generation,
        previous_epoch=group.generation,
        instance_id=classic.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=classic.rebalance_timeout_ms,
        client_id=classic.client_id,
        client_host=classic.client_host,
        topic_names=frozenset(subscription.topics),
        assigned=holdings(partitions, group.generation),
        classic=ClassicSide(classic.session_timeout_ms, classic.strategies),
    )
    return member, partitions


# Down


def may_downgrade(group: "ConsumerGroup", leaving: Sequence[ConsumerMember]) -> bool:
    """Whether only classic members are left, some at least, and the policy lets them be."""
    gone = {member.member_id for member in leaving}
    staying = [m for m in group.known.members.values() if m.member_id not in gone]
    return bool(staying) and _may_turn_classic(group, staying)


def may_downgrade_with(group: "ConsumerGroup", replaced: ConsumerMember) -> bool:
    """Whether a static member of the new protocol, coming back as a classic one, was the last."""
    others = [m for m in group.known.members.values() if m.member_id != replaced.member_id]
    size_max = group.view.config.group_max_size
    return _may_turn_classic(group, others) and len(group.known.members) <= size_max


def _may_turn_classic(group: "ConsumerGroup", members: Sequence[ConsumerMember]) -> bool:
    return (
        all(member.classic is not None for member in members)
        and group.view.migration_policy().downgrade
        and len(members) <= group.view.config.group_max_size
    )


def downgrade_without(
    group: "ConsumerGroup", leaving: Sequence[ConsumerMember], reason: str
) -> None:
    """Go on as a classic group without these members; the others share what they had."""
    gone = {member.member_id for member in leaving}
    staying = [m for m in group.known.members.values() if m.member_id not in gone]
    classic = _turn_classic(group, group.draft(), staying)
    classic.rebalance(f"the group was downgraded, because {reason}")


def downgrade_with(
    group: "ConsumerGroup",
    draft: Draft,
    before: ConsumerMember,
    after: ConsumerMember,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    """Go on as a classic group, in which a static member takes the place it had before."""
    is_new = draft.subscribe(before, after)
    epoch = draft.state.assignment_epoch
    if epoch == draft.state.group_epoch:
        owned = owned_partitions(subscription, group.view)
        draft.reconcile(after.member_id, owned, has_new_subscription=is_new)
    state = draft.state
    classic = _turn_classic(group, draft, list(state.members.values()))
    if state.phase != "Stable":
        # Else somebody would read what another has not given up.
        classic.rebalance("the group was downgraded before all had their partitions")
    return state.members[after.member_id]


def downgrade_empty(
    group: "ConsumerGroup", request: JoinGroupRequest, caller: Caller
) -> JoinAnswer:
    """Nobody is in the group: a classic member may have it as if it were new."""
    if request.member_id:
        raise UnknownMemberId(f"Member {request.member_id} is not a member of any group.")
    classic = ClassicGroup(group.group_id, group.view.around, group.shard.timers)
    group.shard.write([*group.tombstones(), classic.record()])
    group.shard.place(classic)
    return classic.join(request, caller)


def _turn_classic(
    group: "ConsumerGroup", draft: Draft, members: Sequence[ConsumerMember]
) -> ClassicGroup:
    """Write and place the classic group; what a member shall own is what it owns there."""
    state, view = draft.state, group.view
    classic_members = [_classic_member(member) for member in members]
    strategy = ClassicMembers(view.around.answers, classic_members).elected_strategy()
    for member in classic_members:
        target, metadata = state.target_of(member.member_id), member.metadata_for(strategy)
        member.assignment = encode_assignment(target, metadata, view)
    classic = ClassicGroup(
        group.group_id,
        view.around,
        group.shard.timers,
        generation=state.group_epoch,
        protocol_type=CONSUMER_PROTOCOL,
        strategy=strategy,
        members=classic_members,
    )
    tombstones = [records.encoded(*change) for change in state.tombstones()]
    group.shard.write([*draft.records, *tombstones, classic.record()])
    group.shard.place(classic)
    classic.start()
    view.around.report(
        f"[GroupId {group.group_id}] Converted the consumer group to a classic group."
    )
    return classic


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        strategies=member.classic.strategies,
    )
