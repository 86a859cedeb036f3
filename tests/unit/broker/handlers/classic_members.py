"""Requests of members of a classic group, for the tests of several handlers."""

from typing import Any

from penstock.errors import ErrorCode
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


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
