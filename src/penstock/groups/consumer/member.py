"""A member of a consumer group: what it told of itself, what it owns, and since when.

A value: every change makes another one. How one follows from the other is decided in
reconcile.py; how it is stored, in records.py.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from penstock.groups.classic.members import Strategy

JOINING: Final = 0  # The epoch of a member that asks in.
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2  # A static member that will be back.

Partitions: TypeAlias = Mapping[bytes, frozenset[int]]  # By topic id.
Holdings: TypeAlias = Mapping[bytes, Mapping[int, int]]  # With the epoch each was assigned in.


class MemberState(IntEnum):
    """How far a member is on its way to its target."""

    STABLE = 0  # It is there.
    UNREVOKED = 1  # It has yet to give up partitions.
    UNRELEASED = 2  # It waits for partitions that others have yet to give up.
    UNKNOWN = 127  # Stored by a later version.

    @classmethod
    def of(cls, number: int) -> "MemberState":
        return cls(number) if number in (0, 1, 2) else cls.UNKNOWN


class ClassicSide(NamedTuple):
    """What only a member has that still speaks the classic protocol."""

    session_timeout_ms: int
    strategies: tuple[Strategy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """One consumer."""

    member_id: str
    epoch: int = JOINING
    previous_epoch: int = -1  # It may still believe in this one, if our last answer was lost.
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None  # None: a dynamic member, forgotten as soon as it leaves.
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_pattern: str = ""  # "": it subscribes by names only.
    assignor: str | None = None  # None: it leaves that to the group.
    assigned: Holdings = field(default_factory=dict)
    revoking: Holdings = field(default_factory=dict)  # Still its own until it says otherwise.
    classic: ClassicSide | None = None  # None: it speaks the new protocol.

    def is_settled_at(self, epoch: int) -> bool:
        """Whether it has just what the target of that epoch says."""
        return self.state is MemberState.STABLE and self.epoch == epoch


def holdings(partitions: Partitions, epoch: int) -> Holdings:
    """The partitions as assigned in that epoch."""
    return {topic_id: dict.fromkeys(numbers, epoch) for topic_id, numbers in partitions.items()}


def without_epochs(held: Holdings) -> dict[bytes, frozenset[int]]:
    return {topic_id: frozenset(epochs) for topic_id, epochs in held.items()}


def each_partition(held: Mapping[bytes, Iterable[int]]) -> Iterable[tuple[bytes, int]]:
    for topic_id, numbers in held.items():
        for number in numbers:
            yield topic_id, number
