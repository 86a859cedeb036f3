"""A group of the new consumer protocol (KIP-848): its state, its timers, and what others ask of it.

The coordinator assigns; members only say what they want and what they have. Its members' heartbeats
come in through groups.py. Members that still speak the classic protocol are served by
classic_members.py, and the group itself may have been a classic one and become one again:
migration.py.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.cluster.image.image import ClusterImage
from penstock.coordination.machine import KeyValue
from penstock.coordination.timers import TimerKey
from penstock.errors import (
    ErrorCode,
    GroupNotEmpty,
    IllegalGeneration,
    ProtocolError,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from penstock.groups.classic.subscriptions import CONSUMER_PROTOCOL
from penstock.groups.consumer import classic_members as classic
from penstock.groups.consumer import migration
from penstock.groups.consumer.admission import dynamic_member
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.member import ConsumerMember, MemberState
from penstock.groups.consumer.records import encoded
from penstock.groups.consumer.state import GroupState
from penstock.groups.consumer.view import ClusterView
from penstock.groups.group import CONSUMER, JoinAnswer, SyncAnswer
from penstock.groups.surroundings import Caller, MemberClaim
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from penstock.groups.shard import GroupShard

# What timers are for; each member has its own.
_SESSION: Final = "session"  # It must be heard from.
_REVOCATION: Final = "revocation"  # It must give up what it was asked to.
_JOIN: Final = "join"  # A classic member must join again.
_SYNC: Final = "sync"  # A classic member must come for its assignment.

_RETRY_MS: Final = 500  # A timer whose records could not be written fires again.
_NO_OLD_PROTOCOL_FROM: Final = 9  # OffsetCommit: versions before know no member epochs.


class ConsumerGroup:
    """One consumer group."""

    kind = CONSUMER
    protocol_type = CONSUMER_PROTOCOL

    def __init__(
        self, group_id: str, shard: "GroupShard", view: ClusterView, state: GroupState | None = None
    ) -> None:
        self.group_id = group_id
        self.known = state or GroupState(group_id)
        self.seen_image: ClusterImage | None = None  # None: topics were not looked at yet.
        self.shard = shard
        self.view = view

    @property
    def state(self) -> str:
        return self.known.phase

    @property
    def is_empty(self) -> bool:
        return not self.known.members

    # Changing

    def draft(self) -> Draft:
        return Draft(self.known, self.view, seen_image=self.seen_image)

    def commit(self, draft: Draft) -> None:
        """Write the draft, then believe it; a group that is new is in the shard from now on."""
        if draft.records:
            self.shard.write(draft.records)
            self.shard.place(self)
        self.known, self.seen_image = draft.state, draft.seen_image

    def fence(self, members: Sequence[ConsumerMember], reason: str) -> None:
        """Take members out; if only classic ones are left, the group becomes a classic one."""
        if not members:
            return
        if migration.may_downgrade(self, members):
            migration.downgrade_without(self, members, reason)
            return
        draft = self.draft()
        draft.remove_members(members)
        self.commit(draft)
        for member in members:
            self.forget_timers(member.member_id)
            self.view.around.report(
                f"[GroupId {self.group_id}] Member {member.member_id} is out: {reason}."
            )

    # Timers

    def hear(self, member: ConsumerMember) -> None:
        """The member gave a sign of life: its session begins anew."""
        timeout_ms = (
            self.view.settings(self.group_id).session_timeout_ms
            if member.classic is None
            else member.classic.session_timeout_ms
        )
        self._set_timer(_SESSION, member.member_id, timeout_ms, "the member session expired")

    def watch_revocation(self, member: ConsumerMember) -> None:
        """Give a member that must let go of partitions its rebalance timeout to do so."""
        if member.classic is not None:
            return  # It has to join again, and is given time for that.
        if member.state is not MemberState.UNREVOKED:
            self.forget_revocation(member)
            return
        reason = (
            f"it failed to transition from epoch {member.epoch} within "
            f"{member.rebalance_timeout_ms}ms"
        )
        self._set_timer(_REVOCATION, member.member_id, member.rebalance_timeout_ms, reason)

    def forget_revocation(self, member: ConsumerMember) -> None:
        self._cancel_timer(_REVOCATION, member.member_id)

    def expect_join(self, member: ConsumerMember) -> None:
        """A classic member was told to join again; telling it once more gives it no more time."""
        if not self.shard.timers.is_set(self._key(_JOIN, member.member_id)):
            reason = "the classic member failed to join within the rebalance timeout"
            self._set_timer(_JOIN, member.member_id, member.rebalance_timeout_ms, reason)

    def expect_sync(self, member: ConsumerMember) -> None:
        """A classic member has joined: it must come for its assignment."""
        self.forget_timers(member.member_id)
        self.hear(member)
        reason = "the member failed to sync within timeout"
        self._set_timer(_SYNC, member.member_id, member.rebalance_timeout_ms, reason)

    def note_sync(self, member: ConsumerMember) -> None:
        self._cancel_timer(_SYNC, member.member_id)
        self.hear(member)

    def forget_timers(self, member_id: str) -> None:
        for what in (_SESSION, _REVOCATION, _JOIN, _SYNC):
            self._cancel_timer(what, member_id)

    def _key(self, what: str, member_id: str) -> TimerKey:
        return (self.group_id, what, member_id)

    def _set_timer(self, what: str, member_id: str, after_ms: int, reason: str) -> None:
        """The member is out when the time is up."""
        expire = partial(self._expire, what, member_id, reason)
        self.shard.timers.set(self._key(what, member_id), after_ms, expire)

    def _cancel_timer(self, what: str, member_id: str) -> None:
        self.shard.timers.cancel(self._key(what, member_id))

    def _expire(self, what: str, member_id: str, reason: str) -> None:
        member = self.known.members.get(member_id)
        if member is None:
            return
        try:
            self.fence([member], reason)
        except ProtocolError as error:
            self.view.around.report(
                f"[GroupId {self.group_id}] Member {member_id} stays for now: {error}"
            )
            self._set_timer(what, member_id, _RETRY_MS, reason)

    # The classic protocol

    def join(self, request: JoinGroupRequest, caller: Caller) -> JoinAnswer:
        return classic.join(self, request, caller)

    def sync(self, request: SyncGroupRequest, caller: Caller) -> SyncAnswer:
        return classic.sync(self, request)

    def heartbeat(self, request: HeartbeatRequest) -> None:
        classic.heartbeat(self, request)

    def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        return classic.leave(self, request)

    # Offsets

    def admit_commit(
        self,
        claim: MemberClaim,
        partitions: Iterable[tuple[str, int]],
        *,
        version: int,
        is_transactional: bool,
    ) -> None:
        """Refuse unless the member is of this epoch, or has had these partitions since then."""
        if claim.epoch < 0 and self.is_empty:
            return  # A consumer without a group, or a tool.
        if is_transactional and claim == MemberClaim():
            return
        member = dynamic_member(self.known, claim.member_id)
        if not is_transactional and member.classic is None and version < _NO_OLD_PROTOCOL_FROM:
            raise UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members using the consumer group "
                "protocol"
            )
        if claim.epoch == member.epoch:
            return
        is_old_protocol = is_transactional or member.classic is not None
        refuse = IllegalGeneration if is_old_protocol else StaleMemberEpoch
        if claim.epoch > member.epoch:
            raise refuse(
                f"Received member epoch {claim.epoch} is newer than current member epoch "
                f"{member.epoch}."
            )
        self._check_held_since(member, claim.epoch, partitions, refuse)

    def _check_held_since(
        self,
        member: ConsumerMember,
        epoch: int,
        partitions: Iterable[tuple[str, int]],
        refuse: Callable[[str], ProtocolError],
    ) -> None:
        """A commit may cross an answer that brings a new epoch; what is owned stays owned."""
        for topic, number in partitions:
            topic_id = self.view.topic_id(topic) or b""
            held = {**member.revoking.get(topic_id, {}), **member.assigned.get(topic_id, {})}
            if number not in held:
                raise refuse(
                    f"Partition {topic}-{number} is not assigned or pending revocation for member."
                )
            if epoch < held[number]:
                raise refuse(
                    f"Received member epoch {epoch} is older than assignment epoch {held[number]} "
                    f"for partition {topic}-{number}."
                )

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return  # A tool, or a consumer too old to say who it is.
        member = self.known.members.get(member_id or "")
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        if member_epoch != member.epoch:
            refuse = StaleMemberEpoch if member.classic is None else IllegalGeneration
            raise refuse(
                f"The received member epoch {member_epoch} does not match the expected member "
                f"epoch {member.epoch}."
            )

    def check_offset_delete(self) -> None:
        """Any may be deleted whose topic nobody subscribes to."""

    def subscribes_to(self, topic: str) -> bool:
        return any(topic in self.known.topics_of(member) for member in self.known.members.values())

    def expiry_base_ms(self, topic: str, commit_ms: int) -> int | None:
        return None if self.subscribes_to(topic) else commit_ms

    # The group as a whole

    def check_delete(self) -> None:
        if not self.is_empty:
            raise GroupNotEmpty(f"group {self.group_id} has members")

    def tombstones(self) -> list[KeyValue]:
        return [encoded(*change) for change in self.known.tombstones()]

    def start(self) -> None:
        for member in self.known.members.values():
            self.hear(member)
            self.watch_revocation(member)

    def stop(self, error: ErrorCode) -> None:
        """Nobody waits here: every request is answered at once."""
        self.shard.timers.cancel_group(self.group_id)
