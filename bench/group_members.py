"""Members of consumer groups for the bench: the life of a consumer without its fetching.

A classic member joins, syncs, and rejoins when a heartbeat says that the group moves on; the leader
shares the partitions out. A member of the new protocol heartbeats, gives up what it is told to,
and says so at once. The group is stable when each of them has its share of the newest generation.
"""

import asyncio
import struct
import time
from dataclasses import dataclass, field
from typing import TypeVar

from bench.load import HOST, LoadError
from penstock.errors import ErrorCode
from penstock.protocol.apis import Request, Response, response_class
from penstock.protocol.headers import decode_response_header, encode_request_header
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from penstock.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

R = TypeVar("R", bound=Response)
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, MODERN_VERSION = 9, 5, 4, 1
SESSION_MS, REBALANCE_MS = 45_000, 300_000  # What the clients default to.
_REJOIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}


@dataclass(slots=True, kw_only=True)
class Group:
    """What all members share: their number, and who holds what in which generation."""

    port: int
    name: str
    topic: str
    size: int
    heartbeat_s: float
    started_s: float = 0.0
    requests: int = 0
    bytes: int = 0
    stable: asyncio.Event = field(default_factory=asyncio.Event)
    held: dict[int, tuple[int, frozenset[int]]] = field(default_factory=dict)

    def begin(self) -> None:
        """Start the clock."""
        self.started_s = time.perf_counter()

    def note(self, number: int, generation: int, partitions: frozenset[int]) -> None:
        """A member has this share; there is a partition for each."""
        self.held[number] = (generation, partitions)
        if len(self.held) < self.size:
            return
        generations = {one for one, _ in self.held.values()}
        owned = [partition for _, share in self.held.values() for partition in share]
        if len(generations) == 1 and sorted(owned) == list(range(self.size)):
            self.stable.set()


class Member:
    """A connection, and a request at a time on it."""

    def __init__(self, group: Group, number: int) -> None:
        self.group = group
        self.number = number

    async def connect(self) -> None:
        """Open the connection; that is no part of what is measured."""
        self._reader, self._writer = await asyncio.open_connection(HOST, self.group.port)

    async def close(self) -> None:
        """Close it."""
        self._writer.close()
        await self._writer.wait_closed()

    async def ask(self, message: Request, version: int, expect: type[R]) -> R:
        """Send and wait for the answer."""
        header = encode_request_header(message.api_key, version, 1, f"bench-{self.number}")
        body = header + message.encode(version)
        self._writer.write(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = memoryview(await self._reader.readexactly(size))
        self.group.requests += 1
        self.group.bytes += size + len(body)
        _, at = decode_response_header(frame, message.api_key, version)
        answer = response_class(message.api_key).decode(frame, version, at)
        assert isinstance(answer, expect)
        return answer


class ClassicMember(Member):
    """JoinGroup, SyncGroup, Heartbeat."""

    member_id = ""
    generation = -1

    async def live(self) -> None:
        """Join, and join again whenever the group moves on."""
        while True:
            joined = await self._join()
            if not await self._sync(joined):
                continue
            while await self._beat():
                await asyncio.sleep(self.group.heartbeat_s)

    async def _join(self) -> JoinGroupResponse:
        subscription = ConsumerProtocolSubscription(topics=[self.group.topic])
        metadata = subscription.to_bytes(1)
        while True:
            request = JoinGroupRequest(
                group_id=self.group.name,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
            )
            answer = await self.ask(request, JOIN_VERSION, JoinGroupResponse)
            self.member_id = answer.member_id
            if answer.error_code == 0:
                self.generation = answer.generation_id
                return answer
            if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                raise LoadError(f"JoinGroup answered error {answer.error_code}")

    async def _sync(self, joined: JoinGroupResponse) -> bool:
        """Collect the share of this generation; False: it is over already."""
        shares = self._shares(joined) if joined.leader == self.member_id else []
        request = SyncGroupRequest(
            group_id=self.group.name,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=shares,
        )
        answer = await self.ask(request, SYNC_VERSION, SyncGroupResponse)
        if answer.error_code in _REJOIN:
            return False
        if answer.error_code:
            raise LoadError(f"SyncGroup answered error {answer.error_code}")
        given = ConsumerProtocolAssignment.from_bytes(answer.assignment)
        owned = frozenset(p for one in given.assigned_partitions for p in one.partitions)
        self.group.note(self.number, self.generation, owned)
        return True

    def _shares(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """What the range assignor does with one topic: neighbours to the same member."""
        ids = sorted(member.member_id for member in joined.members)
        shares = []
        for number, member_id in enumerate(ids):
            first = number * self.group.size // len(ids)
            end = (number + 1) * self.group.size // len(ids)
            owned = TopicPartition(topic=self.group.topic, partitions=list(range(first, end)))
            assignment = ConsumerProtocolAssignment(assigned_partitions=[owned])
            packed = assignment.to_bytes(1)
            shares.append(SyncGroupRequestAssignment(member_id=member_id, assignment=packed))
        return shares

    async def _beat(self) -> bool:
        """Whether the member's generation still stands."""
        request = HeartbeatRequest(
            group_id=self.group.name, generation_id=self.generation, member_id=self.member_id
        )
        answer = await self.ask(request, HEARTBEAT_VERSION, HeartbeatResponse)
        if answer.error_code and answer.error_code not in _REJOIN:
            raise LoadError(f"Heartbeat answered error {answer.error_code}")
        return answer.error_code == 0


class ModernMember(Member):
    """ConsumerGroupHeartbeat, at the pace that the broker sets."""

    async def live(self) -> None:
        """Join with epoch 0, then keep to what the answers say."""
        member_id = f"member-{self.number:04d}"
        owned: dict[bytes, list[int]] | None = {}
        epoch = 0
        while True:
            request = ConsumerGroupHeartbeatRequest(
                group_id=self.group.name,
                member_id=member_id,
                member_epoch=epoch,
                rebalance_timeout_ms=REBALANCE_MS if epoch == 0 else -1,
                subscribed_topic_names=[self.group.topic] if epoch == 0 else None,
                topic_partitions=_listed(owned),
            )
            answer = await self.ask(request, MODERN_VERSION, ConsumerGroupHeartbeatResponse)
            if answer.error_code:
                raise LoadError(f"Heartbeat answered {answer.error_code} {answer.error_message}")
            epoch, owned = answer.member_epoch, None  # None: nothing changed since.
            if answer.assignment is not None:
                owned = {o.topic_id: o.partitions for o in answer.assignment.topic_partitions}
                share = frozenset(p for held in owned.values() for p in held)
                self.group.note(self.number, epoch, share)
                continue  # A changed assignment is acknowledged at once.
            if self.number in self.group.held:
                self.group.note(self.number, epoch, self.group.held[self.number][1])
            await asyncio.sleep(answer.heartbeat_interval_ms / 1000)


def _listed(owned: dict[bytes, list[int]] | None) -> list[TopicPartitions] | None:
    if owned is None:
        return None
    return [TopicPartitions(topic_id=one, partitions=held) for one, held in owned.items()]
