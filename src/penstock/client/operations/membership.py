"""A member of a classic group whose protocol is not the consumers': join, sync, beat, leave.

For services that let a group elect one of them, as Connect and schema registries do; librdkafka
speaks the consumers' protocol alone. What members tell each other is theirs to encode.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from penstock.client.operations.coordinators import CoordinatorKind, ask_coordinator
from penstock.client.values import Node
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.connection import R
from penstock.errors import MemberIdRequired, UnknownMemberId, error_for
from penstock.protocol.apis import Request
from penstock.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from penstock.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from penstock.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

T = TypeVar("T")
_NEW_MEMBER = ""
_SLACK_S = 10.0  # For an answer that the broker gives when its own time is up.


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProtocol:
    """Which group, and what its members speak."""

    group_id: str
    protocol_type: str
    protocol: str
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedGroup:
    """A generation of the group, as one of its members sees it."""

    member_id: str
    generation_id: int
    members: Mapping[str, bytes] | None  # What each told of itself; None: another one assigns.


class GroupMembership:
    """One member, on the caller's thread. ProtocolError says why it is out, or must join again."""

    def __init__(self, cluster: ClusterClient, protocol: GroupProtocol) -> None:
        self._cluster = cluster
        self._protocol = protocol
        self._member_id = _NEW_MEMBER
        self._generation_id = -1

    def join(self, metadata: bytes) -> JoinedGroup:
        """Wait until all members have joined, however long the group gives them."""
        try:
            answer = self._join(metadata)
        except MemberIdRequired:
            answer = self._join(metadata)
        except UnknownMemberId:
            self._member_id = _NEW_MEMBER
            raise
        self._generation_id = answer.generation_id
        assigns = answer.leader == answer.member_id
        told = {member.member_id: bytes(member.metadata) for member in answer.members}
        return JoinedGroup(
            member_id=answer.member_id,
            generation_id=answer.generation_id,
            members=told if assigns else None,
        )

    def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        """Hand the assignments out, or nothing, and get one's own."""
        protocol = self._protocol
        request = SyncGroupRequest(
            group_id=protocol.group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
            protocol_type=protocol.protocol_type,
            protocol_name=protocol.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=given)
                for member, given in assignments.items()
            ],
        )
        return bytes(self._ask(request, SyncGroupResponse, self._patience_s).assignment)

    def beat(self) -> None:
        """Say that this member lives; RebalanceInProgress asks it to join again."""
        request = HeartbeatRequest(
            group_id=self._protocol.group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
        )
        self._ask(request, HeartbeatResponse, self._protocol.session_timeout_ms / 1000)

    def leave(self) -> None:
        """Go at once, instead of when the session ends."""
        if self._member_id == _NEW_MEMBER:
            return
        request = LeaveGroupRequest(
            group_id=self._protocol.group_id,
            members=[MemberIdentity(member_id=self._member_id)],
        )
        self._member_id = _NEW_MEMBER
        self._ask(request, LeaveGroupResponse, self._cluster.request_timeout_s)

    def evict(self, is_stale: Callable[[bytes], bool]) -> int:
        """Let members go whose process is known to be dead; how many that were.

        Otherwise whoever takes the place of a killed process waits until its session ends.
        """
        group_id = self._protocol.group_id
        answer = self._ask(
            DescribeGroupsRequest(groups=[group_id]),
            DescribeGroupsResponse,
            self._cluster.request_timeout_s,
        )
        stale = [
            member.member_id
            for group in answer.groups
            if group.protocol_type == self._protocol.protocol_type
            for member in group.members
            if is_stale(bytes(member.member_metadata))
        ]
        if stale:
            members = [MemberIdentity(member_id=member) for member in stale]
            request = LeaveGroupRequest(group_id=group_id, members=members)
            self._ask(request, LeaveGroupResponse, self._cluster.request_timeout_s)
        return len(stale)

    def forget(self) -> None:
        """Join as a new member the next time."""
        self._member_id = _NEW_MEMBER

    @property
    def _patience_s(self) -> float:
        return self._protocol.rebalance_timeout_ms / 1000 + _SLACK_S

    def _join(self, metadata: bytes) -> JoinGroupResponse:
        protocol = self._protocol
        request = JoinGroupRequest(
            group_id=protocol.group_id,
            session_timeout_ms=protocol.session_timeout_ms,
            rebalance_timeout_ms=protocol.rebalance_timeout_ms,
            member_id=self._member_id,
            protocol_type=protocol.protocol_type,
            protocols=[JoinGroupRequestProtocol(name=protocol.protocol, metadata=metadata)],
        )
        return self._ask(request, JoinGroupResponse, self._patience_s, self._take_member_id)

    def _take_member_id(self, answer: JoinGroupResponse) -> None:
        if answer.member_id:
            self._member_id = answer.member_id  # Also with MemberIdRequired (KIP-394).

    def _ask(
        self,
        request: Request,
        expect: type[R],
        timeout_s: float,
        look: Callable[[R], None] = lambda _: None,
    ) -> R:
        def ask(node: Node) -> R:
            connection = self._cluster.node_connection(node.id)
            try:
                answer = connection.ask(request, expect, timeout_s=timeout_s)
            except BaseException:
                self._cluster.drop(connection)
                raise
            look(answer)
            code: int = getattr(answer, "error_code", 0)
            if code:
                raise error_for(code, f"group {self._protocol.group_id}: {error_for(code)}")
            return answer

        return ask_coordinator(self._cluster, self._protocol.group_id, CoordinatorKind.GROUP, ask)
