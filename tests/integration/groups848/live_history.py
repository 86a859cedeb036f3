"""A written-down history of a consumer group, played over the wire to a server and in real time.

The texts are those of tests/golden/consumer_groups, the consumers those of the unit tests. Several
histories are played to one server at once, so each has a group and topics of its own: what is `t`
in the text is `<history>.t` to the server.
"""

import re
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from tests.support.processes import HOST
from tests.support.waiting import eventually
from tests.unit.groups.consumer_rig import ConsumerRig, Held
from tests.unit.groups.consumer_transcript import ConsumerTranscript, Details

from penstock.client.wire.connection import BrokerConnection
from penstock.errors import ErrorCode
from penstock.protocol.apis import Request
from penstock.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from penstock.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from penstock.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.protocol.stored import read_prefix

_MOMENT_MS = 400  # What takes no time in a text takes some over a wire.
_PATIENCE_S = 15.0


class LateAnswer:
    """An answer that comes when it comes, as consumers of the unit tests know it."""

    def __init__(self, future: "Future[Any]", rig: "LiveRig") -> None:
        self._future = future
        self._rig = rig

    @property
    def waits(self) -> bool:
        try:
            self._future.result(timeout=self._rig.patience_s)
        except TimeoutError:
            return True
        return False

    @property
    def told(self) -> Any:
        return self._future.result(timeout=_PATIENCE_S)


class LiveRig(ConsumerRig):
    """The same verbs as on the bench, and a real server behind them."""

    def __init__(self, port: int, history: str) -> None:
        self._port = port
        self._prefix = f"{history}."
        self._group = history
        self._threads = ThreadPoolExecutor(max_workers=8)
        self.image: Any = SimpleNamespace(topics={}, topic_names_by_id={})
        self.patience_s = _PATIENCE_S  # With an answer that may come at once.

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def ask(self, request: Request, version: int, *, client: str = "operator") -> Any:
        with BrokerConnection(HOST, self._port, client_id=client, timeout_s=120) as connection:
            return connection.request(request, version)

    # The cluster

    def make_topics(self, **partitions: int) -> None:
        for name, count in partitions.items():
            if name in self.image.topics:
                wanted = CreatePartitionsTopic(
                    name=self._prefix + name, count=count, assignments=None
                )
                grown = CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000)
                (result,) = self.ask(grown, 3).results
            else:
                wanted_topic = CreatableTopic(
                    name=self._prefix + name, num_partitions=count, replication_factor=1
                )
                made = CreateTopicsRequest(topics=[wanted_topic], timeout_ms=10_000)
                (result,) = self.ask(made, 7).topics
            assert result.error_code == 0, result
            eventually(lambda n=name, c=count: self._sees(n, c), timeout_s=_PATIENCE_S)  # type: ignore[misc]
        self.wait(0)  # Coordinators hear of topics a little later than clients.

    def _sees(self, name: str, count: int) -> bool:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=self._prefix + name)],
            allow_auto_topic_creation=False,
        )
        (topic,) = self.ask(request, 12).topics
        if topic.error_code or len(topic.partitions) != count:
            return False
        partitions = dict.fromkeys(range(count))
        self.image.topics[name] = SimpleNamespace(topic_id=topic.topic_id, partitions=partitions)
        self.image.topic_names_by_id[topic.topic_id] = name
        return True

    def delete_topic(self, name: str) -> None:
        gone = self.image.topics.pop(name)
        self.image.topic_names_by_id.pop(gone.topic_id)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=self._prefix + name)], timeout_ms=10_000
        )
        (result,) = self.ask(request, 6).responses
        assert result.error_code == 0, result
        self.wait(0)

    def wait(self, elapsed_ms: int) -> None:
        time.sleep((elapsed_ms + _MOMENT_MS) / 1000)  # The history says so.

    # Requests

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, *, version: int = 1, client: str = "c"
    ) -> ConsumerGroupHeartbeatResponse:
        request.group_id = self._group
        if request.subscribed_topic_names is not None:
            request.subscribed_topic_names = [
                self._prefix + t for t in request.subscribed_topic_names
            ]
        told = self.ask(request, version, client=client)
        assert isinstance(told, ConsumerGroupHeartbeatResponse)
        return told

    def join(self, client: str = "a", member_id: str = "", **details: Any) -> Any:
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=details["session_ms"],
            rebalance_timeout_ms=details["rebalance_ms"],
            member_id=member_id,
            group_instance_id=details["instance_id"],
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=self._to_server(metadata))
                for name, metadata in details["protocols"]
            ],
        )
        return LateAnswer(self._threads.submit(self._joined, request, client), self)

    def _joined(self, request: JoinGroupRequest, client: str) -> Any:
        told = self.ask(request, 9, client=client)
        for member in told.members:
            member.metadata = self._from_server(member.metadata)
        return told

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        **details: Any,
    ) -> Any:
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=details["instance_id"],
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=member, assignment=self._assignment(share, to_server=True)
                )
                for member, share in (assignments or {}).items()
            ],
        )
        return LateAnswer(self._threads.submit(self._synced, request), self)

    def _synced(self, request: SyncGroupRequest) -> Any:
        told = self.ask(request, 4)
        if not told.error_code:
            told.assignment = self._assignment(told.assignment, to_server=False)
        return told

    def beat(self, member_id: str, generation: int, **details: Any) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self._group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=details.get("instance_id"),
        )
        return ErrorCode(self.ask(request, 4).error_code)

    def leave(self, *members: Any, **_details: Any) -> LeaveGroupResponse:
        identities = [MemberIdentity(member_id=m, group_instance_id=i) for m, i in members]
        request = LeaveGroupRequest(group_id=self._group, members=identities)
        told = self.ask(request, 5)
        assert isinstance(told, LeaveGroupResponse)
        return told

    def commit(
        self, offset: int, member_id: str = "", generation: int = -1, **to: Any
    ) -> ErrorCode:
        partition = OffsetCommitRequestPartition(
            partition_index=to["partition"], committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[
                OffsetCommitRequestTopic(name=self._prefix + to["topic"], partitions=[partition])
            ],
        )
        told = self.ask(request, 9)
        return ErrorCode(told.topics[0].partitions[0].error_code)

    # Names of topics within the bytes that classic consumers exchange

    def _to_server(self, metadata: bytes) -> bytes:
        read = ConsumerProtocolSubscription.from_bytes(metadata)
        read.topics = [self._prefix + topic for topic in read.topics]
        for owned in read.owned_partitions:
            owned.topic = self._prefix + owned.topic
        return read.to_bytes(read_prefix(metadata))

    def _from_server(self, metadata: bytes) -> bytes:
        read = ConsumerProtocolSubscription.from_bytes(metadata)
        read.topics = [topic.removeprefix(self._prefix) for topic in read.topics]
        for owned in read.owned_partitions:
            owned.topic = owned.topic.removeprefix(self._prefix)
        return read.to_bytes(read_prefix(metadata))

    def _assignment(self, share: bytes, *, to_server: bool) -> bytes:
        read = ConsumerProtocolAssignment.from_bytes(share)
        for topic in read.assigned_partitions:
            if to_server:
                topic.topic = self._prefix + topic.topic
            else:
                topic.topic = topic.topic.removeprefix(self._prefix)
        return read.to_bytes(read_prefix(share))

    # Looking

    def described(self) -> DescribedGroup | str:
        """The group; if it is a classic one, its state."""
        request = ConsumerGroupDescribeRequest(group_ids=[self._group])
        (group,) = self.ask(request, 1).groups
        if not group.error_code:
            assert isinstance(group, DescribedGroup)
            return group
        (classic,) = self.ask(DescribeGroupsRequest(groups=[self._group]), 5).groups
        return str(classic.group_state)


class LiveHistory(ConsumerTranscript):
    """A text played to a server; the answers are compared between servers, and not to the text."""

    def __init__(self, port: int, history: str) -> None:
        super().__init__()
        self._live = LiveRig(port, history)
        self._rig = self._live
        self._ids: dict[str, set[str]] = {}

    def play(self, text: str) -> str:
        """Command by command, because the text also says which answers take their time."""
        lines: list[str] = []
        try:
            for step in re.split("(?m)^(?=> )", text):
                must_wait = ": joining" in step or ": syncing" in step
                self._live.patience_s = _MOMENT_MS / 1000 if must_wait else _PATIENCE_S
                lines.append(super().play(step))
            return self._named("".join(lines))
        finally:
            self._live.close()

    def _set_up(self, words: list[str]) -> None:
        if words[:1] == ["topics"]:
            super()._set_up(words)

    def _named(self, text: str) -> str:
        """Ids that a server made up, by the names of the consumers that have them."""
        for name, ids in self._ids.items():
            for member_id in ids:
                text = text.replace(member_id, f"<{name}>")
        return text

    def _run(self, words: list[str]) -> list[str]:
        lines = super()._run(words)
        for name, consumer in self._classic.items():
            if consumer.member_id:
                self._ids.setdefault(name, set()).add(consumer.member_id)
        return lines

    def _crash(self, _words: list[str], _details: Details) -> list[str]:
        return []  # Nobody is to notice one, so it makes no difference when there is none.

    def _written(self, _words: list[str], _details: Details) -> list[str]:
        return []

    def _state(self, _words: list[str], _details: Details) -> list[str]:
        group = self._live.described()
        if isinstance(group, str):
            return [f"a classic group, {group}"]
        members = sorted(self._described_member(member) for member in group.members)
        return [
            f"{group.group_state}, epoch {group.group_epoch}, target of {group.assignment_epoch}",
            *members,
        ]

    def _described_member(self, member: Member) -> str:
        return (
            f"  {self._named(member.member_id)} epoch {member.member_epoch}"
            f"{' classic' if member.member_type == 0 else ''}, "
            f"has {self._list(self._held(member.assignment.topic_partitions))}, "
            f"shall have {self._list(self._held(member.target_assignment.topic_partitions))}"
        )

    def _held(self, topics: Iterable[TopicPartitions]) -> Held:
        return {(topic.topic_id, number) for topic in topics for number in topic.partitions}
