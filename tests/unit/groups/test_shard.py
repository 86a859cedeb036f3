"""A shard finds its groups, answers for them all, and comes back from its log."""

import struct

import pytest
from tests.unit.groups.rig import Rig, Written, code_of, subscription

from penstock.errors import ErrorCode
from penstock.groups.shard import GroupShard
from penstock.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
)


def test_a_request_for_no_group_at_all_is_refused() -> None:
    rig = Rig()
    assert rig.join(group_id="").told.error_code == ErrorCode.INVALID_GROUP_ID
    assert rig.sync("m", 1, group_id="").told.error_code == ErrorCode.INVALID_GROUP_ID
    assert rig.beat("m", 1, group_id="") is ErrorCode.INVALID_GROUP_ID
    assert code_of(lambda: rig.leave("m", group_id="")) is ErrorCode.INVALID_GROUP_ID


def test_nobody_is_a_member_of_a_group_that_is_not_there() -> None:
    rig = Rig()
    assert rig.join("a", "a-1").told.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.sync("a-1", 1).told.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.beat("a-1", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.leave("a-1").members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.shard.groups == {}


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", [("range", b"")]), ("consumer", [])])
def test_a_join_that_fails_leaves_no_group_behind(
    protocol_type: str, protocols: list[tuple[str, bytes]]
) -> None:
    rig = Rig()
    join = rig.join("a", version=3, protocol_type=protocol_type, protocols=protocols)
    assert join.told.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert rig.shard.groups == {}


# Bad input: what is refused, and that it changes nothing.

BAD_REQUESTS = {
    "join with an id nobody gave out": (
        lambda rig, _: ErrorCode(rig.join("x", "x-99").told.error_code),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "join with another type": (
        lambda rig, _: ErrorCode(rig.join("x", protocol_type="connect").told.error_code),
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ),
    "join with a static id of nobody": (
        lambda rig, member: ErrorCode(rig.join("a", member, instance_id="i").told.error_code),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "join with no session": (
        lambda rig, _: ErrorCode(rig.join("x", session_ms=0).told.error_code),
        ErrorCode.INVALID_SESSION_TIMEOUT,
    ),
    "sync of the future": (
        lambda rig, member: ErrorCode(rig.sync(member, 2).told.error_code),
        ErrorCode.ILLEGAL_GENERATION,
    ),
    "sync of the past": (
        lambda rig, member: ErrorCode(rig.sync(member, -1).told.error_code),
        ErrorCode.ILLEGAL_GENERATION,
    ),
    "sync of a stranger": (
        lambda rig, _: ErrorCode(rig.sync("x-99", 1).told.error_code),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "sync with another type": (
        lambda rig, member: ErrorCode(rig.sync(member, 1, protocol_type="x").told.error_code),
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ),
    "sync with another protocol": (
        lambda rig, member: ErrorCode(rig.sync(member, 1, protocol_name="x").told.error_code),
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ),
    "heartbeat of another generation": (
        lambda rig, member: rig.beat(member, 0),
        ErrorCode.ILLEGAL_GENERATION,
    ),
    "heartbeat of a stranger": (
        lambda rig, _: rig.beat("x-99", 1),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "heartbeat with an empty id": (lambda rig, _: rig.beat("", 1), ErrorCode.UNKNOWN_MEMBER_ID),
    "leaving of a stranger": (
        lambda rig, _: ErrorCode(rig.leave("x-99").members[0].error_code),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "leaving of nobody": (
        lambda rig, _: ErrorCode(rig.leave(("", None)).members[0].error_code),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "leaving with a static id of nobody": (
        lambda rig, _: ErrorCode(rig.leave(("", "i")).members[0].error_code),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "commit of another generation": (
        lambda rig, member: rig.commit(9, member, 7),
        ErrorCode.ILLEGAL_GENERATION,
    ),
    "commit of a stranger": (
        lambda rig, _: rig.commit(9, "x-99", 1),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "commit without a member": (lambda rig, _: rig.commit(9), ErrorCode.UNKNOWN_MEMBER_ID),
    "commit with too much metadata": (
        lambda rig, member: rig.commit(9, member, 1, metadata="x" * 5000),
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ),
    "transactional commit of another generation": (
        lambda rig, member: rig.commit_in_transaction(9, 7, member_id=member, generation=5),
        ErrorCode.ILLEGAL_GENERATION,
    ),
    "deletion of a busy group": (
        lambda rig, _: code_of(lambda: rig.shard.delete_group("g")),
        ErrorCode.NON_EMPTY_GROUP,
    ),
    "deletion of a group that is not there": (
        lambda rig, _: code_of(lambda: rig.shard.delete_group("x")),
        ErrorCode.GROUP_ID_NOT_FOUND,
    ),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_bad_input_gets_its_code_and_leaves_the_state_as_it_was(name: str) -> None:
    rig = Rig()
    (member,) = rig.stable("a")
    rig.commit(5, member, 1)
    before = (list(rig.journal.log), rig.shard.described("g"), rig.offset())
    action, expected = BAD_REQUESTS[name]
    assert action(rig, member) is expected
    assert (list(rig.journal.log), rig.shard.described("g"), rig.offset()) == before
    assert rig.beat(member, 1) is ErrorCode.NONE


# Groups as a whole


def test_groups_are_listed_by_state_and_type_in_any_case() -> None:
    rig = Rig()
    rig.stable("a", group_id="busy")
    rig.commit(1, group_id="idle")

    def names(states: list[str], types: list[str]) -> list[str]:
        return [group.group_id for group in rig.shard.listed(states, types)]

    assert names([], []) == ["busy", "idle"]
    assert names(["stable"], []) == ["busy"]
    assert names(["Empty", "Dead"], []) == ["idle"]
    assert names(["Dead"], []) == []
    assert names([], ["Classic"]) == ["busy", "idle"]
    assert names([], ["consumer"]) == []
    listed = rig.shard.listed([], [])
    assert [(g.protocol_type, g.group_state, g.group_type) for g in listed] == [
        ("consumer", "Stable", "classic"),
        ("", "Empty", "classic"),
    ]


def test_an_assignment_too_large_to_store_is_not_put_together() -> None:
    rig = Rig()
    (member,) = rig.stable("a")
    again = rig.join("a", member)  # The leader joins: everybody is assigned anew.
    stored = rig.journal.write_count
    rig.journal.bytes_max = len(b"sub") + 100  # For what it subscribes to and what it gets.
    refused = rig.sync(member, again.told.generation_id, {member: bytes(101), "absent": b"x"})
    assert refused.told.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert rig.journal.write_count == stored
    again = rig.join("a", member)
    fitting = rig.sync(member, again.told.generation_id, {member: bytes(100), "absent": b"x"})
    assert fitting.told.assignment == bytes(100)


def test_a_stable_group_is_described_with_its_assignment() -> None:
    rig = Rig()
    first, second = rig.stable("a", "b")
    told = rig.shard.described("g")
    assert (told.group_state, told.protocol_type, told.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    assert [
        (m.member_id, m.client_id, m.client_host, m.member_metadata, m.member_assignment)
        for m in told.members
    ] == [
        (first, "a", "/127.0.0.1", b"sub", b"a"),
        (second, "b", "/127.0.0.1", b"sub", b"b"),
    ]


def test_a_rebalancing_group_is_described_with_what_its_members_had() -> None:
    rig = Rig()
    rig.stable("a")
    rig.join("b", version=3)
    told = rig.shard.described("g")
    assert (told.group_state, told.protocol_data) == ("PreparingRebalance", "")
    described = [(m.client_id, m.member_metadata, m.member_assignment) for m in told.members]
    assert described == [("a", b"", b"a"), ("b", b"", b"")]


def test_a_deleted_group_is_gone_with_all_its_offsets() -> None:
    rig = Rig()
    (member,) = rig.stable("a")
    rig.commit(1, member, 1)
    rig.commit_in_transaction(2, 7, member_id=member, generation=1, partition=1)
    rig.leave(member)
    rig.shard.delete_group("g")
    assert rig.state() == "Dead"
    rig.end_transaction(7, is_committed=True)
    rig.reload()
    assert rig.state() == "Dead"
    assert rig.offset() is None
    assert rig.offset("t", 1) is None


def test_a_deletion_that_cannot_be_written_does_not_happen() -> None:
    rig = Rig()
    rig.commit(1)
    rig.break_journal()
    refused = code_of(lambda: rig.shard.delete_group("g"))
    assert refused is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert rig.offset() == 1


def test_whoever_waits_is_told_when_the_shard_goes_elsewhere() -> None:
    rig = Rig()
    join = rig.join("a", version=3)
    rig.shard.stop(ErrorCode.NOT_COORDINATOR)
    assert join.told.error_code == ErrorCode.NOT_COORDINATOR
    rig.wait(600_000)  # No timer rings for a group that is gone.
    assert rig.shard.groups == {}


# Loading


def stored_group(group: str = "g", **fields: object) -> Written:
    value = GroupMetadataValue(protocol_type="consumer", generation=3, **fields)
    return Written(GroupMetadataKey(group=group).to_bytes(), value.to_bytes(3), -1)


def test_a_member_from_the_log_has_its_session_to_be_heard_from() -> None:
    rig = Rig()
    first, second = rig.stable("a", "b")
    rig.reload()
    rig.wait(9_000)
    assert rig.beat(first, 1) is ErrorCode.NONE
    rig.wait(1_000)
    assert rig.beat(second, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.beat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_too_large_for_the_setting_of_today_rebalances_after_loading() -> None:
    rig = Rig()
    rig.stable("a", "b", "c")
    rig.config = Rig({"group.max.size": "2"}).config
    rig.reload()
    assert rig.state() == "PreparingRebalance"


def test_groups_stored_before_rebalance_timeouts_use_the_session() -> None:
    rig = Rig()
    member = MemberMetadata(
        member_id="m", client_id="c", client_host="/h", session_timeout=7000, subscription=b"s"
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m", members=[member]
    )
    key = GroupMetadataKey(group="g").to_bytes()
    rig.journal.log.append(Written(key, value.to_bytes(0), -1))
    rig.reload()
    (loaded,) = rig.group().members
    assert (loaded.rebalance_timeout_ms, loaded.session_timeout_ms) == (7000, 7000)
    assert rig.group().generation == 3
    assert rig.state() == "Stable"


def test_an_empty_group_without_a_time_expires_by_its_commits() -> None:
    rig = Rig()
    rig.journal.log.append(stored_group(current_state_timestamp=-1))
    rig.reload()
    rig.commit(1)
    assert rig.shard.expire("g") == 0
    rig.wait(8 * 24 * 3_600_000)
    assert rig.shard.expire("g") == 1


GOOD_KEY = OffsetCommitKey(group="g", topic="t", partition=0).to_bytes()

UNREADABLE = {
    "a key of one byte": (b"\0", b""),
    "a key cut short": (GOOD_KEY[:-1], b""),
    "an offset of a future version": (GOOD_KEY, struct.pack(">hq", 99, 5)),
    "an offset cut short": (GOOD_KEY, struct.pack(">hq", 3, 5)),
    "an offset of no bytes": (GOOD_KEY, b""),
    "a group of a future version": (GroupMetadataKey(group="g").to_bytes(), b"\0\x63abc"),
    "a group with a wild count": (
        GroupMetadataKey(group="g").to_bytes(),
        struct.pack(">hh", 3, 0) + struct.pack(">ihhqi", 1, -1, -1, 0, 2**31 - 1),
    ),
    "text that is no text": (GOOD_KEY.replace(b"t", b"\xff"), None),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_reported_and_the_rest_stands(name: str) -> None:
    rig = Rig()
    rig.commit(5)
    (member,) = rig.stable("a", group_id="h")
    key, value = UNREADABLE[name]
    rig.journal.log.append(Written(key, value, -1))
    rig.reports.clear()
    rig.reload()
    assert rig.offset() == 5
    assert rig.state("h") == "Stable"
    assert rig.beat(member, 1, group_id="h") is ErrorCode.NONE
    assert len(rig.reports) == 1, rig.reports


def test_unknown_types_of_records_are_reported_once_and_skipped() -> None:
    rig = Rig()
    rig.commit(5)
    for number in (77, 77, 78):
        rig.journal.log.append(Written(struct.pack(">h", number) + b"what", b"ever", -1))
    rig.reports.clear()
    rig.reload()
    assert rig.offset() == 5
    assert len(rig.reports) == 2


def test_a_record_without_a_key_is_skipped() -> None:
    rig = Rig()
    rig.shard.replay(None, b"value", 0, -1)
    rig.shard.start()
    assert rig.shard.groups == {}
    assert len(rig.reports) == 1


def test_keys_from_before_version_0_9_are_read() -> None:
    rig = Rig()
    rig.commit(5)
    (written,) = rig.journal.log
    assert isinstance(written, Written)
    rig.journal.log[0] = Written(b"\0\0" + written.key[2:], written.value, -1)
    rig.reload()
    assert rig.offset() == 5


def test_replaying_the_same_log_twice_gives_the_same_state() -> None:
    rig = Rig()
    rig.stable("a", "b", protocols=(("range", subscription("t")),))
    rig.commit(5, group_id="h")
    rig.commit_in_transaction(6, 7, group_id="h")
    rig.reload()
    once = _picture(rig.shard)
    rig.reload()
    assert _picture(rig.shard) == once


def _picture(shard: GroupShard) -> object:
    return (
        {group_id: shard.described(group_id) for group_id in shard.groups},
        {group_id: dict(shard.offsets.of_group(group_id)) for group_id in shard.groups},
        {group_id: shard.offsets.has_pending(group_id) for group_id in shard.groups},
    )
