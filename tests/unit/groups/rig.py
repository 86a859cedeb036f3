"""A shard on a bench: a journal in memory, a clock turned by hand, names that can be foretold."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.coordination.answers import Ticket
from penstock.coordination.machine import KeyValue
from penstock.errors import CoordinatorNotAvailable, ErrorCode, ProtocolError, RecordTooLarge
from penstock.groups.classic.group import ClassicGroup
from penstock.groups.offsets.commits import OffsetToCommit
from penstock.groups.shard import Family, GroupShard
from penstock.groups.surroundings import Caller, GroupSurroundings, MemberClaim
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from penstock.protocol.messages.heartbeat import HeartbeatRequest
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

NEWEST = 9  # Of JoinGroup.
START_MS = 1_700_000_000_000


class Answer(Generic[T]):
    """The answer to a request; the rig hands over what the machine has given."""

    def __init__(self, hand_out: Callable[[], None], told: T | Ticket[T]) -> None:
        self.ticket = told if isinstance(told, Ticket) else None  # None: answered at once.
        self.response = None if isinstance(told, Ticket) else told  # None: still waiting.
        self._hand_out = hand_out

    @property
    def waits(self) -> bool:
        self._hand_out()
        return self.response is None

    @property
    def told(self) -> T:
        self._hand_out()
        assert self.response is not None, "not answered yet"
        return self.response


@dataclass
class Clock:
    """Time that passes only when told to."""

    elapsed: int = 0

    def now_ms(self) -> int:
        return START_MS + self.elapsed

    def elapsed_ms(self) -> int:
        return self.elapsed


@dataclass
class Written:
    """One record in the journal, with the transaction it belongs to."""

    key: bytes
    value: bytes | None
    producer_id: int


@dataclass
class MemoryJournal:
    """A log in memory that can be told to fail."""

    log: list[Written | tuple[int, bool]] = field(default_factory=list)  # A pair is a marker.
    error: ProtocolError | None = None  # None: writing works.
    write_count: int = 0
    bytes_max: int | None = None  # None: whatever is announced may be written.

    def check_size(self, size_bytes: int) -> None:
        if self.bytes_max is not None and size_bytes > self.bytes_max:
            raise RecordTooLarge(f"{size_bytes} bytes")

    def write(
        self, records: Sequence[KeyValue], *, producer_id: int = -1, producer_epoch: int = -1
    ) -> int:
        if self.error is not None:
            raise self.error
        assert records, "an empty batch was written"
        self.write_count += 1
        base_offset = len(self.log)
        self.log += [Written(key, value, producer_id) for key, value in records]
        return base_offset


class Rig:
    """A shard and everything around it; `reload` is a crash and a new leader."""

    def __init__(
        self,
        settings: dict[str, str] | None = None,
        families: Iterable[Callable[[GroupShard], Family]] = (),
    ) -> None:
        self.clock = Clock()
        self.journal = MemoryJournal()
        self.reports: list[str] = []
        self.image = ClusterImage(cluster_id="c")
        self.config = BrokerConfig(settings or {})
        self._families = tuple(families)
        self._id_count = 0
        self._waiting: dict[Ticket[Any], Answer[Any]] = {}
        self.shard = self._new_shard()

    def _new_shard(self) -> GroupShard:
        around = GroupSurroundings(
            journal=self.journal,
            clock=self.clock,
            new_id=self._new_id,
            config=lambda: self.config,
            image=lambda: self.image,
            report=self.reports.append,
        )
        return GroupShard(around, self._families)

    def _new_id(self) -> str:
        self._id_count += 1
        return str(self._id_count)

    def reload(self) -> None:
        """Everything that is not in the journal is lost."""
        self._waiting.clear()
        self.shard = self._new_shard()
        for offset, entry in enumerate(self.journal.log):
            if isinstance(entry, Written):
                self.shard.replay(entry.key, entry.value, offset, entry.producer_id)
            else:
                producer_id, is_committed = entry
                self.shard.commits.complete_transaction(
                    producer_id, is_committed=is_committed, marker_offset=offset
                )
        self.shard.start()

    def wait(self, elapsed_ms: int) -> None:
        """Let time pass, timer by timer."""
        end_ms = self.clock.elapsed + elapsed_ms
        while (next_ms := self.shard.timers.next_ms()) is not None and next_ms <= end_ms:
            self.clock.elapsed = max(self.clock.elapsed, next_ms)
            self.shard.timers.run_due()
        self.clock.elapsed = end_ms

    def break_journal(self, error: ProtocolError | None = None) -> None:
        self.journal.error = error or CoordinatorNotAvailable("the journal is broken")

    def mend_journal(self) -> None:
        self.journal.error = None

    # Requests

    def join(
        self,
        client: str = "a",
        member_id: str = "",
        *,
        group_id: str = "g",
        version: int = NEWEST,
        instance_id: str | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        protocol_type: str = "consumer",
        protocols: Iterable[tuple[str, bytes]] = (("range", b"sub"),),
        reason: str | None = None,
    ) -> Answer[JoinGroupResponse]:
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols],
            reason=reason,
        )
        return self._expect(self.shard.join_group(request, Caller(version, client, "/127.0.0.1")))

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group_id: str = "g",
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Answer[SyncGroupResponse]:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in (assignments or {}).items()
            ],
        )
        return self._expect(self.shard.sync_group(request, Caller(5, "c", "/127.0.0.1")))

    def _expect(self, told: T | Ticket[T]) -> Answer[T]:
        answer: Answer[T] = Answer(self.hand_out, told)
        if answer.ticket is not None:
            self._waiting[answer.ticket] = answer
        return answer

    def hand_out(self) -> None:
        """As the shell does it at the end of a turn; a ticket is answered exactly once."""
        for ticket, response in self.shard.take_answers():
            self._waiting.pop(ticket).response = response

    def beat(
        self,
        member_id: str,
        generation: int,
        *,
        group_id: str = "g",
        instance_id: str | None = None,
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        return code_of(lambda: self.shard.heartbeat(request))

    def leave(
        self, *members: tuple[str, str | None] | str, group_id: str = "g", reason: str | None = None
    ) -> LeaveGroupResponse:
        identities = [
            MemberIdentity(member_id=member, reason=reason)
            if isinstance(member, str)
            else MemberIdentity(member_id=member[0], group_instance_id=member[1], reason=reason)
            for member in members
        ]
        return self.shard.leave_group(LeaveGroupRequest(group_id=group_id, members=identities))

    def commit(
        self,
        offset: int,
        member_id: str = "",
        generation: int = -1,
        *,
        topic: str = "t",
        partition: int = 0,
        group_id: str = "g",
        instance_id: str | None = None,
        metadata: str | None = "",
        retention_ms: int = -1,
        version: int = 9,
    ) -> ErrorCode:
        """The partition's error, or the one for the whole group."""
        errors: list[ErrorCode] = []
        refused = code_of(
            lambda: errors.extend(
                self.shard.commits.commit(
                    group_id,
                    MemberClaim(member_id, generation, instance_id),
                    [OffsetToCommit(topic, partition, offset, metadata=metadata)],
                    version=version,
                    retention_ms=retention_ms,
                )
            )
        )
        return errors[0] if errors else refused

    def commit_in_transaction(
        self,
        offset: int,
        producer_id: int,
        *,
        member_id: str = "",
        generation: int = -1,
        topic: str = "t",
        partition: int = 0,
        group_id: str = "g",
    ) -> ErrorCode:
        return code_of(
            lambda: self.shard.commits.commit_transactional(
                group_id,
                MemberClaim(member_id, generation),
                (producer_id, 0),
                [OffsetToCommit(topic, partition, offset)],
                version=3,
            )
        )

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """The marker goes to the log first, as the broker does it."""
        self.journal.log.append((producer_id, is_committed))
        self.shard.commits.complete_transaction(
            producer_id, is_committed=is_committed, marker_offset=len(self.journal.log) - 1
        )

    # Looking

    def offset(self, topic: str = "t", partition: int = 0, *, group_id: str = "g") -> int | None:
        found = self.shard.offsets.get(group_id, topic, partition)
        return None if found is None else found.offset

    def group(self, group_id: str = "g") -> ClassicGroup:
        group = self.shard.group(group_id)
        assert isinstance(group, ClassicGroup)
        return group

    def state(self, group_id: str = "g") -> str:
        group = self.shard.groups.get(group_id)
        return "Dead" if group is None else group.state

    # Short ways to where tests begin

    def member(self, client: str = "a", *, group_id: str = "g") -> str:
        """An id as the first JoinGroup of a new client gets it."""
        told = self.join(client, group_id=group_id).told
        assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return told.member_id

    def stable(
        self,
        *clients: str,
        group_id: str = "g",
        protocols: Iterable[tuple[str, bytes]] = (("range", b"sub"),),
        session_ms: int = 10_000,
    ) -> list[str]:
        """The ids of members that share generation 1; each is assigned its client's name."""
        offered = tuple(protocols)
        ids = [self.member(client, group_id=group_id) for client in clients]
        joins = [
            self.join(
                client, member_id, group_id=group_id, protocols=offered, session_ms=session_ms
            )
            for client, member_id in zip(clients, ids, strict=True)
        ]
        while joins[0].waits:
            self.wait(1000)
        generation = joins[0].told.generation_id
        assignments = {m: c.encode() for c, m in zip(clients, ids, strict=True)}
        for member_id in ids:
            self.sync(
                member_id,
                generation,
                assignments if member_id == joins[0].told.leader else None,
                group_id=group_id,
            )
        assert self.state(group_id) == "Stable"
        return ids

    def live(self, member_id: str, generation: int, elapsed_ms: int, *, every_ms: int) -> None:
        """Let time pass while a member sends its heartbeats."""
        end_ms = self.clock.elapsed + elapsed_ms
        while self.clock.elapsed < end_ms:
            self.wait(min(every_ms, end_ms - self.clock.elapsed))
            assert self.beat(member_id, generation) is ErrorCode.NONE


def code_of(action: Callable[[], object]) -> ErrorCode:
    try:
        action()
    except ProtocolError as error:
        return error.code
    return ErrorCode.NONE


def subscription(*topics: str) -> bytes:
    return ConsumerProtocolSubscription(topics=list(topics)).to_bytes(1)
