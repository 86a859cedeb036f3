"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups in all versions."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.list_groups import ListGroupsRequest
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SETTINGS = {"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture
def grouped(serve: Callable[..., Any]) -> Any:
    """A broker whose groups do not wait for company."""
    served = serve(SETTINGS)
    served.ask(FindCoordinatorRequest(key="g"), 1)
    return served


def join(member_id: str = "", **fields: Any) -> JoinGroupRequest:
    return JoinGroupRequest(
        **{
            "group_id": "g",
            "session_timeout_ms": 6000,
            "rebalance_timeout_ms": 6000,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"meta")],
            **fields,
        }
    )


def sync(member_id: str, version: int, generation: int = 1, **fields: Any) -> SyncGroupRequest:
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    share = SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
    return SyncGroupRequest(
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        assignments=[share],
        **{**named, **fields},
    )


def joined(served: Any, version: int = 9) -> str:
    """The id of a member that is alone in its group."""
    first = served.ask(join(), version)
    if first.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        first = served.ask(join(first.member_id), version)
    assert first.error_code == 0
    return str(first.member_id)


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_in_every_version(grouped: Any, version: int) -> None:
    first = grouped.ask(join(), version)
    if version >= 4:
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert first.member_id.startswith("test-")
        first = grouped.ask(join(first.member_id), version)
    assert (first.error_code, first.generation_id, first.protocol_name) == (0, 1, "range")
    assert first.leader == first.member_id
    assert [(m.member_id, m.metadata) for m in first.members] == [(first.member_id, b"meta")]
    if version >= 7:
        assert first.protocol_type == "consumer"


@pytest.mark.parametrize("version", range(6))
def test_a_leader_syncs_in_every_version(grouped: Any, version: int) -> None:
    member = joined(grouped)
    told = grouped.ask(sync(member, version), version)
    assert (told.error_code, told.assignment) == (0, b"all")
    if version >= 5:
        assert (told.protocol_type, told.protocol_name) == ("consumer", "range")


def test_from_version_5_on_a_member_that_syncs_names_its_protocol(grouped: Any) -> None:
    member = joined(grouped)
    told = grouped.ask(sync(member, 5, protocol_name=None), 5)
    assert told.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(5))
def test_a_heartbeat_tells_by_its_code(grouped: Any, version: int) -> None:
    member = joined(grouped)
    grouped.ask(sync(member, 5), 5)

    def beat(generation: int, member_id: str = member) -> ErrorCode:
        asked = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
        return ErrorCode(grouped.ask(asked, version).error_code)

    assert beat(1) is ErrorCode.NONE
    assert beat(2) is ErrorCode.ILLEGAL_GENERATION
    assert beat(1, "stranger") is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(6))
def test_a_member_leaves_in_every_version(grouped: Any, version: int) -> None:
    member = joined(grouped)
    if version < 3:
        assert (
            grouped.ask(LeaveGroupRequest(group_id="g", member_id=member), version).error_code == 0
        )
        again = grouped.ask(LeaveGroupRequest(group_id="g", member_id=member), version)
        assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        return
    members = [MemberIdentity(member_id=member), MemberIdentity(member_id="stranger")]
    told = grouped.ask(LeaveGroupRequest(group_id="g", members=members), version)
    assert told.error_code == 0
    assert [(m.member_id, m.error_code) for m in told.members] == [
        (member, 0),
        ("stranger", ErrorCode.UNKNOWN_MEMBER_ID),
    ]


@pytest.mark.parametrize("version", range(10))
def test_a_join_that_is_refused_says_why(grouped: Any, version: int) -> None:
    told = grouped.ask(join(session_timeout_ms=1), version)
    assert told.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert told.generation_id == -1
    assert told.protocol_name == (None if version >= 7 else "")


def test_two_members_wait_for_each_other(grouped: Any) -> None:
    async def story() -> None:
        first = (await grouped.answer(join(), 3)).member_id
        second = asyncio.ensure_future(grouped.answer(join(), 3))
        await asyncio.sleep(0)
        assert not second.done()
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=first)
        assert (await grouped.answer(beat, 4)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        leader = await grouped.answer(join(first), 3)
        follower = await second
        assert leader.generation_id == follower.generation_id == 2
        assert len(leader.members) == 2
        assert follower.members == []
        waiting = asyncio.ensure_future(grouped.answer(sync(follower.member_id, 3, 2), 3))
        await asyncio.sleep(0)
        assert not waiting.done()
        shares = [
            SyncGroupRequestAssignment(member_id=leader.member_id, assignment=b"one"),
            SyncGroupRequestAssignment(member_id=follower.member_id, assignment=b"two"),
        ]
        request = sync(leader.member_id, 3, 2)
        request.assignments = shares
        assert (await grouped.answer(request, 3)).assignment == b"one"
        assert (await waiting).assignment == b"two"

    grouped.run(story())


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


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_in_every_version(grouped: Any, version: int) -> None:
    joined(grouped)
    told = grouped.ask(ListGroupsRequest(), version)
    assert told.error_code == 0
    (group,) = told.groups
    assert (group.group_id, group.protocol_type) == ("g", "consumer")
    if version >= 4:
        assert group.group_state == "CompletingRebalance"
    if version >= 5:
        assert group.group_type == "classic"


def test_groups_are_listed_by_state_and_type(grouped: Any) -> None:
    joined(grouped)

    def listed(states: list[str], types: list[str]) -> list[str]:
        asked = ListGroupsRequest(states_filter=states, types_filter=types)
        return [group.group_id for group in grouped.ask(asked, 5).groups]

    assert listed(["completingrebalance"], []) == ["g"]
    assert listed(["Stable"], []) == []
    assert listed([], ["Classic"]) == ["g"]
    assert listed([], ["share"]) == []


@pytest.mark.parametrize("version", range(7))
def test_without_the_topic_there_is_no_coordinator(served: Any, version: int) -> None:
    told = served.ask(join(), version)
    assert told.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (group,) = served.ask(DescribeGroupsRequest(groups=["g"]), version).groups
    assert group.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    told = served.ask(beat, min(version, 4))
    assert told.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
