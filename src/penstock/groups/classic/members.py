"""Who is in a classic group: members, their votes for a protocol, and the one who leads.

This is bookkeeping only. When a rebalance begins and ends, and who may join at all, is decided in
`rebalance.py` and `group.py`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.coordination.answers import LateAnswers, Ticket
from penstock.errors import ErrorCode, FencedInstanceId, UnknownMemberId
from penstock.protocol.messages.join_group import JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse


class Strategy(NamedTuple):
    """A way of assigning that a member knows, with its subscription for it; opaque here."""

    name: str
    metadata: bytes


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicMember:
    """One consumer, or whatever else joined."""

    member_id: str
    instance_id: str | None  # None: a dynamic member, forgotten as soon as it leaves.
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    strategies: tuple[Strategy, ...]  # The one it likes best comes first.
    assignment: bytes = b""
    is_new: bool = False  # Has joined, and never yet been told a generation.
    waiting_join: Ticket[JoinGroupResponse] | None = None  # None: no JoinGroup of it waits.
    waiting_sync: Ticket[SyncGroupResponse] | None = None

    def metadata_for(self, strategy: str | None) -> bytes:
        for name, metadata in self.strategies:
            if name == strategy:
                return metadata
        return b""

    def vote(self, candidates: Iterable[str]) -> str:
        """The best-liked strategy that everybody knows."""
        return next(name for name, _ in self.strategies if name in candidates)


class ClassicMembers:
    """The members of one group, in the order in which they came."""

    def __init__(self, answers: LateAnswers, members: Iterable[ClassicMember] = ()) -> None:
        self._answers = answers
        self._by_id: dict[str, ClassicMember] = {}
        self._by_instance: dict[str, str] = {}
        self._known_by: Counter[str] = Counter()  # How many members know each strategy.
        self._joining = 0
        self.change_count = 0  # Of members and their subscriptions, for whoever caches.
        self.pending: set[str] = set()  # Ids given out, whose owners have yet to come back.
        self.unsynced: set[str] = set()  # Were told this generation and have not asked for more.
        self.leader_id: str | None = None
        for member in members:
            self.add(member)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[ClassicMember]:
        return iter(tuple(self._by_id.values()))

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._by_id

    def get(self, member_id: str) -> ClassicMember | None:
        return self._by_id.get(member_id)

    def of_instance(self, instance_id: str) -> ClassicMember | None:
        member_id = self._by_instance.get(instance_id)
        return None if member_id is None else self._by_id[member_id]

    def find(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member that is both; a static id names only its latest owner (KIP-345)."""
        if instance_id is not None:
            known = self._by_instance.get(instance_id)
            if known is None:
                raise UnknownMemberId(f"nobody in the group has the instance id {instance_id}")
            if known != member_id:
                raise FencedInstanceId(f"{known} has the instance id {instance_id} by now")
        member = self._by_id.get(member_id)
        if member is None:
            raise UnknownMemberId(f"{member_id} is not in the group")
        return member

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member may take to come back."""
        return max((member.rebalance_timeout_ms for member in self._by_id.values()), default=0)

    # Coming and going

    def add(self, member: ClassicMember) -> None:
        self._by_id[member.member_id] = member
        if member.instance_id is not None:
            self._by_instance[member.instance_id] = member.member_id
        self._known_by.update(name for name, _ in member.strategies)
        self.change_count += 1
        self._joining += member.waiting_join is not None
        self.pending.discard(member.member_id)
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member: ClassicMember) -> None:
        """Take the member out; whoever waits for its answer gets one that says so."""
        del self._by_id[member.member_id]
        if member.instance_id is not None:
            del self._by_instance[member.instance_id]
        self._known_by.subtract(name for name, _ in member.strategies)
        self.change_count += 1
        self.unsynced.discard(member.member_id)
        self.answer_join(member, refused_join(member.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        self.answer_sync(member, refused_sync(ErrorCode.UNKNOWN_MEMBER_ID))
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self._by_id), None)

    def rename(self, member: ClassicMember, new_id: str) -> None:
        """The static member came back as another process; the old one is fenced."""
        old_id = member.member_id
        self.answer_join(member, refused_join(old_id, ErrorCode.FENCED_INSTANCE_ID))
        self.answer_sync(member, refused_sync(ErrorCode.FENCED_INSTANCE_ID))
        member.member_id = new_id
        self._by_id = {
            (new_id if key == old_id else key): value for key, value in self._by_id.items()
        }
        if member.instance_id is not None:
            self._by_instance[member.instance_id] = new_id
        if old_id in self.unsynced:
            self.unsynced.remove(old_id)
            self.unsynced.add(new_id)
        if self.leader_id == old_id:
            self.leader_id = new_id

    def learn(self, member: ClassicMember, strategies: Sequence[Strategy]) -> None:
        """The member tells anew what it knows and wants."""
        self._known_by.subtract(name for name, _ in member.strategies)
        member.strategies = tuple(strategies)
        self.change_count += 1
        self._known_by.update(name for name, _ in member.strategies)

    # Requests that wait

    @property
    def joining_count(self) -> int:
        return self._joining

    @property
    def have_all_joined(self) -> bool:
        return self._joining == len(self._by_id) and not self.pending

    def await_join(self, member: ClassicMember) -> Ticket[JoinGroupResponse]:
        """The member waits; a request it sent before on another connection is let go."""
        superseded = refused_join(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
        self.answer_join(member, superseded)
        member.waiting_join = Ticket()
        self._joining += 1
        return member.waiting_join

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> None:
        """Answer the member's JoinGroup, if one waits."""
        if member.waiting_join is not None:
            ticket, member.waiting_join = member.waiting_join, None
            self._joining -= 1
            self._answers.give(ticket, response)

    def await_sync(self, member: ClassicMember) -> Ticket[SyncGroupResponse]:
        """The member waits for its assignment; a request it sent before is let go."""
        self.answer_sync(member, refused_sync(ErrorCode.REBALANCE_IN_PROGRESS))
        member.waiting_sync = Ticket()
        return member.waiting_sync

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> None:
        """Answer the member's SyncGroup, if one waits."""
        if member.waiting_sync is not None:
            ticket, member.waiting_sync = member.waiting_sync, None
            self._answers.give(ticket, response)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it rejoined, else take the first who did; False: nobody did."""
        leader = None if self.leader_id is None else self._by_id[self.leader_id]
        if leader is not None and leader.waiting_join is not None:
            return True
        joined = next((m for m in self._by_id.values() if m.waiting_join is not None), None)
        if joined is not None:
            self.leader_id = joined.member_id
        return joined is not None

    # Votes

    def know_one_of(self, strategies: Iterable[Strategy]) -> bool:
        """Whether all members know at least one of these; with no members, whether there is any."""
        everybody = len(self._by_id)
        return any(self._known_by[name] == everybody for name, _ in strategies)

    def elected_strategy(self) -> str:
        """The strategy with the most votes among those everybody knows.

        Among equals the one that the earliest member voted for.
        """
        everybody = len(self._by_id)
        candidates = {name for name, count in self._known_by.items() if count == everybody}
        votes = Counter(member.vote(candidates) for member in self._by_id.values())
        return votes.most_common(1)[0][0]


def refused_join(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=int(error), member_id=member_id, protocol_name=None)


def refused_sync(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=int(error))
