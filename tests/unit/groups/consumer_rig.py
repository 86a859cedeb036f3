"""Consumers of both protocols on a rig, and a cluster whose topics come and go at a word."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from tests.unit.groups.rig import Answer, Rig

from penstock.assignors import Subscriber, assign_sticky, still_held_by_others
from penstock.cluster.image.image import BrokerImage, PartitionImage, PartitionState, TopicImage
from penstock.errors import ErrorCode, ProtocolError
from penstock.groups.consumer.group import ConsumerGroup
from penstock.groups.consumer.groups import ConsumerGroups
from penstock.groups.consumer.state import GroupState
from penstock.groups.surroundings import Caller
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedPartition,
    TopicPartition,
)
from penstock.protocol.messages.join_group import JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse

HOST = "/127.0.0.1"
NEWEST = 1  # Of ConsumerGroupHeartbeat.
Held = set[tuple[bytes, int]]  # Topic ids and partitions.


class ConsumerRig(Rig):
    """A shard with consumer groups in it; the group is always "g"."""

    def __init__(self, settings: dict[str, str] | None = None, **topics: int) -> None:
        super().__init__(settings, [ConsumerGroups])
        self._topic_count = 0
        self.image = replace(
            self.image,
            controller_epoch=1,
            brokers={1: BrokerImage(broker_id=1, epoch=1, endpoints=(), is_active=True)},
        )
        self.make_topics(**topics)

    @property
    def groups(self) -> ConsumerGroups:
        return self.shard.family(ConsumerGroups)

    @property
    def known(self) -> GroupState:
        return self.groups.group("g").known

    @property
    def kind(self) -> str:
        """Of the group; "" while there is none."""
        group = self.shard.groups.get("g")
        return "" if group is None else group.kind

    @property
    def is_consumer_group(self) -> bool:
        return isinstance(self.shard.groups.get("g"), ConsumerGroup)

    # The cluster

    def make_topics(self, **partitions: int) -> None:
        """Create topics, or let them grow."""
        topics = dict(self.image.topics)
        for name, count in partitions.items():
            state = PartitionState(leader=1, leader_epoch=0, isr=(1,), min_isr=1)
            topics[name] = TopicImage(
                name=name,
                topic_id=topics[name].topic_id if name in topics else self._new_topic_id(),
                partitions={n: PartitionImage(replicas=(1,), state=state) for n in range(count)},
            )
        self._publish(topics)

    def delete_topic(self, name: str) -> None:
        self._publish({n: topic for n, topic in self.image.topics.items() if n != name})

    def configure_group(self, **overrides: str) -> None:
        configs = {("groups", "g"): {k.replace("_", "."): v for k, v in overrides.items()}}
        self.image = replace(self.image, configs=configs, seq=self.image.seq + 1)

    def _new_topic_id(self) -> bytes:
        self._topic_count += 1
        return self._topic_count.to_bytes(16, "big")

    def _publish(self, topics: Mapping[str, TopicImage]) -> None:
        names = {topic.topic_id: name for name, topic in topics.items()}
        self.image = replace(
            self.image, topics=topics, topic_names_by_id=names, seq=self.image.seq + 1
        )

    def all_of(self, topics: Iterable[str]) -> Held:
        """Every partition of the topics that exist."""
        known = [self.image.topics[name] for name in topics if name in self.image.topics]
        return {(topic.topic_id, number) for topic in known for number in topic.partitions}

    def named(self, held: Held) -> list[str]:
        """For people: t-0, t-1."""
        names = self.image.topic_names_by_id
        return sorted(f"{names.get(topic_id, 'gone')}-{number}" for topic_id, number in held)

    def numbered(self, partitions: str) -> Held:
        """What people write, t-0,t-1, as it is."""
        pairs = [each.rsplit("-", 1) for each in partitions.split(",") if each]
        return {(self.image.topics[name].topic_id, int(number)) for name, number in pairs}

    # Requests

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, *, version: int = NEWEST, client: str = "c"
    ) -> ConsumerGroupHeartbeatResponse:
        """The answer, with the error in it, as a client gets it."""
        try:
            return self.groups.heartbeat(request, Caller(version, client, HOST))
        except ProtocolError as error:
            return ConsumerGroupHeartbeatResponse(
                error_code=int(error.code), error_message=str(error)
            )

    def held(self, member_id: str) -> Held:
        """What the group believes that the member has, if only to give it up."""
        member = self.known.members[member_id]
        both = [*member.assigned.items(), *member.revoking.items()]
        return {(topic_id, number) for topic_id, numbers in both for number in numbers}


@dataclass
class Consumer:
    """A member that speaks the new protocol, as well-behaved as librdkafka and Java are."""

    rig: ConsumerRig
    name: str
    topics: list[str] = field(default_factory=list)
    pattern: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    rebalance_ms: int = 60_000
    member_id: str = ""  # As made up by the client; "": its name.
    epoch: int = -1  # -1: not in the group.
    owned: Held = field(default_factory=set)
    told: Held = field(default_factory=set)  # Its assignment, as last heard.
    has_lost_an_answer: bool = False  # Or got an error: it may have missed its assignment.

    def __post_init__(self) -> None:
        self.member_id = self.member_id or self.name

    def join(self, *, is_lost: bool = False) -> ConsumerGroupHeartbeatResponse:
        """Ask in, with nothing owned."""
        self.drop_all()
        self.epoch = 0
        return self.full_beat(is_lost=is_lost)

    def full_beat(self, *, is_lost: bool = False) -> ConsumerGroupHeartbeatResponse:
        """All that there is to say, as after an error."""
        return self.send(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=self.member_id,
                member_epoch=self.epoch,
                instance_id=self.instance_id,
                rebalance_timeout_ms=self.rebalance_ms,
                subscribed_topic_names=list(self.topics),
                subscribed_topic_regex=self.pattern,
                server_assignor=self.assignor,
                topic_partitions=_by_topic(self.owned),
            ),
            is_lost=is_lost,
        )

    def beat(
        self, *, is_lost: bool = False, is_silent: bool = False
    ) -> ConsumerGroupHeartbeatResponse:
        """A plain heartbeat; a silent one says nothing of what the member owns."""
        return self.send(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=self.member_id,
                member_epoch=self.epoch,
                instance_id=self.instance_id,
                topic_partitions=None if is_silent else _by_topic(self.owned),
            ),
            is_lost=is_lost,
        )

    def leave(self, *, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        answer = self.rig.heartbeat(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=self.member_id,
                member_epoch=epoch,
                instance_id=self.instance_id,
            )
        )
        self.drop_all()
        return answer

    def send(
        self, request: ConsumerGroupHeartbeatRequest, *, is_lost: bool = False
    ) -> ConsumerGroupHeartbeatResponse:
        answer = self.rig.heartbeat(request, client=self.name)
        self.has_lost_an_answer = is_lost or answer.error_code != 0
        if not is_lost:
            self._take(answer)
        return answer

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.error_code in _FENCING:
            self.drop_all()
        elif not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                topics = answer.assignment.topic_partitions
                self.told = {(t.topic_id, number) for t in topics for number in t.partitions}

    def settle(self) -> None:
        """Give up what it was not told, and take up what it was."""
        self.owned = set(self.told)

    def forget_topic(self, topic_id: bytes) -> None:
        self.owned = {each for each in self.owned if each[0] != topic_id}
        self.told = {each for each in self.told if each[0] != topic_id}

    def drop_all(self) -> None:
        self.epoch = -1
        self.owned = set()
        self.told = set()


_FENCING = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNRELEASED_INSTANCE_ID,
)


def _by_topic(held: Held) -> list[TopicPartitions]:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(held):
        by_topic.setdefault(topic_id, []).append(number)
    return [TopicPartitions(topic_id=t, partitions=numbers) for t, numbers in by_topic.items()]


@dataclass
class ClassicConsumer:
    """A member that speaks the classic protocol; `step` does what a client would do next."""

    rig: ConsumerRig
    name: str
    topics: list[str] = field(default_factory=list)
    instance_id: str | None = None
    is_eager: bool = False  # Gives up all before it joins, and not only what it must.
    session_ms: int = 10_000
    rebalance_ms: int = 60_000
    member_id: str = ""
    generation: int = -1
    owned: Held = field(default_factory=set)
    phase: str = "out"  # out, joining, joined, syncing, in
    last_error: ErrorCode = ErrorCode.NONE
    _join: Answer[JoinGroupResponse] | None = None
    _sync: Answer[SyncGroupResponse] | None = None

    def step(self) -> None:
        getattr(self, f"_step_{self.phase}")()

    def steps(self, count: int = 4) -> "ClassicConsumer":
        for _ in range(count):
            self.step()
        return self

    def disconnect(self) -> None:
        """Requests under way are lost; the client asks again."""
        if self.phase in ("joining", "joined", "syncing"):
            self.phase = "out"

    def die(self) -> None:
        """And come back as another process, which knows nothing."""
        self.phase, self.member_id, self.generation, self.owned = "out", "", -1, set()

    def forget_topic(self, topic_id: bytes) -> None:
        self.owned = {each for each in self.owned if each[0] != topic_id}

    def leave(self) -> None:
        if self.member_id:
            self.last_error = _code(lambda: self.rig.leave((self.member_id, self.instance_id)))
        self.die()

    def _metadata(self) -> bytes:
        names = self.rig.image.topic_names_by_id
        by_topic = {
            names[t.topic_id]: t.partitions for t in _by_topic(self.owned) if t.topic_id in names
        }
        return ConsumerProtocolSubscription(
            topics=list(self.topics),
            owned_partitions=[OwnedPartition(topic=t, partitions=p) for t, p in by_topic.items()],
            generation_id=self.generation,
        ).to_bytes(3)

    def _step_out(self) -> None:
        if self.is_eager:
            self.owned = set()
        self._join = self.rig.join(
            self.name,
            self.member_id,
            instance_id=self.instance_id,
            session_ms=self.session_ms,
            rebalance_ms=self.rebalance_ms,
            protocols=[("cooperative-sticky", self._metadata())],
        )
        self.phase = "joining"
        self._step_joining()

    def _step_joining(self) -> None:
        assert self._join is not None
        if self._join.waits:
            return
        told = self._join.told
        self.last_error = ErrorCode(told.error_code)
        self.phase = "joined"
        if self.last_error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id, self.phase = told.member_id, "out"
        elif self.last_error in _LOST:
            self.die()
        elif self.last_error:
            self.phase = "out"
        else:
            self.member_id, self.generation = told.member_id, told.generation_id

    def _step_joined(self) -> None:
        assert self._join is not None
        assignments = self._lead() if self._join.told.leader == self.member_id else None
        self._sync = self.rig.sync(
            self.member_id, self.generation, assignments, instance_id=self.instance_id
        )
        self.phase = "syncing"
        self._step_syncing()

    def _step_syncing(self) -> None:
        assert self._sync is not None
        if self._sync.waits:
            return
        told = self._sync.told
        self.last_error = ErrorCode(told.error_code)
        self.phase = "in"
        if self.last_error in _LOST:
            self.die()
        elif self.last_error:
            self.phase = "out"
        else:
            self._settle(ConsumerProtocolAssignment.from_bytes(told.assignment))

    def _settle(self, assignment: ConsumerProtocolAssignment) -> None:
        """A cooperative member that had to give something up joins again to say so."""
        before = self.owned
        self.owned = {
            (self.rig.image.topics[topic.topic].topic_id, number)
            for topic in assignment.assigned_partitions
            for number in topic.partitions
            if topic.topic in self.rig.image.topics
        }
        if not self.is_eager and before - self.owned:
            self.phase = "out"

    def _step_in(self) -> None:
        self.last_error = self.rig.beat(
            self.member_id, self.generation, instance_id=self.instance_id
        )
        if self.last_error in _LOST:
            self.die()
        elif self.last_error is not ErrorCode.NONE:
            self.phase = "out"

    def _lead(self) -> dict[str, bytes]:
        """The assignment of all members, as cooperative-sticky works it out."""
        assert self._join is not None
        members = [_subscriber(m.member_id, m.metadata) for m in self._join.told.members]
        partitions = {name: len(topic.partitions) for name, topic in self.rig.image.topics.items()}
        target = assign_sticky(members, partitions)
        waiting = still_held_by_others(target, members)
        return {
            member_id: ConsumerProtocolAssignment(
                assigned_partitions=[
                    TopicPartition(
                        topic=topic,
                        partitions=sorted(numbers - waiting[member_id].get(topic, set())),
                    )
                    for topic, numbers in topics.items()
                ]
            ).to_bytes(3)
            for member_id, topics in target.items()
        }


_LOST = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
)


def _subscriber(member_id: str, metadata: bytes) -> Subscriber[str]:
    read = ConsumerProtocolSubscription.from_bytes(metadata)
    return Subscriber(
        member_id=member_id,
        topics=frozenset(read.topics),
        owned={owned.topic: frozenset(owned.partitions) for owned in read.owned_partitions},
        generation=read.generation_id,
    )


def _code(leave: Callable[[], LeaveGroupResponse]) -> ErrorCode:
    try:
        (result,) = leave().members
    except ProtocolError as error:
        return error.code
    return ErrorCode(result.error_code)
