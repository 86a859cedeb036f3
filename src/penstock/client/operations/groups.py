"""Groups: list them, describe their members, delete them, remove members.

A consumer group is of the classic protocol or of the new one (KIP-848). Who describes it need not
know: the newer question is asked first, and the older one for those it does not know.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from penstock.client.operations.coordinators import (
    CoordinatorKind,
    ask_coordinator,
    ask_coordinators,
    ask_while_loading,
)
from penstock.client.values import Node, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import (
    GroupIdNotFound,
    InvalidGroupId,
    ProtocolError,
    UnsupportedVersion,
    error_for,
)
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    Member,
)
from penstock.protocol.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from penstock.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from penstock.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from penstock.protocol.primitives import MalformedMessage

CLASSIC, CONSUMER, SHARE, STREAMS = "Classic", "Consumer", "Share", "Streams"
TYPES = (CLASSIC, CONSUMER, SHARE, STREAMS)
STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
)
# What a group without members of its own says it is for: somebody only commits offsets to it.
_CONSUMER_PROTOCOLS = ("consumer", "")
_STATES_FROM = 4  # The version of ListGroups that filters.
_MEMBER_CLASSIC, _MEMBER_CONSUMER = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group as a list shows it."""

    group_id: str
    protocol: str  # What its members do: "consumer", "connect", or nothing.
    type: str | None  # None: the broker is too old to say.
    state: str | None

    @property
    def is_consumer_group(self) -> bool:
        """Whether consumers, of whichever protocol, are its members."""
        return self.type == CONSUMER or (
            self.type in (CLASSIC, None) and self.protocol in _CONSUMER_PROTOCOLS
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """A member of a group and what it reads."""

    member_id: str
    instance_id: str | None  # None: not a static member.
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] = ()  # What it shall read; only in the new protocol.
    epoch: int | None = None
    is_upgraded: bool | None = None  # In a group of the new protocol: whether it speaks that.


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group, its state and its members."""

    group_id: str
    type: str
    state: str
    coordinator: Node
    assignor: str
    members: tuple[MemberDescription, ...]
    epoch: int | None = None  # Only in the new protocol.
    target_epoch: int | None = None


def list_groups(
    cluster: ClusterClient, *, states: Collection[str] = (), types: Collection[str] = ()
) -> list[GroupListing]:
    """The groups of all brokers by name; of some states and types if any are given."""
    cluster.metadata([])
    listed = {g.group_id: g for node in cluster.nodes for g in _groups_of(cluster, node, states)}
    return [
        listed[group_id]
        for group_id in sorted(listed)
        if not types or listed[group_id].type in types
    ]


def describe_consumer_groups(
    cluster: ClusterClient, group_ids: Iterable[str]
) -> dict[str, GroupDescription | ProtocolError]:
    """Consumer groups of either protocol; GroupIdNotFound stands for one that does not exist."""
    return ask_coordinators(
        cluster,
        group_ids,
        CoordinatorKind.GROUP,
        lambda node, keys: _describe(cluster, node, keys),
    )


def delete_groups(
    cluster: ClusterClient, group_ids: Iterable[str]
) -> dict[str, ProtocolError | None]:
    """Forget groups and their offsets; what kept a group alive, or None when it is gone."""

    def ask(node: Node, keys: Sequence[str]) -> dict[str, ProtocolError | None]:
        request = DeleteGroupsRequest(groups_names=list(keys))
        answer = cluster.ask_node(node.id, request, DeleteGroupsResponse)
        return {
            result.group_id: error_for(result.error_code) if result.error_code else None
            for result in answer.results
        }

    return ask_coordinators(cluster, group_ids, CoordinatorKind.GROUP, ask)


def remove_members(
    cluster: ClusterClient, group_id: str, members: Sequence[MemberDescription], *, reason: str
) -> None:
    """Make members of a classic group leave; the first that cannot be removed is raised."""
    if not members:
        return

    def ask(node: Node) -> None:
        identities = [
            MemberIdentity(
                member_id="" if member.instance_id else member.member_id,
                group_instance_id=member.instance_id,
                reason=reason,
            )
            for member in members
        ]
        request = LeaveGroupRequest(group_id=group_id, members=identities)
        answer = cluster.ask_node(node.id, request, LeaveGroupResponse)
        codes = [answer.error_code, *(member.error_code for member in answer.members)]
        failed = next((code for code in codes if code), 0)
        if failed:
            raise error_for(failed)

    ask_coordinator(cluster, group_id, CoordinatorKind.GROUP, ask)


def _groups_of(
    cluster: ClusterClient, node_id: int, states: Collection[str]
) -> Iterable[GroupListing]:
    spoken = cluster.node_connection(node_id).versions(ApiKey.LIST_GROUPS)
    if states and spoken and spoken[-1] < _STATES_FROM:
        raise UnsupportedVersion(f"Broker {node_id} is too old to list groups by state.")
    request = ListGroupsRequest(states_filter=sorted(states))

    def attempt() -> ListGroupsResponse:
        answer = cluster.ask_node(node_id, request, ListGroupsResponse)
        if answer.error_code:
            raise error_for(answer.error_code)
        return answer

    return map(_listing, ask_while_loading(cluster, attempt).groups)


def _listing(group: ListedGroup) -> GroupListing:
    return GroupListing(
        group_id=group.group_id,
        protocol=group.protocol_type,
        type=_spelled(group.group_type, TYPES),
        state=_spelled(group.group_state, STATES),
    )


def _spelled(word: str, known: Sequence[str]) -> str | None:
    """The word as Kafka's tools print it; brokers differ in capitals."""
    if not word:
        return None
    return next((name for name in known if name.lower() == word.lower()), word)


def _describe(
    cluster: ClusterClient, node: Node, group_ids: Sequence[str]
) -> dict[str, GroupDescription | ProtocolError]:
    found: dict[str, GroupDescription | ProtocolError] = {}
    if cluster.node_connection(node.id).versions(ApiKey.CONSUMER_GROUP_DESCRIBE):
        request = ConsumerGroupDescribeRequest(group_ids=list(group_ids))
        answer = cluster.ask_node(node.id, request, ConsumerGroupDescribeResponse)
        found = {group.group_id: _consumer_group(group, node) for group in answer.groups}
    fall_back = (GroupIdNotFound, UnsupportedVersion)  # It is a classic group, or none at all.
    rest = [one for one in group_ids if isinstance(found.get(one, GroupIdNotFound()), fall_back)]
    if rest:
        older = cluster.ask_node(
            node.id, DescribeGroupsRequest(groups=rest), DescribeGroupsResponse
        )
        found.update({group.group_id: _classic_group(group, node) for group in older.groups})
    return found


def _consumer_group(group: DescribedConsumerGroup, node: Node) -> GroupDescription | ProtocolError:
    if group.error_code:
        return error_for(group.error_code, group.error_message or "")
    return GroupDescription(
        group_id=group.group_id,
        type=CONSUMER,
        state=_spelled(group.group_state, STATES) or "",
        coordinator=node,
        assignor=group.assignor_name,
        members=tuple(_consumer_member(member) for member in group.members),
        epoch=group.group_epoch,
        target_epoch=group.assignment_epoch,
    )


def _consumer_member(member: Member) -> MemberDescription:
    kinds = {_MEMBER_CLASSIC: False, _MEMBER_CONSUMER: True}
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_partitions(member.assignment),
        target=_partitions(member.target_assignment),
        epoch=member.member_epoch,
        is_upgraded=kinds.get(member.member_type),
    )


def _partitions(assignment: Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _classic_group(group: DescribedGroup, node: Node) -> GroupDescription | ProtocolError:
    if group.error_code:
        return error_for(group.error_code, group.error_message or "")
    if group.protocol_type not in _CONSUMER_PROTOCOLS:
        return InvalidGroupId(
            f"Group {group.group_id} is not a consumer group: its members are of the protocol "
            f"{group.protocol_type!r}."
        )
    return GroupDescription(
        group_id=group.group_id,
        type=CLASSIC,
        state=_spelled(group.group_state, STATES) or "",
        coordinator=node,
        assignor=group.protocol_data,
        members=tuple(
            MemberDescription(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                host=member.client_host,
                assignment=_embedded(member.member_assignment),
            )
            for member in group.members
        ),
    )


def _embedded(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions that the group's leader wrote into a member's assignment."""
    if not data:
        return ()  # The group is rebalancing: nothing was assigned yet.
    try:
        assignment = ConsumerProtocolAssignment.from_bytes(data)
    except MalformedMessage:
        return ()
    return tuple(
        TopicPartition(topic.topic, partition)
        for topic in assignment.assigned_partitions
        for partition in topic.partitions
    )
