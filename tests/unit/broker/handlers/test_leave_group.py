"""LeaveGroup in all versions: one member, and from version 3 on several."""

from typing import Any

import pytest
from tests.unit.broker.handlers.classic_members import joined

from penstock.errors import ErrorCode
from penstock.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity


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
