"""Asking coordinators: one question per broker, again when one has moved or is loading."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.client.conftest import StubBroker

from penstock.client.operations.coordinators import CoordinatorKind, find_coordinators
from penstock.client.operations.group_offsets import (
    alter_group_offsets,
    delete_group_offsets,
    group_offsets,
)
from penstock.client.operations.groups import (
    delete_groups,
    describe_consumer_groups,
    list_groups,
    remove_members,
)
from penstock.client.operations.transactions import describe_transactions, fence_producers
from penstock.client.values import Node, OffsetAndMetadata, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import (
    ErrorCode,
    GroupIdNotFound,
    GroupNotEmpty,
    NotCoordinator,
    ProtocolError,
    UnknownMemberId,
    UnsupportedVersion,
)
from penstock.protocol.apis import ApiKey, Request
from penstock.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
)
from penstock.protocol.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from penstock.protocol.messages.consumer_protocol import TopicPartition as Assigned
from penstock.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from penstock.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from penstock.protocol.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from penstock.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from penstock.protocol.messages.init_producer_id import InitProducerIdResponse
from penstock.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from penstock.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from penstock.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from penstock.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.protocol.messages.offset_delete import OffsetDeleteResponse
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

ORDERS = TopicPartition("orders", 0)


class Pair:
    """Two brokers; `home` says which of them coordinates a group or transactional id."""

    def __init__(self) -> None:
        self.brokers = [StubBroker(0), StubBroker(1)]
        self.home: dict[str, int] = {}
        for broker in self.brokers:
            broker.answers[ApiKey.METADATA] = lambda *_: self.metadata()
            broker.answers[ApiKey.FIND_COORDINATOR] = self.find

    def metadata(self) -> MetadataResponse:
        nodes = [
            MetadataResponseBroker(node_id=number, host="127.0.0.1", port=broker.port)
            for number, broker in enumerate(self.brokers)
        ]
        return MetadataResponse(brokers=nodes, controller_id=0, cluster_id="pair")

    def find(self, request: Any, version: int) -> FindCoordinatorResponse:
        if version < 4:
            at = self.home.get(request.key, 0)
            port = self.brokers[at].port
            return FindCoordinatorResponse(node_id=at, host="127.0.0.1", port=port)
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(
                    key=key,
                    node_id=self.home.get(key, 0),
                    host="127.0.0.1",
                    port=self.brokers[self.home.get(key, 0)].port,
                )
                for key in request.coordinator_keys
            ]
        )

    def serve(self, api: ApiKey, answer: Any) -> None:
        for number, broker in enumerate(self.brokers):
            broker.answers[api] = lambda request, version, at=number: answer(at, request, version)

    def asked(self, api: ApiKey) -> list[list[int]]:
        return [[v for one, v in broker.asked if one is api] for broker in self.brokers]


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    for broker in made.brokers:
        broker.close()


@pytest.fixture
def cluster(pair: Pair) -> Iterator[ClusterClient]:
    with ClusterClient(pair.brokers[0].address, retry_backoff_ms=1, api_timeout_ms=500) as made:
        yield made


def deleted(at: int, request: Any, version: int) -> DeleteGroupsResponse:
    results = [DeletableGroupResult(group_id=name) for name in request.groups_names]
    return DeleteGroupsResponse(results=results)


def test_every_broker_is_asked_once_for_all_its_groups(pair: Pair, cluster: ClusterClient) -> None:
    pair.home = {"a": 0, "b": 1, "c": 1}
    pair.serve(ApiKey.DELETE_GROUPS, deleted)
    assert delete_groups(cluster, ["a", "b", "c"]) == {"a": None, "b": None, "c": None}
    assert [len(versions) for versions in pair.asked(ApiKey.DELETE_GROUPS)] == [1, 1]


def test_older_brokers_find_one_coordinator_at_a_time(pair: Pair, cluster: ClusterClient) -> None:
    pair.home = {"b": 1}
    for broker in pair.brokers:
        broker.versions[ApiKey.FIND_COORDINATOR] = range(4)
    found = find_coordinators(cluster, ["a", "b"], CoordinatorKind.GROUP)
    nodes = [Node(n, "127.0.0.1", pair.brokers[n].port) for n in (0, 1)]
    assert found == {"a": nodes[0], "b": nodes[1]}


def test_a_group_that_moved_is_followed(pair: Pair, cluster: ClusterClient) -> None:
    pair.home = {"a": 0}

    def answer(at: int, request: Any, version: int) -> DeleteGroupsResponse:
        done = deleted(at, request, version)
        if at == 0:
            pair.home = {"a": 1}
            done.results[0].error_code = int(ErrorCode.NOT_COORDINATOR)
        return done

    pair.serve(ApiKey.DELETE_GROUPS, answer)
    assert delete_groups(cluster, ["a"]) == {"a": None}
    assert [len(versions) for versions in pair.asked(ApiKey.DELETE_GROUPS)] == [1, 1]


def test_a_coordinator_that_loads_is_waited_for(pair: Pair, cluster: ClusterClient) -> None:
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3

    def answer(at: int, request: Any, version: int) -> DeleteGroupsResponse:
        done = deleted(at, request, version)
        if codes:
            done.results[0].error_code = int(codes.pop())
        return done

    pair.serve(ApiKey.DELETE_GROUPS, answer)
    assert delete_groups(cluster, ["a"]) == {"a": None}


def test_the_waiting_has_an_end(pair: Pair, cluster: ClusterClient) -> None:
    def answer(at: int, request: Any, version: int) -> DeleteGroupsResponse:
        done = deleted(at, request, version)
        done.results[0].error_code = int(ErrorCode.NOT_COORDINATOR)
        return done

    pair.serve(ApiKey.DELETE_GROUPS, answer)
    assert isinstance(delete_groups(cluster, ["a"])["a"], NotCoordinator)


def test_what_a_group_refuses_stands_beside_what_was_done(
    pair: Pair, cluster: ClusterClient
) -> None:
    def answer(at: int, request: Any, version: int) -> DeleteGroupsResponse:
        done = deleted(at, request, version)
        done.results[0].error_code = int(ErrorCode.NON_EMPTY_GROUP)
        return done

    pair.serve(ApiKey.DELETE_GROUPS, answer)
    done = delete_groups(cluster, ["a", "b"])
    assert isinstance(done["a"], GroupNotEmpty) and done["b"] is None


def test_groups_of_all_brokers_are_listed_with_kafkas_capitals(
    pair: Pair, cluster: ClusterClient
) -> None:
    listed = [
        [ListedGroup(group_id="b", protocol_type="consumer", group_state="Stable")],
        [
            ListedGroup(
                group_id="a", protocol_type="consumer", group_state="empty", group_type="consumer"
            ),
            ListedGroup(group_id="c", protocol_type="connect", group_type="classic"),
        ],
    ]
    pair.serve(ApiKey.LIST_GROUPS, lambda at, *_: ListGroupsResponse(groups=listed[at]))
    found = list_groups(cluster)
    assert [(g.group_id, g.type, g.state) for g in found] == [
        ("a", "Consumer", "Empty"),
        ("b", None, "Stable"),
        ("c", "Classic", None),
    ]
    assert [g.is_consumer_group for g in found] == [True, True, False]
    assert [g.group_id for g in list_groups(cluster, types=["Classic"])] == ["c"]


def test_a_state_filter_on_an_old_broker_is_refused(pair: Pair, cluster: ClusterClient) -> None:
    for broker in pair.brokers:
        broker.versions[ApiKey.LIST_GROUPS] = range(3)
    pair.serve(ApiKey.LIST_GROUPS, lambda *_: ListGroupsResponse())
    with pytest.raises(UnsupportedVersion, match="too old to list groups by state"):
        list_groups(cluster, states=["Empty"])


def classic(at: int, request: Any, version: int) -> DescribeGroupsResponse:
    given = ConsumerProtocolAssignment(
        assigned_partitions=[Assigned(topic="orders", partitions=[0])]
    )
    member = DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_assignment=given.to_bytes(1)
    )
    described = {
        "old": DescribedGroup(
            group_id="old",
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=[member, DescribedGroupMember(member_id="n")],
        ),
        "worker": DescribedGroup(group_id="worker", protocol_type="connect"),
    }
    missing = int(ErrorCode.GROUP_ID_NOT_FOUND)
    return DescribeGroupsResponse(
        groups=[
            described.get(name) or DescribedGroup(group_id=name, error_code=missing)
            for name in request.groups
        ]
    )


def newer(at: int, request: Any, version: int) -> ConsumerGroupDescribeResponse:
    missing = int(ErrorCode.GROUP_ID_NOT_FOUND)
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedConsumerGroup(group_id=name, group_state="Empty", group_epoch=4)
            if name == "new"
            else DescribedConsumerGroup(group_id=name, error_code=missing)
            for name in request.group_ids
        ]
    )


def test_groups_of_both_protocols_are_described_together(
    pair: Pair, cluster: ClusterClient
) -> None:
    pair.serve(ApiKey.DESCRIBE_GROUPS, classic)
    pair.serve(ApiKey.CONSUMER_GROUP_DESCRIBE, newer)
    found = describe_consumer_groups(cluster, ["old", "new", "none", "worker"])
    old, new = found["old"], found["new"]
    assert not isinstance(old, ProtocolError) and not isinstance(new, ProtocolError)
    assert (old.type, old.assignor, old.epoch) == ("Classic", "range", None)
    assert [member.assignment for member in old.members] == [(ORDERS,), ()]
    assert (new.type, new.state, new.epoch) == ("Consumer", "Empty", 4)
    assert isinstance(found["none"], GroupIdNotFound)
    assert "is not a consumer group" in str(found["worker"])


def test_a_broker_without_the_new_protocol_describes_classic_groups(
    pair: Pair, cluster: ClusterClient
) -> None:
    pair.serve(ApiKey.DESCRIBE_GROUPS, classic)
    found = describe_consumer_groups(cluster, ["old"])["old"]
    assert not isinstance(found, ProtocolError) and found.state == "Stable"


def test_offsets_are_fetched_by_name_in_both_shapes(pair: Pair, cluster: ClusterClient) -> None:
    def answer(at: int, request: Any, version: int) -> OffsetFetchResponse:
        if version < 8:
            part = OffsetFetchResponsePartition(committed_offset=5, committed_leader_epoch=2)
            return OffsetFetchResponse(
                topics=[OffsetFetchResponseTopic(name="orders", partitions=[part])]
            )
        known = OffsetFetchResponsePartitions(
            committed_offset=5, committed_leader_epoch=2, metadata=""
        )
        none = OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1)
        topics = [OffsetFetchResponseTopics(name="orders", partitions=[known, none])]
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)])

    pair.serve(ApiKey.OFFSET_FETCH, answer)
    expected = {ORDERS: OffsetAndMetadata(5, "", 2)}
    assert group_offsets(cluster, "g") == expected
    for broker in pair.brokers:
        broker.versions[ApiKey.OFFSET_FETCH] = range(1, 8)
    cluster.close()
    assert group_offsets(cluster, "g") == expected
    assert pair.asked(ApiKey.OFFSET_FETCH)[0] == [9, 7]


def test_offsets_of_an_active_group_cannot_be_set(pair: Pair, cluster: ClusterClient) -> None:
    def answer(at: int, request: Any, version: int) -> OffsetCommitResponse:
        part = OffsetCommitResponsePartition(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID))
        return OffsetCommitResponse(
            topics=[OffsetCommitResponseTopic(name="orders", partitions=[part])]
        )

    pair.serve(ApiKey.OFFSET_COMMIT, answer)
    with pytest.raises(UnknownMemberId):
        alter_group_offsets(cluster, "g", {ORDERS: OffsetAndMetadata(1)})
    assert pair.asked(ApiKey.OFFSET_COMMIT)[0] == [9]


def test_deleting_offsets_of_an_unknown_group_is_an_error(
    pair: Pair, cluster: ClusterClient
) -> None:
    code = int(ErrorCode.GROUP_ID_NOT_FOUND)
    pair.serve(ApiKey.OFFSET_DELETE, lambda *_: OffsetDeleteResponse(error_code=code))
    with pytest.raises(GroupIdNotFound):
        delete_group_offsets(cluster, "g", [ORDERS])


def test_a_connection_closed_for_being_idle_is_opened_again(
    pair: Pair, cluster: ClusterClient
) -> None:
    pair.serve(ApiKey.OFFSET_FETCH, lambda *_: OffsetFetchResponse())
    group_offsets(cluster, "g")
    for broker in pair.brokers:
        broker.drop_connections()
    assert group_offsets(cluster, "g") == {}


def test_members_are_removed_by_their_static_name_or_their_id(
    pair: Pair, cluster: ClusterClient
) -> None:
    seen: list[tuple[str, str | None]] = []

    def answer(at: int, request: Any, version: int) -> LeaveGroupResponse:
        seen.extend((one.member_id, one.group_instance_id) for one in request.members)
        gone = MemberResponse(member_id="m", error_code=int(ErrorCode.UNKNOWN_MEMBER_ID))
        return LeaveGroupResponse(members=[gone] if len(request.members) > 1 else [])

    pair.serve(ApiKey.LEAVE_GROUP, answer)
    pair.serve(ApiKey.DESCRIBE_GROUPS, classic)
    group = describe_consumer_groups(cluster, ["old"])["old"]
    assert not isinstance(group, ProtocolError)
    remove_members(cluster, "old", group.members[:1], reason="test")
    assert seen == [("m", None)]
    with pytest.raises(UnknownMemberId):
        remove_members(cluster, "old", group.members, reason="test")


def test_transactions_are_described_by_their_own_coordinators(
    pair: Pair, cluster: ClusterClient
) -> None:
    pair.home = {"pay": 1}

    def answer(at: int, request: Any, version: int) -> DescribeTransactionsResponse:
        missing = int(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        topics = [TopicData(topic="orders", partitions=[0])]
        known = {"pay": TransactionState(transactional_id="pay", producer_id=at, topics=topics)}
        return DescribeTransactionsResponse(
            transaction_states=[
                known.get(name) or TransactionState(transactional_id=name, error_code=missing)
                for name in request.transactional_ids
            ]
        )

    pair.serve(ApiKey.DESCRIBE_TRANSACTIONS, answer)
    found = describe_transactions(cluster, ["pay", "none"])
    pay = found["pay"]
    assert not isinstance(pay, ProtocolError)
    assert (pay.coordinator_id, pay.producer_id, pay.partitions) == (1, 1, (ORDERS,))
    assert isinstance(found["none"], ProtocolError)


def test_fencing_waits_for_the_abort_that_it_causes(pair: Pair, cluster: ClusterClient) -> None:
    codes = [ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS]
    asked: list[Request] = []

    def answer(at: int, request: Any, version: int) -> InitProducerIdResponse:
        asked.append(request)
        return InitProducerIdResponse(error_code=int(codes.pop()))

    pair.serve(ApiKey.INIT_PRODUCER_ID, answer)
    fence_producers(cluster, ["pay"])
    assert len(asked) == 3
