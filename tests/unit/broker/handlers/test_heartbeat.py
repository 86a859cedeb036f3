"""Heartbeat in all versions: the code is the answer."""

from typing import Any

import pytest
from tests.unit.broker.handlers.classic_members import joined, sync

from penstock.errors import ErrorCode
from penstock.protocol.messages.heartbeat import HeartbeatRequest


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


@pytest.mark.parametrize("version", range(5))
def test_without_the_topic_there_is_no_coordinator(served: Any, version: int) -> None:
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert served.ask(beat, version).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
