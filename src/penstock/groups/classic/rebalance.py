"""How a classic group comes from one generation to the next.

    Empty ──join──▶ PreparingRebalance ──all are back, or time is up──▶ CompletingRebalance
      ▲                 ▲        │ nobody is left                          │ the leader has synced
      └─────────────────┼────────┘                                        ▼
                        └───────── join, leave, death ───────────────── Stable

Every state but Empty has a timer that leads out of it: nobody can hold up a group for good. Which
request is allowed when is in `group.py`; who the members are in `members.py`.
"""

from collections.abc import Mapping
from enum import Enum
from functools import partial

from penstock.coordination.machine import KeyValue
from penstock.coordination.timers import TimerKey, Timers
from penstock.errors import ErrorCode, ProtocolError
from penstock.groups.classic.members import (
    ClassicMember,
    ClassicMembers,
    refused_join,
    refused_sync,
)
from penstock.groups.record_formats import group_record
from penstock.groups.surroundings import GroupSurroundings
from penstock.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from penstock.protocol.messages.sync_group import SyncGroupResponse

# A client that joins for the first time in the old way has no heartbeat while it waits.
_NEW_MEMBER_TIMEOUT_MS = 5 * 60_000


class ClassicState(Enum):
    """The states of a classic group, as clients spell them."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicRebalance:
    """The generations of one group and the timers that drive them."""

    def __init__(
        self,
        group_id: str,
        around: GroupSurroundings,
        timers: Timers,
        members: ClassicMembers,
    ) -> None:
        self.group_id = group_id
        self.members = members
        self.phase = ClassicState.EMPTY
        self.phase_since_ms = around.clock.now_ms()  # -1: stored before anybody noted it.
        self.generation = 0
        self.protocol_type = ""  # "": nobody ever joined.
        self.strategy: str | None = None  # None: this generation has no members.
        self._around = around
        self._timers = timers
        self._is_first = False  # A group that was empty waits for company.
        self._company_came = False
        self._patience_ms = 0  # How much longer a new group may wait for company.

    # Beginning

    def begin(self, reason: str) -> None:
        """Everybody is to come back, and whoever does not is out."""
        if self.phase is ClassicState.COMPLETING:
            self.withdraw_assignments(ErrorCode.REBALANCE_IN_PROGRESS)
        self._timers.cancel(self._sync_key)
        self.members.unsynced.clear()
        self._is_first = self.phase is ClassicState.EMPTY
        self.enter(ClassicState.PREPARING)
        self._around.report(
            f"Preparing to rebalance group {self.group_id} with generation {self.generation}: "
            f"{reason}"
        )
        if self._is_first:
            self._wait_for_company()
        else:
            self._complete_or_wait()

    def begin_or_go_on(self, reason: str) -> None:
        """A member came, went or changed: rebalance, or see whether the one at hand is through."""
        if self.phase is ClassicState.PREPARING:
            self.go_on()
        else:
            self.begin(reason)

    def go_on(self) -> None:
        """One less to wait for, perhaps."""
        if (
            self.phase is ClassicState.PREPARING
            and not self._is_first
            and self.members.have_all_joined
        ):
            self._complete()

    def company_came(self) -> None:
        """Another new member: a group that just began waits a little longer."""
        self._company_came = True

    def _wait_for_company(self) -> None:
        delay_ms = self._around.config().group_initial_rebalance_delay_ms
        self._company_came = False
        self._patience_ms = max(self.members.rebalance_timeout_ms - delay_ms, 0)
        self._timers.set(self._join_key, delay_ms, partial(self._end_wait_for_company, delay_ms))

    def _end_wait_for_company(self, waited_ms: int) -> None:
        if not self._company_came or not self._patience_ms:
            self._complete()
            return
        self._company_came = False
        delay_ms = min(self._around.config().group_initial_rebalance_delay_ms, self._patience_ms)
        self._patience_ms = max(self._patience_ms - waited_ms, 0)
        self._timers.set(self._join_key, delay_ms, partial(self._end_wait_for_company, delay_ms))

    def _complete_or_wait(self) -> None:
        if self.members.have_all_joined:
            self._complete()
        else:
            self._timers.set(self._join_key, self.members.rebalance_timeout_ms, self._complete)

    # Joined: the next generation

    def _complete(self) -> None:
        self._timers.cancel(self._join_key)
        self._is_first = False
        for member in self.members:
            if member.waiting_join is None and member.instance_id is None:
                self.remove(member)
        if not self.members.elect_joined_leader() and len(self.members):
            # Only static members are left, and none is here: they have their session to return.
            self._timers.set(self._join_key, self.members.rebalance_timeout_ms, self._complete)
            return
        self.generation += 1
        self.members.unsynced.clear()
        if len(self.members):
            self._tell_generation()
        else:
            self._become_empty()

    def _become_empty(self) -> None:
        self.strategy = None
        self.enter(ClassicState.EMPTY)
        self._around.report(f"Group {self.group_id} with generation {self.generation} is now empty")
        try:
            self._around.journal.write([self.record()])
        except ProtocolError as error:
            # A later load finds the last members again, and their sessions end by themselves.
            self._around.report(f"That group {self.group_id} is empty was not stored: {error}")

    def _tell_generation(self) -> None:
        self.strategy = self.members.elected_strategy()
        self.enter(ClassicState.COMPLETING)
        self._around.report(
            f"Stabilized group {self.group_id} generation {self.generation} "
            f"with {len(self.members)} members"
        )
        for member in self.members:
            member.is_new = False
            self.members.unsynced.add(member.member_id)
            self.members.answer_join(member, self.joined(member))
            self.hear(member)
        self._timers.set(self._sync_key, self.members.rebalance_timeout_ms, self._sync_overdue)

    def joined(self, member: ClassicMember) -> JoinGroupResponse:
        """What a member is told of the generation; only the leader learns who else is there."""
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.strategy,
            leader=self.members.leader_id or "",
            member_id=member.member_id,
            members=self.member_list() if member.member_id == self.members.leader_id else [],
        )

    def member_list(self) -> list[JoinGroupResponseMember]:
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata_for(self.strategy),
            )
            for member in self.members
        ]

    # Synced: the assignment

    def assign(self, assignments: Mapping[str, bytes]) -> None:
        """The leader has decided: store it, then tell everybody; whoever is not named gets none."""
        try:
            self.store(assignments)
        except ProtocolError as error:
            self.withdraw_assignments(group_error(error))
            self.begin(f"the assignment could not be stored ({error})")
            return
        for member in self.members:
            member.assignment = assignments.get(member.member_id, b"")
        self.enter(ClassicState.STABLE)
        for member in self.members:
            if member.waiting_sync is not None:
                self.members.answer_sync(member, self.synced(member))
                self.hear(member)

    def note_sync(self, member: ClassicMember) -> None:
        """The member has come for its assignment."""
        unsynced = self.members.unsynced
        unsynced.discard(member.member_id)
        if not unsynced:
            self._timers.cancel(self._sync_key)

    def synced(self, member: ClassicMember) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self.protocol_type,
            protocol_name=self.strategy,
            assignment=member.assignment,
        )

    def withdraw_assignments(self, error: ErrorCode) -> None:
        for member in self.members:
            member.assignment = b""
            if member.waiting_sync is not None:
                self.members.answer_sync(member, refused_sync(error))
                self.hear(member)

    def _sync_overdue(self) -> None:
        """Members that never asked for their assignment would hold partitions nobody reads."""
        if self.phase not in (ClassicState.COMPLETING, ClassicState.STABLE):
            return
        late = [member for member in self.members if member.member_id in self.members.unsynced]
        for member in late:
            self.remove(member)
        if late:
            names = ", ".join(member.member_id for member in late)
            self.begin(f"no SyncGroup came from {names}")

    # Sessions

    def hear(self, member: ClassicMember) -> None:
        """The member gave a sign of life: its session begins anew."""
        timeout_ms = _NEW_MEMBER_TIMEOUT_MS if member.is_new else member.session_timeout_ms
        self._timers.set(
            self._session_key(member.member_id), timeout_ms, partial(self._silent, member)
        )

    def forget_session(self, member_id: str) -> None:
        self._timers.cancel(self._session_key(member_id))

    def _silent(self, member: ClassicMember) -> None:
        if self.members.get(member.member_id) is not member:
            return
        if member.waiting_sync is not None or (
            member.waiting_join is not None and not member.is_new
        ):
            return  # It waits for us, and its session begins anew with our answer.
        self.drop(member, f"the session of {member.member_id} expired")

    def drop(self, member: ClassicMember, reason: str) -> None:
        """Take a member out and let the others share its work."""
        self.remove(member)
        self._around.report(f"Member {member.member_id} has left group {self.group_id}: {reason}")
        self.begin_or_go_on(reason)

    def remove(self, member: ClassicMember) -> None:
        self.forget_session(member.member_id)
        self.members.remove(member)

    # Ids given out

    def expect(self, member_id: str, timeout_ms: int) -> None:
        """An id was given out: the group waits for its owner, but not for long (KIP-394)."""
        self.members.pending.add(member_id)
        self._timers.set(self._session_key(member_id), timeout_ms, partial(self.forget, member_id))

    def unexpect(self, member_id: str) -> None:
        self.members.pending.discard(member_id)
        self.forget_session(member_id)

    def forget(self, member_id: str) -> None:
        """The owner of the id will not come: nobody waits for it any more."""
        self.unexpect(member_id)
        self.go_on()

    # State

    def enter(self, phase: ClassicState) -> None:
        self.phase = phase
        self.phase_since_ms = self._around.clock.now_ms()

    def end(self, error: ErrorCode) -> None:
        """The group is gone from here; whoever waits is told so."""
        self.phase = ClassicState.DEAD
        self._timers.cancel_group(self.group_id)
        for member in self.members:
            self.members.answer_join(member, refused_join(member.member_id, error))
            self.members.answer_sync(member, refused_sync(error))

    def store(self, assignments: Mapping[str, bytes] | None = None) -> None:
        """Write the group down; None: with the assignments that stand."""
        size_bytes = 0
        for member in self.members:
            given = member.assignment
            if assignments is not None:
                given = assignments.get(member.member_id, b"")
            size_bytes += len(member.metadata_for(self.strategy)) + len(given)
        # Before they are put together: members may send any number of megabytes.
        self._around.journal.check_size(size_bytes)
        self._around.journal.write([self.record(assignments)])

    def record(self, assignments: Mapping[str, bytes] | None = None) -> KeyValue:
        """The group as it is stored; None: with the assignments that stand."""
        return group_record(
            self.group_id,
            self.members,
            assignments,
            protocol_type=self.protocol_type,
            generation=self.generation,
            strategy=self.strategy,
            since_ms=self.phase_since_ms,
        )

    @property
    def _join_key(self) -> TimerKey:
        return (self.group_id, "join")

    @property
    def _sync_key(self) -> TimerKey:
        return (self.group_id, "sync")

    def _session_key(self, member_id: str) -> TimerKey:
        return (self.group_id, "session", member_id)


def group_error(error: ProtocolError) -> ErrorCode:
    """What members are told when the group could not be stored."""
    if error.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        return ErrorCode.UNKNOWN_SERVER_ERROR  # Their own sizes are not what is too large.
    return error.code
