"""Records of consumer groups are Apache Kafka's to the byte.

tests/golden/consumer_groups/records.hex holds what Kafka 4.3.1's own record builders and serializer
make of these values: a name, the key and the value, which is "-" for a tombstone.
"""

from pathlib import Path

import pytest

from penstock.groups.classic.members import Strategy
from penstock.groups.consumer import records
from penstock.groups.consumer.member import ClassicSide, ConsumerMember, MemberState
from penstock.groups.consumer.records import Change, Resolved, encoded
from penstock.groups.consumer.state import GroupState
from penstock.protocol.stored import group_record_classes, read_prefix

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "consumer_groups" / "records.hex"
ONE = bytes.fromhex("01020304050607081112131415161718")
TWO = bytes.fromhex("21222324252627283132333435363738")

FULL = ConsumerMember(
    member_id="member-1",
    epoch=7,
    previous_epoch=6,
    state=MemberState.UNREVOKED,
    instance_id="inst",
    rack_id="rack",
    rebalance_timeout_ms=45000,
    client_id="client",
    client_host="/127.0.0.1",
    topic_names=frozenset({"b", "a"}),
    topic_pattern="x.*",
    assignor="range",
    assigned={ONE: {2: 7, 0: 5}},
    revoking={TWO: {1: 3}},
)
PLAIN = ConsumerMember(member_id="m")
CLASSIC = ConsumerMember(
    member_id="c",
    epoch=3,
    previous_epoch=2,
    rebalance_timeout_ms=300000,
    client_id="old",
    client_host="/h",
    topic_names=frozenset({"t"}),
    classic=ClassicSide(10000, (Strategy("range", b"\x00\x01\x02"), Strategy("sticky", b""))),
)

CHANGES: dict[str, Change] = {
    "member_full": records.member("group", FULL),
    "member_plain": records.member("group", PLAIN),
    "member_classic": records.member("group", CLASSIC),
    "no_member": records.no_member("group", "member-1"),
    "group_epoch": records.group_epoch("group", 12, -77),
    "group_epoch_no_topics": records.group_epoch("group", 1, 0),
    "no_group": records.no_group("group"),
    "no_partition_metadata": records.no_partition_metadata("group"),
    "target": records.target("group", "member-1", {TWO: frozenset({1}), ONE: frozenset({2, 0})}),
    "target_empty": records.target("group", "member-1", {}),
    "no_target": records.no_target("group", "member-1"),
    "target_epoch": records.target_epoch("group", 12, 1700000000000),
    "target_epoch_undated": records.target_epoch("group", 12, 0),
    "no_target_epoch": records.no_target_epoch("group"),
    "current_full": records.current("group", FULL),
    "current_plain": records.current("group", PLAIN),
    "no_current": records.no_current("group", "member-1"),
    "pattern": records.pattern("group", "x.*", Resolved(frozenset({"x1"}), 42, 1700000000000)),
    "no_pattern": records.pattern("group", "x.*", None),
}


def golden() -> dict[str, tuple[bytes, bytes | None]]:
    lines = [line.split() for line in GOLDEN.read_text().splitlines()]
    return {
        name: (bytes.fromhex(key), None if value == "-" else bytes.fromhex(value))
        for name, key, value in lines
    }


@pytest.mark.parametrize("name", CHANGES)
def test_a_record_is_kafkas_to_the_byte(name: str) -> None:
    assert encoded(*CHANGES[name]) == golden()[name]


def test_every_golden_record_is_held_against_ours() -> None:
    assert golden().keys() == CHANGES.keys()


@pytest.mark.parametrize("name", CHANGES)
def test_what_kafka_wrote_is_read_as_what_we_would_have_written(name: str) -> None:
    key, value = golden()[name]
    classes = group_record_classes(read_prefix(key))
    assert classes is not None
    read = (classes[0].from_bytes(key), None if value is None else classes[1].from_bytes(value))
    assert read == CHANGES[name]


@pytest.mark.parametrize("member", [FULL, PLAIN, CLASSIC])
def test_a_member_is_found_again_as_it_was_stored(member: ConsumerMember) -> None:
    state = GroupState("group")
    state.apply(*records.current("group", member))
    state.apply(*records.member("group", member))
    assert state.members == {member.member_id: member}
