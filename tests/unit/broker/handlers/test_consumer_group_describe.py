"""ConsumerGroupDescribe in all versions, and what older requests say of such a group."""

from typing import Any

import pytest
from tests.unit.broker.handlers.consumer_members import join

from penstock.errors import ErrorCode
from penstock.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.list_groups import ListGroupsRequest

NOT_ASKED = -(1 << 31)


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
