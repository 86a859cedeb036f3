"""Consumers of both protocols on a rig, and a cluster whose topics come and go at a word."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tests.unit.groups.rig import Rig

from penstock.cluster.image import BrokerImage, PartitionImage, PartitionState, TopicImage
from penstock.errors import ErrorCode, ProtocolError
from penstock.groups.consumer_group import ConsumerGroup
from penstock.groups.consumer_group_state import GroupState
from penstock.groups.consumer_groups import ConsumerGroups
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
)

HOST = "/127.0.0.1"
NEWEST = 1  # Of ConsumerGroupHeartbeat.
Named = set[tuple[str, int]]  # Partitions by the names of their topics.


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

    def _publish(self, topics: dict[str, TopicImage]) -> None:
        names = {topic.topic_id: name for name, topic in topics.items()}
        self.image = replace(
            self.image, topics=topics, topic_names_by_id=names, seq=self.image.seq + 1
        )

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

    def named(self, partitions: Iterable[TopicPartitions]) -> Named:
        names = self.image.topic_names_by_id
        return {(names.get(t.topic_id, "?"), p) for t in partitions for p in t.partitions}

    def by_id(self, partitions: Named) -> list[TopicPartitions]:
        """Of topics that are there."""
        by_topic: dict[str, list[int]] = {}
        for topic, number in sorted(partitions):
            by_topic.setdefault(topic, []).append(number)
        return [
            TopicPartitions(topic_id=self.image.topics[name].topic_id, partitions=numbers)
            for name, numbers in by_topic.items()
            if name in self.image.topics
        ]

    def held(self, member_id: str) -> Named:
        """What the group believes that the member has, if only to give it up."""
        member, names = self.known.members[member_id], self.image.topic_names_by_id
        both = [*member.assigned.items(), *member.revoking.items()]
        return {(names.get(t, "?"), p) for t, numbers in both for p in numbers}


@dataclass
class Consumer:
    """A member that speaks the new protocol, as well-behaved as librdkafka and Java are."""

    rig: ConsumerRig
    name: str  # Also its member id.
    topics: list[str] = field(default_factory=list)
    pattern: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    rebalance_ms: int = 60_000
    epoch: int = -1  # Not in the group.
    owned: Named = field(default_factory=set)
    told: Named = field(default_factory=set)  # Its assignment, as last heard.
    member_id: str = ""

    def __post_init__(self) -> None:
        self.member_id = self.member_id or self.name

    def join(self) -> ConsumerGroupHeartbeatResponse:
        """Ask in, with nothing owned."""
        self.owned.clear()
        self.epoch = 0
        return self.full_beat()

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
                topic_partitions=self.rig.by_id(self.owned),
            ),
            is_lost=is_lost,
        )

    def beat(
        self, *, is_lost: bool = False, silent: bool = False
    ) -> ConsumerGroupHeartbeatResponse:
        """A plain heartbeat; `silent`: it says nothing of what it owns."""
        owned = None if silent else self.rig.by_id(self.owned)
        return self.send(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=self.member_id,
                member_epoch=self.epoch,
                instance_id=self.instance_id,
                topic_partitions=owned,
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
        if not is_lost:
            self.take(answer)
        return answer

    def take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        fatal = (
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.UNRELEASED_INSTANCE_ID,
        )
        if answer.error_code in fatal:
            self.drop_all()
        elif not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.told = self.rig.named(answer.assignment.topic_partitions)

    def settle(self) -> None:
        """Give up what it was not told, and take up what it was."""
        self.owned = set(self.told)

    def drop_all(self) -> None:
        self.epoch = -1
        self.owned.clear()
        self.told.clear()


@dataclass
class ClassicConsumer:
    """A member that speaks the classic protocol, rebalancing cooperatively."""

    rig: ConsumerRig
    name: str
    topics: list[str] = field(default_factory=list)
    instance_id: str | None = None
    protocols: tuple[str, ...] = ("cooperative-sticky",)
    session_ms: int = 10_000
    rebalance_ms: int = 60_000
    member_id: str = ""
    generation: int = -1
    owned: Named = field(default_factory=set)

    def metadata(self) -> bytes:
        by_topic: dict[str, list[int]] = {}
        for topic, number in sorted(self.owned):
            by_topic.setdefault(topic, []).append(number)
        return ConsumerProtocolSubscription(
            topics=list(self.topics),
            owned_partitions=[OwnedPartition(topic=t, partitions=p) for t, p in by_topic.items()],
            generation_id=self.generation,
        ).to_bytes(3)

    def join(self) -> ErrorCode:
        """As far as it gets: only consumer groups answer a join at once."""
        answer = self.rig.join(
            self.name,
            self.member_id,
            instance_id=self.instance_id,
            session_ms=self.session_ms,
            rebalance_ms=self.rebalance_ms,
            protocols=[(name, self.metadata()) for name in self.protocols],
        )
        told = answer.told
        if told.member_id:
            self.member_id = told.member_id
        if told.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return self.join()
        if told.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.drop_all()
        elif not told.error_code:
            self.generation = told.generation_id
        return ErrorCode(told.error_code)

    def sync(self) -> ErrorCode:
        told = self.rig.sync(self.member_id, self.generation, instance_id=self.instance_id).told
        if not told.error_code:
            assignment = ConsumerProtocolAssignment.from_bytes(told.assignment)
            self.owned = {
                (a.topic, p) for a in assignment.assigned_partitions for p in a.partitions
            }
        return ErrorCode(told.error_code)

    def beat(self) -> ErrorCode:
        code = self.rig.beat(self.member_id, self.generation, instance_id=self.instance_id)
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.drop_all()
        return code

    def drop_all(self) -> None:
        self.member_id, self.generation = "", -1
        self.owned.clear()
