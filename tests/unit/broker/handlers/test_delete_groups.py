"""DeleteGroups: every version answers, for each group."""

from typing import Any

from tests.unit.broker.handlers.committed_offsets import commit, fetch

from penstock.errors import ErrorCode
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol


def test_groups_are_deleted_one_by_one(grouped: Any) -> None:
    commit(grouped, 8, {("t", 0): 5})
    busy = JoinGroupRequest(
        group_id="busy",
        session_timeout_ms=6000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    assert grouped.ask(busy, 3).error_code == 0
    for version in range(3):
        commit(grouped, 8, {("t", 0): 5})
        asked = DeleteGroupsRequest(groups_names=["g", "busy", "none", "", "g"])
        told = grouped.ask(asked, version).results
        assert [(result.group_id, ErrorCode(result.error_code)) for result in told] == [
            ("g", ErrorCode.NONE),
            ("busy", ErrorCode.NON_EMPTY_GROUP),
            ("none", ErrorCode.GROUP_ID_NOT_FOUND),
            ("", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        assert fetch(grouped, 9, None) == {}
