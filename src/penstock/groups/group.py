"""What a shard asks of a group, whatever its kind.

A kind of group is one implementation of `Group`. The shard knows no more of it than this: it finds
the group, hands it requests, and asks it about commits, deletion and expiry.
"""

from collections.abc import Iterable
from typing import Final, Protocol, TypeAlias

from penstock.coordination.answers import Ticket
from penstock.coordination.machine import KeyValue
from penstock.errors import ErrorCode
from penstock.groups.surroundings import Caller, MemberClaim
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

# Kinds, as ListGroups spells them.
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"

# The answer, or the ticket under which it comes later.
JoinAnswer: TypeAlias = JoinGroupResponse | Ticket[JoinGroupResponse]
SyncAnswer: TypeAlias = SyncGroupResponse | Ticket[SyncGroupResponse]


class Group(Protocol):
    """A group of any kind; every method that refuses raises a ProtocolError with its code."""

    @property
    def group_id(self) -> str: ...

    @property
    def kind(self) -> str:
        """CLASSIC, CONSUMER or SHARE."""
        ...

    @property
    def state(self) -> str:
        """As ListGroups spells it: Empty, PreparingRebalance, Stable, Assigning ..."""
        ...

    @property
    def protocol_type(self) -> str:
        """What the members are, "consumer" most often; "" while nobody ever joined."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether nobody is in it; only then it may be deleted."""
        ...

    # Requests of the classic protocol. A group of another kind answers those of its members that
    # still speak it, and refuses the rest.

    def join(self, request: JoinGroupRequest, caller: Caller) -> JoinAnswer:
        """The answer now, or when the rebalance is through; refusals are answers too."""
        ...

    def sync(self, request: SyncGroupRequest, caller: Caller) -> SyncAnswer:
        """The answer now, or when the leader has sent the assignment; refusals are answers too."""
        ...

    def heartbeat(self, request: HeartbeatRequest) -> None: ...

    def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse: ...

    # Offsets

    def admit_commit(
        self,
        claim: MemberClaim,
        partitions: Iterable[tuple[str, int]],
        *,
        version: int,
        is_transactional: bool,
    ) -> None:
        """Refuse unless the claim holds, for these topics and partitions.

        A classic member that commits is heard from as by a heartbeat.
        """
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None:
        """Refuse where no offset may be deleted, whatever its topic."""
        ...

    def subscribes_to(self, topic: str) -> bool: ...

    def expiry_base_ms(self, topic: str, commit_ms: int) -> int | None:
        """The moment from which an offset's retention counts; None: it does not expire now."""
        ...

    # The group as a whole

    def check_delete(self) -> None: ...

    def tombstones(self) -> list[KeyValue]:
        """The records that make a later load forget the group; offsets are the shard's."""
        ...

    def start(self) -> None:
        """The log is read to its end: set timers, mend what the log leaves half done."""
        ...

    def stop(self, error: ErrorCode) -> None:
        """The group is gone from this shard: drop timers, tell everybody who waits."""
        ...
