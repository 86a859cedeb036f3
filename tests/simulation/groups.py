"""Members of a classic group in the simulation: they join, share partitions, commit and come back.

The assignment is bytes of their own making, so what is judged is the group and not an assignor.
Every offset committed is a number that was never used before and higher than all others, so an
older one that comes back tells of a commit that was lost.
"""

from dataclasses import dataclass
from typing import Any

from tests.simulation.clients import Client
from tests.simulation.groups_line import GROUP, Line, Told
from tests.simulation.history import History

from penstock.errors import ErrorCode
from penstock.protocol.apis import Response
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP_ID = "members"
_SESSION_MS = 3_000
_REBALANCE_MS = 4_000
_JOIN_S = 10.0
_PROTOCOL = "by turns"

_REJOIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})
_MISPLACED = _REJOIN | {ErrorCode.UNKNOWN_MEMBER_ID}


@dataclass(kw_only=True)
class Commit:
    """An offset that a member wanted noted."""

    partition: int
    offset: int
    is_acked: bool = False
    # Part of it may still be on its way, and be carried out whenever it arrives.
    is_loose: bool = True


class GroupLedger:
    """What the members of one group were told."""

    def __init__(self, history: History, topic: str, partition_count: int) -> None:
        self.history = history
        self.topic = topic
        self.partitions = range(partition_count)
        self._owners: dict[tuple[int, int], str] = {}  # By generation and partition.
        self._commits: dict[int, Commit] = {}  # By offset.

    @property
    def acked_count(self) -> int:
        return sum(commit.is_acked for commit in self._commits.values())

    def own(self, generation: int, member_id: str, partitions: list[int]) -> None:
        """I28."""
        self.history.trace.note("owns", generation, member_id, partitions)
        for partition in partitions:
            owner = self._owners.setdefault((generation, partition), member_id)
            if owner != member_id:
                self.history.violate(
                    f"I28 partition {partition} is both {owner}'s and {member_id}'s in "
                    f"generation {generation}"
                )

    def begin(self, partition: int) -> Commit:
        commit = Commit(partition=partition, offset=len(self._commits) + 1)
        self._commits[commit.offset] = commit
        return commit

    def last_acked(self, partition: int) -> int:
        """-1: none was."""
        mine = (c for c in self._commits.values() if c.partition == partition and c.is_acked)
        return max((commit.offset for commit in mine), default=-1)

    def judge(self, partition: int, offset: int, *, at_least: int, by: str) -> None:
        """I27: an acknowledged offset is never lost, and never goes back by itself."""
        commit = self._commits.get(offset)
        if offset >= 0 and (commit is None or commit.partition != partition):
            self.history.violate(f"I27 {by}: {self.topic}-{partition} has {offset} of nobody")
        elif offset < at_least and (commit is None or not commit.is_loose):
            self.history.violate(
                f"I27 {by}: the offset of {self.topic}-{partition} went from {at_least} to {offset}"
            )


class Member:
    def __init__(self, client: Client, ledger: GroupLedger) -> None:
        self._client = client
        self._ledger = ledger
        self._line = Line(client, GROUP_ID, GROUP)
        self._member_id = ""
        self.generation = -1  # -1: not in the group.
        self.owned: list[int] = []
        self.is_stopping = False

    async def run(self) -> None:
        while not self.is_stopping:
            if self.generation < 0:
                await self._join()
            else:
                await self._client.nap(0.5)
                await self._do_something()

    async def _do_something(self) -> None:
        chance = self._client.rng.random()
        if self._client.is_closing or chance < 0.5:
            await self._beat()
        elif chance < 0.85:
            await self._commit()
        elif chance < 0.9:
            await self._look()
        elif chance < 0.94:
            await self._leave()
        elif chance < 0.97:
            self._forget()  # As if it had died; its session is left to run out.
            await self._client.nap(1.0)
        else:
            await self._client.nap(4.0)  # So busy that the group goes on without it.

    def _forget(self) -> None:
        self._member_id, self.generation, self.owned = "", -1, []

    # Getting in

    async def _join(self) -> None:
        request = JoinGroupRequest(
            group_id=GROUP_ID,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=self._member_id,
            protocol_type="simulation",
            protocols=[JoinGroupRequestProtocol(name=_PROTOCOL, metadata=b"")],
        )
        told = await self._line.ask(request, version=5, code=_code, timeout_s=_JOIN_S)
        if told.error is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = told.answer.member_id
        elif self._is_in(told, "JoinGroup"):
            self._member_id = told.answer.member_id
            await self._sync(told.answer)

    async def _sync(self, joined: Response) -> None:
        assignments = []
        if joined.leader == self._member_id:
            assignments = self._shared_out([member.member_id for member in joined.members])
        request = SyncGroupRequest(
            group_id=GROUP_ID,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            assignments=assignments,
        )
        told = await self._line.ask(request, version=3, code=_code, timeout_s=_JOIN_S)
        if self._is_in(told, "SyncGroup"):
            self.generation = joined.generation_id
            self.owned = list(told.answer.assignment)
            self._ledger.own(self.generation, self._member_id, self.owned)
            await self._look()

    def _shared_out(self, member_ids: list[str]) -> list[SyncGroupRequestAssignment]:
        self._client.rng.shuffle(member_ids)
        partitions = self._ledger.partitions
        return [
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=bytes(partitions[at :: len(member_ids)])
            )
            for at, member_id in enumerate(member_ids)
        ]

    def _is_in(self, told: Told, what: str) -> bool:
        """Whether the member still is one; if not, what it has to do is to join."""
        if told.error is ErrorCode.NONE:
            return True
        self.generation, self.owned = -1, []
        if told.error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        elif told.error not in _REJOIN:
            self._client.history.violate(
                f"{what} of {self._client.name} failed with {told.error.name}"
            )
        return False

    # Being in

    async def _beat(self) -> None:
        request = HeartbeatRequest(
            group_id=GROUP_ID, generation_id=self.generation, member_id=self._member_id
        )
        self._is_in(await self._line.ask(request, version=3, code=_code), "Heartbeat")

    async def _commit(self) -> None:
        if not self.owned:
            await self._beat()
            return
        commit = self._ledger.begin(self._client.rng.choice(self.owned))
        told = await committing(
            self._line,
            self._ledger,
            commit,
            generation_id_or_member_epoch=self.generation,
            member_id=self._member_id,
        )
        self._is_in(told, "OffsetCommit")

    async def _look(self) -> None:
        for partition in self.owned:
            await look(self._line, self._ledger, partition)

    async def _leave(self) -> None:
        request = LeaveGroupRequest(
            group_id=GROUP_ID, members=[MemberIdentity(member_id=self._member_id)]
        )
        told = await self._line.ask(request, version=3, code=_code)
        if told.error is not ErrorCode.NONE:
            self._client.history.violate(f"LeaveGroup failed with {told.error.name}")
        self._forget()


async def committing(line: Line, ledger: GroupLedger, commit: Commit, **member: Any) -> Told:
    """The offset noted; without a member, by somebody who only keeps offsets in the group."""
    wanted = OffsetCommitRequestPartition(
        partition_index=commit.partition, committed_offset=commit.offset, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=line.key,
        topics=[OffsetCommitRequestTopic(name=ledger.topic, partitions=[wanted])],
        **member,
    )
    told = await line.ask(request, version=7, code=_code_of_partition)
    commit.is_loose = told.unanswered > 0
    commit.is_acked = told.error is ErrorCode.NONE
    ledger.history.trace.note("commit", line.key, commit.offset, told.error.name)
    return told


async def look(line: Line, ledger: GroupLedger, partition: int) -> None:
    """What is committed now, held against what was acknowledged before asking."""
    acked = ledger.last_acked(partition)
    request = OffsetFetchRequest(
        group_id=line.key,
        topics=[OffsetFetchRequestTopic(name=ledger.topic, partition_indexes=[partition])],
    )
    told = await line.ask(request, version=7, code=_code)
    if told.error is ErrorCode.NONE:
        found = told.answer.topics[0].partitions[0].committed_offset
        ledger.judge(partition, found, at_least=acked, by=line.client.name)
    else:
        ledger.history.violate(f"OffsetFetch failed with {told.error.name}")


def _code(answer: Response) -> int:
    return int(answer.error_code)


def _code_of_partition(answer: Response) -> int:
    return int(answer.topics[0].partitions[0].error_code)
