"""JoinGroup in all versions."""

import asyncio
from typing import Any

import pytest
from tests.unit.broker.handlers.classic_members import join, sync

from penstock.errors import ErrorCode
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.sync_group import SyncGroupRequestAssignment


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


@pytest.mark.parametrize("version", range(10))
def test_without_the_topic_there_is_no_coordinator(served: Any, version: int) -> None:
    told = served.ask(join(), version)
    assert told.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
