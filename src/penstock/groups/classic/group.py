"""A group of the classic protocol: who may join, sync, beat, leave and commit, and when.

The members agree on an assignment among themselves; the group only picks the leader who works it
out and passes on bytes it does not read. Rebalances are `rebalance.py`'s, the members'
bookkeeping `members.py`'s, and everything that is by partition the shard's.
"""

from collections.abc import Iterable
from dataclasses import replace

from penstock.coordination.answers import Ticket
from penstock.coordination.machine import KeyValue
from penstock.coordination.timers import Timers
from penstock.errors import (
    CoordinatorNotAvailable,
    ErrorCode,
    GroupMaxSizeReached,
    GroupNotEmpty,
    IllegalGeneration,
    InconsistentGroupProtocol,
    ProtocolError,
    RebalanceInProgress,
    UnknownMemberId,
)
from penstock.groups.classic.members import (
    ClassicMember,
    ClassicMembers,
    Strategy,
    refused_join,
    refused_sync,
)
from penstock.groups.classic.rebalance import ClassicRebalance, ClassicState, group_error
from penstock.groups.classic.subscriptions import CONSUMER_PROTOCOL, subscribed_topics
from penstock.groups.group import CLASSIC, JoinAnswer, SyncAnswer
from penstock.groups.record_formats import group_key, stored_members
from penstock.groups.surroundings import Caller, GroupSurroundings, MemberClaim
from penstock.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from penstock.protocol.messages.group_records import GroupMetadataValue
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from penstock.protocol.messages.sync_group import SyncGroupRequest

_ID_REQUIRED_FROM = 4  # JoinGroup: a member without an id is given one first (KIP-394).
_SKIPPING_FROM = 9  # JoinGroup: a leader may be told not to assign (KIP-814).


class ClassicGroup:
    """One classic group; also the owner of offsets that no group membership guards."""

    kind = CLASSIC

    def __init__(
        self,
        group_id: str,
        around: GroupSurroundings,
        timers: Timers,
        *,
        generation: int = 0,
        protocol_type: str = "",
        strategy: str | None = None,
        leader_id: str | None = None,
        members: Iterable[ClassicMember] = (),
    ) -> None:
        self.group_id = group_id
        self.members = ClassicMembers(around.answers, members)
        self._around = around
        self._timers = timers
        self._rebalance = ClassicRebalance(group_id, around, timers, self.members)
        self._rebalance.generation = generation
        self._rebalance.protocol_type = protocol_type
        self._rebalance.strategy = strategy
        self._subscribed: tuple[tuple[int, str | None], frozenset[str] | None] | None = None
        if leader_id is not None and leader_id in self.members:
            self.members.leader_id = leader_id
        if len(self.members):
            self._rebalance.enter(ClassicState.STABLE)

    @classmethod
    def of_record(
        cls, group_id: str, value: GroupMetadataValue, around: GroupSurroundings, timers: Timers
    ) -> "ClassicGroup":
        """The group as it was stored: stable if it had members, empty if not."""
        members = stored_members(value)
        group = cls(
            group_id,
            around,
            timers,
            generation=value.generation,
            protocol_type=value.protocol_type,
            strategy=value.protocol if members else None,
            leader_id=value.leader,
            members=members,
        )
        group._rebalance.phase_since_ms = value.current_state_timestamp
        return group

    # What others ask

    @property
    def state(self) -> str:
        return self._rebalance.phase.value

    @property
    def phase(self) -> ClassicState:
        return self._rebalance.phase

    @property
    def generation(self) -> int:
        return self._rebalance.generation

    @property
    def protocol_type(self) -> str:
        return self._rebalance.protocol_type

    @property
    def strategy(self) -> str | None:
        """The assignment strategy of this generation; None: it has no members."""
        return self._rebalance.strategy

    @property
    def is_empty(self) -> bool:
        return self.phase is ClassicState.EMPTY and not self.members.pending

    # JoinGroup

    def join(self, request: JoinGroupRequest, caller: Caller) -> JoinAnswer:
        try:
            self._check_size(request.member_id)
            if not self._suits(request):
                raise InconsistentGroupProtocol(
                    f"group {self.group_id} is of type {self.protocol_type!r} and its members know "
                    "none of the protocols offered"
                )
            if request.member_id:
                return self._join_again(request, caller)
            return self._join_first(request, caller)
        except GroupMaxSizeReached as error:
            return refused_join("", error.code)
        except ProtocolError as error:
            return refused_join(request.member_id, error.code)

    def _check_size(self, member_id: str) -> None:
        """Refuse a member too many; in a rebalance only those count who are back already."""
        size_max = self._around.config().group_max_size
        if self.phase is ClassicState.PREPARING:
            member = self.members.get(member_id)
            is_back = member is not None and member.waiting_join is not None
            is_full = not is_back and self.members.joining_count >= size_max
        else:
            is_full = member_id not in self.members and len(self.members) >= size_max
        if is_full:
            if member_id in self.members.pending:
                self._rebalance.forget(member_id)
            raise GroupMaxSizeReached(f"group {self.group_id} has {size_max} members already")

    def _suits(self, request: JoinGroupRequest) -> bool:
        offered = _strategies(request)
        if self.phase is ClassicState.EMPTY:
            return bool(request.protocol_type) and bool(offered)
        return request.protocol_type == self.protocol_type and self.members.know_one_of(offered)

    def _join_first(self, request: JoinGroupRequest, caller: Caller) -> JoinAnswer:
        instance_id = request.group_instance_id
        named_after = caller.client_id if instance_id is None else instance_id
        member_id = f"{named_after}-{self._around.new_id()}"
        if instance_id is not None:
            known = self.members.of_instance(instance_id)
            if known is not None:
                return self._replace(known, member_id, request, caller)
        elif caller.version >= _ID_REQUIRED_FROM:
            self._rebalance.expect(member_id, request.session_timeout_ms)
            return refused_join(member_id, ErrorCode.MEMBER_ID_REQUIRED)
        return self._add(member_id, request, caller)

    def _join_again(self, request: JoinGroupRequest, caller: Caller) -> JoinAnswer:
        if request.member_id in self.members.pending and request.group_instance_id is None:
            return self._add(request.member_id, request, caller)
        member = self.members.find(request.member_id, request.group_instance_id)
        if self.phase is ClassicState.PREPARING or self._forces_rebalance(member, request):
            self._update(member, request, caller)
            ticket = self.members.await_join(member)
            self._rebalance.begin_or_go_on(_reason(f"{member.member_id} joins again", request))
            return ticket
        # It missed the answer, or asked without need: tell it again what holds.
        told = self._rebalance.joined(member)
        if self.phase is ClassicState.STABLE:
            told.members = []
        self._rebalance.hear(member)
        return told

    def _forces_rebalance(self, member: ClassicMember, request: JoinGroupRequest) -> bool:
        """A member that wants something else, or a leader that saw other partitions."""
        if member.strategies != _strategies(request):
            return True
        return self.phase is ClassicState.STABLE and member.member_id == self.members.leader_id

    def _add(
        self, member_id: str, request: JoinGroupRequest, caller: Caller
    ) -> Ticket[JoinGroupResponse]:
        ticket: Ticket[JoinGroupResponse] = Ticket()
        member = ClassicMember(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=caller.client_id,
            client_host=caller.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=_rebalance_timeout_ms(request),
            strategies=_strategies(request),
            is_new=True,
            waiting_join=ticket,
        )
        if not len(self.members):
            self._rebalance.protocol_type = request.protocol_type
        self.members.add(member)
        self._rebalance.hear(member)
        if self.phase is ClassicState.PREPARING:
            self._rebalance.company_came()
        self._rebalance.begin_or_go_on(_reason(f"{member_id} joins", request))
        return ticket

    def _update(self, member: ClassicMember, request: JoinGroupRequest, caller: Caller) -> None:
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        member.client_id, member.client_host = caller.client_id, caller.client_host
        self.members.learn(member, _strategies(request))

    def _replace(
        self,
        member: ClassicMember,
        new_id: str,
        request: JoinGroupRequest,
        caller: Caller,
    ) -> JoinAnswer:
        """A static member is back, as another process: no rebalance unless it wants another one."""
        old_id, old_leader_id = member.member_id, self.members.leader_id or ""
        before = replace(member)
        self._rename(member, new_id)
        self._update(member, request, caller)
        is_same = self.phase is ClassicState.STABLE and (
            self.members.elected_strategy() == self.strategy
        )
        if not is_same:
            ticket = self.members.await_join(member)
            self._rebalance.begin_or_go_on(_reason(f"{new_id} replaces {old_id}", request))
            return ticket
        try:
            self._rebalance.store()
        except ProtocolError as error:
            self._rename(member, old_id)
            self._restore(member, before)
            return refused_join(request.member_id, group_error(error))
        return self._returned(member, old_leader_id, caller.version)

    def _rename(self, member: ClassicMember, new_id: str) -> None:
        self._rebalance.forget_session(member.member_id)
        self.members.rename(member, new_id)
        self._rebalance.hear(member)

    def _restore(self, member: ClassicMember, before: ClassicMember) -> None:
        member.session_timeout_ms = before.session_timeout_ms
        member.rebalance_timeout_ms = before.rebalance_timeout_ms
        member.client_id, member.client_host = before.client_id, before.client_host
        self.members.learn(member, before.strategies)
        self._rebalance.hear(member)

    def _returned(
        self, member: ClassicMember, old_leader_id: str, version: int
    ) -> JoinGroupResponse:
        """What a static member is told that takes up where it left off.

        A leader must not assign again. One that cannot be told so is told the leader's old id,
        which it does not recognise as its own (KIP-814).
        """
        told = self._rebalance.joined(member)
        if version < _SKIPPING_FROM:
            told.leader, told.members = old_leader_id, []
        else:
            told.skip_assignment = bool(told.members)
        return told

    # SyncGroup

    def sync(self, request: SyncGroupRequest, caller: Caller) -> SyncAnswer:
        try:
            return self._sync(request)
        except ProtocolError as error:
            return refused_sync(error.code)

    def _sync(self, request: SyncGroupRequest) -> SyncAnswer:
        member = self._current_member(
            request.member_id, request.group_instance_id, request.generation_id
        )
        for asked, held in (
            (request.protocol_type, self.protocol_type),
            (request.protocol_name, self.strategy),
        ):
            if asked is not None and asked != held:
                raise InconsistentGroupProtocol(f"the group uses {held!r}, not {asked!r}")
        if self.phase is ClassicState.PREPARING:
            raise RebalanceInProgress(f"group {self.group_id} is rebalancing")
        self._rebalance.note_sync(member)
        if self.phase is ClassicState.STABLE:
            self._rebalance.hear(member)
            return self._rebalance.synced(member)
        ticket = self.members.await_sync(member)
        if member.member_id == self.members.leader_id:
            self._rebalance.assign({a.member_id: a.assignment for a in request.assignments})
        return ticket

    # Heartbeat

    def heartbeat(self, request: HeartbeatRequest) -> None:
        member = self._current_member(
            request.member_id, request.group_instance_id, request.generation_id
        )
        self._rebalance.hear(member)
        if self.phase is ClassicState.PREPARING:
            raise RebalanceInProgress(f"group {self.group_id} is rebalancing")

    def _current_member(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> ClassicMember:
        self._check_alive()
        member = self.members.find(member_id, instance_id)
        if generation != self.generation:
            raise IllegalGeneration(f"the generation is {self.generation}, not {generation}")
        return member

    def _check_alive(self) -> None:
        if self.phase is ClassicState.DEAD:
            raise CoordinatorNotAvailable(f"group {self.group_id} is gone from here")

    # LeaveGroup

    def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Let all go that may, and rebalance once."""
        self._check_alive()
        before = len(self.members)
        results = [self._leave_one(identity) for identity in request.members]
        if len(self.members) < before:
            reasons = {identity.reason for identity in request.members if identity.reason}
            self._rebalance.begin_or_go_on("; ".join(["members left", *sorted(reasons)]))
        else:
            self._rebalance.go_on()
        return LeaveGroupResponse(members=results)

    def _leave_one(self, identity: MemberIdentity) -> MemberResponse:
        error = ErrorCode.NONE
        try:
            self._let_go(identity.member_id, identity.group_instance_id)
        except ProtocolError as refused:
            error = refused.code
        return MemberResponse(
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            error_code=int(error),
        )

    def _let_go(self, member_id: str, instance_id: str | None) -> None:
        if member_id in self.members.pending:
            self._rebalance.unexpect(member_id)
            return
        if not member_id and instance_id is not None:  # An operator knows the instance id only.
            member = self.members.of_instance(instance_id)
            if member is None:
                raise UnknownMemberId(f"nobody in the group has the instance id {instance_id}")
        else:
            member = self.members.find(member_id, instance_id)
        self._rebalance.remove(member)

    # Offsets

    def admit_commit(
        self,
        claim: MemberClaim,
        partitions: Iterable[tuple[str, int]],
        *,
        version: int,
        is_transactional: bool,
    ) -> None:
        self._check_alive()
        member_id, epoch, instance_id = claim
        phase = self._rebalance.phase
        if epoch < 0 and phase is ClassicState.EMPTY:
            return  # A consumer without a group, or a tool.
        if epoch >= 0 or member_id or instance_id is not None:
            member = self._current_member(member_id, instance_id, epoch)
            if is_transactional:
                return
            if phase is ClassicState.COMPLETING:
                raise RebalanceInProgress(f"group {self.group_id} is rebalancing")
            self._rebalance.hear(member)
        elif not is_transactional:
            raise UnknownMemberId(f"only members may commit while group {self.group_id} has any")

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may ask how far a classic group has read."""

    def check_offset_delete(self) -> None:
        if self.phase is not ClassicState.EMPTY and self.protocol_type != CONSUMER_PROTOCOL:
            raise GroupNotEmpty(f"the members of {self.group_id} may be using any of its offsets")

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member wants the topic; where that cannot be read, consumers may."""
        if self.phase is ClassicState.EMPTY or self.protocol_type != CONSUMER_PROTOCOL:
            return False
        topics = self._subscribed_topics()
        return topics is None or topic in topics

    def expiry_base_ms(self, topic: str, commit_ms: int) -> int | None:
        if not self.protocol_type:
            return commit_ms  # Nobody ever joined: each offset is on its own.
        if self.phase is ClassicState.EMPTY:
            since_ms = self._rebalance.phase_since_ms
            return commit_ms if since_ms < 0 else since_ms
        if self.phase is not ClassicState.STABLE or self.protocol_type != CONSUMER_PROTOCOL:
            return None
        return None if self.subscribes_to(topic) else commit_ms

    def _subscribed_topics(self) -> frozenset[str] | None:
        as_of = (self.members.change_count, self.strategy)
        if self._subscribed is None or self._subscribed[0] != as_of:
            read = subscribed_topics(member.metadata_for(self.strategy) for member in self.members)
            self._subscribed = (as_of, read)
        return self._subscribed[1]

    # The group as a whole

    def check_delete(self) -> None:
        if self.phase is not ClassicState.EMPTY:
            raise GroupNotEmpty(f"group {self.group_id} has members")

    def record(self) -> KeyValue:
        """The group as it is stored."""
        return self._rebalance.record()

    def tombstones(self) -> list[KeyValue]:
        return [(group_key(self.group_id), None)]

    def start(self) -> None:
        for member in self.members:
            self._rebalance.hear(member)
        if len(self.members) > self._around.config().group_max_size:
            self._rebalance.begin("the group has more members than group.max.size allows")

    def rebalance(self, reason: str) -> None:
        """Have all members join anew, for a reason that none of them brought."""
        self._rebalance.begin_or_go_on(reason)

    def stop(self, error: ErrorCode) -> None:
        self._rebalance.end(error)

    def described(self) -> DescribedGroup:
        """As DescribeGroups tells it; of subscriptions only while a strategy is settled."""
        is_stable = self.phase is ClassicState.STABLE
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state,
            protocol_type=self.protocol_type,
            protocol_data=(self.strategy or "") if is_stable else "",
            members=[
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata_for(self.strategy) if is_stable else b"",
                    member_assignment=member.assignment,
                )
                for member in self.members
            ],
        )


def _strategies(request: JoinGroupRequest) -> tuple[Strategy, ...]:
    return tuple(Strategy(offered.name, offered.metadata) for offered in request.protocols)


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Version 0 had one timeout for both."""
    given_ms = request.rebalance_timeout_ms
    return given_ms if given_ms >= 0 else request.session_timeout_ms


def _reason(what: str, request: JoinGroupRequest) -> str:
    return f"{what}; client reason: {request.reason}" if request.reason else what
