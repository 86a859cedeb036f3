"""ConsumerGroupHeartbeat and ConsumerGroupDescribe in all versions, with a whole broker behind."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.list_groups import ListGroupsRequest

SETTINGS = {"offsets.topic.num.partitions": "3"}
NOT_ASKED = -(1 << 31)


@pytest.fixture
def grouped(serve: Callable[..., Any]) -> Any:
    """A broker with a topic of two partitions and a coordinator."""
    served = serve(SETTINGS)
    served.create("t", partitions=2)
    served.ask(FindCoordinatorRequest(key="g"), 1)
    return served


def join(member_id: str = "a", **fields: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        **{
            "group_id": "g",
            "member_id": member_id,
            "rebalance_timeout_ms": 6000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
            **fields,
        }
    )


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_lives_in_every_version(grouped: Any, version: int) -> None:
    joined = grouped.ask(join("" if version == 0 else "a"), version)
    assert (joined.error_code, joined.member_epoch) == (0, 2)
    assert [topic.partitions for topic in joined.assignment.topic_partitions] == [[0, 1]]
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=joined.member_id, member_epoch=joined.member_epoch
    )
    beaten = grouped.ask(beat, version)
    assert (beaten.error_code, beaten.assignment) == (0, None)
    beat.member_epoch = -1
    assert grouped.ask(beat, version).member_epoch == -1


def test_a_pattern_is_matched_from_version_1_on(grouped: Any) -> None:
    joined = grouped.ask(join(subscribed_topic_names=None, subscribed_topic_regex="t+"), 1)
    assert [topic.partitions for topic in joined.assignment.topic_partitions] == [[0, 1]]


def test_a_refusal_comes_with_a_sentence(grouped: Any) -> None:
    refused = grouped.ask(join(server_assignor="best"), 1)
    assert refused.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert refused.error_message == (
        "ServerAssignor best is not supported. Supported assignors: uniform, range."
    )


def test_a_broker_without_the_protocol_says_so(serve: Callable[..., Any]) -> None:
    served = serve({**SETTINGS, "group.coordinator.rebalance.protocols": "classic"})
    served.ask(FindCoordinatorRequest(key="g"), 1)
    assert served.ask(join(), 1).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_without_the_offsets_topic_there_is_no_coordinator(serve: Callable[..., Any]) -> None:
    assert serve(SETTINGS).ask(join(), 1).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", [0, 1])
def test_a_group_is_described_in_every_version(grouped: Any, version: int) -> None:
    grouped.ask(join(), 1)
    request = ConsumerGroupDescribeRequest(group_ids=["g", "nobody", ""])
    found, missing, nameless = grouped.ask(request, version).groups
    assert (found.error_code, found.group_state, found.group_epoch) == (0, "Stable", 2)
    (member,) = found.members
    assert (member.member_id, member.client_id, member.client_host) == ("a", "test", "/127.0.0.1")
    assert member.member_type == (1 if version else -1)
    (owned,) = member.assignment.topic_partitions
    assert (owned.topic_name, owned.partitions) == ("t", [0, 1])
    assert found.authorized_operations == NOT_ASKED
    assert (missing.group_id, missing.error_code) == ("nobody", ErrorCode.GROUP_ID_NOT_FOUND)
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


def test_what_may_be_done_with_a_group_is_told_on_request(grouped: Any) -> None:
    grouped.ask(join(), 1)
    request = ConsumerGroupDescribeRequest(group_ids=["g", "x"], include_authorized_operations=True)
    found, missing = grouped.ask(request, 1).groups
    assert found.authorized_operations > 0 and missing.authorized_operations == NOT_ASKED


def test_other_requests_know_what_kind_of_group_it_is(grouped: Any) -> None:
    grouped.ask(join(), 1)
    (listed,) = grouped.ask(ListGroupsRequest(types_filter=["consumer"]), 5).groups
    assert (listed.group_id, listed.group_type, listed.group_state) == ("g", "consumer", "Stable")
    assert grouped.ask(ListGroupsRequest(types_filter=["classic"]), 5).groups == []
    (described,) = grouped.ask(DescribeGroupsRequest(groups=["g"]), 6).groups
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described.error_message == "Group g is not a classic group."


def test_the_feature_is_announced(grouped: Any) -> None:
    request = ApiVersionsRequest(client_software_name="n", client_software_version="1")
    told = grouped.ask(request, 4)
    levels = {feature.name: feature.max_version_level for feature in told.finalized_features}
    assert levels["group.version"] == 1
