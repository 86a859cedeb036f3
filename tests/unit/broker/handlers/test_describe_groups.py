"""DescribeGroups in all versions."""

from typing import Any

import pytest
from tests.unit.broker.handlers.classic_members import joined, sync

from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest


@pytest.mark.parametrize("version", range(7))
def test_a_group_is_described_in_every_version(grouped: Any, version: int) -> None:
    member = joined(grouped)
    grouped.ask(sync(member, 5), 5)
    (told,) = grouped.ask(DescribeGroupsRequest(groups=["g"]), version).groups
    assert (told.error_code, told.group_state, told.protocol_data) == (0, "Stable", "range")
    (described,) = told.members
    assert (described.member_id, described.client_id) == (member, "test")
    assert described.client_host == "/127.0.0.1"
    assert (described.member_metadata, described.member_assignment) == (b"meta", b"all")


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_is_not_there_is_dead_and_later_an_error(grouped: Any, version: int) -> None:
    (told,) = grouped.ask(DescribeGroupsRequest(groups=["nope"]), version).groups
    assert told.group_state == "Dead"
    if version >= 6:
        assert told.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert told.error_message == "Group nope not found."
    else:
        assert told.error_code == 0


@pytest.mark.parametrize("version", [3, 6])
def test_who_asks_learns_what_may_be_done_to_a_group(grouped: Any, version: int) -> None:
    joined(grouped)
    asked = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    (told,) = grouped.ask(asked, version).groups
    read, delete, describe, describe_configs, alter_configs = 3, 6, 8, 10, 11
    bits = (read, delete, describe, describe_configs, alter_configs)
    assert told.authorized_operations == sum(1 << bit for bit in bits)
    (told,) = grouped.ask(DescribeGroupsRequest(groups=["g"]), version).groups
    assert told.authorized_operations == -(1 << 31)


@pytest.mark.parametrize("version", range(7))
def test_without_the_topic_there_is_no_coordinator(served: Any, version: int) -> None:
    (group,) = served.ask(DescribeGroupsRequest(groups=["g"]), version).groups
    assert group.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
