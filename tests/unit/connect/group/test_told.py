"""What workers tell each other; the bytes are those that Apache's classes of 4.3.1 made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.group.told import (
    ForeignWorker,
    GroupAssignment,
    WorkerState,
    decode_assignment,
    decode_state,
    encode_assignment,
    encode_state,
)
from penstock.connect.store.status_records import TaskId

ASSIGNMENT = bytes.fromhex(
    "0002000000046c656164000e687474703a2f2f613a383038332f000000000000002a00000002000373726300000002"
    "ffffffff000000000003736e6b00000001000000010000000200036f6c6400000002ffffffff000000000003737263"
    "0000000100000003000005dc"
)
STATE_WITH_IT = bytes.fromhex("0002000e687474703a2f2f623a383038332f000000000000002a0000006a")
STATE_OF_NOTHING = bytes.fromhex("0002000e687474703a2f2f623a383038332f000000000000002affffffff")
EAGER = bytes.fromhex("0000000e687474703a2f2f623a383038332f000000000000002a")
SHORT = bytes.fromhex(
    "0002000000046c656164000e687474703a2f2f613a383038332f000000000000002a0000000100037372630000"
    "0001000000000000000000000000"
)
HELD = frozenset({TaskId("src"), TaskId("src", 0), TaskId("snk", 1)})
REVOKED = frozenset({TaskId("old"), TaskId("old", 0), TaskId("src", 3)})

names = st.text(min_size=1, max_size=8)
items = st.frozensets(st.builds(TaskId, names, st.none() | st.integers(0, 9)), max_size=9)


def test_apaches_assignment_is_read() -> None:
    assert decode_assignment(ASSIGNMENT) == GroupAssignment(
        leader="lead",
        leader_url="http://a:8083/",
        config_offset=42,
        assigned=HELD,
        revoked=REVOKED,
        delay_ms=1500,
    )


def test_apaches_state_is_read() -> None:
    state = WorkerState(url="http://b:8083/", config_offset=42, held=HELD)
    assert decode_state(STATE_WITH_IT + ASSIGNMENT) == state
    assert decode_state(EAGER) == WorkerState(url="http://b:8083/", config_offset=42)


def test_what_is_written_is_what_apache_writes() -> None:
    assert encode_state(WorkerState(url="http://b:8083/", config_offset=42)) == STATE_OF_NOTHING
    short = GroupAssignment(
        leader="lead",
        leader_url="http://a:8083/",
        config_offset=42,
        assigned=frozenset({TaskId("src", 0)}),
    )
    assert encode_assignment(short) == SHORT


@given(held=items, revoked=items, delay_ms=st.integers(0, 2**31 - 1), failed=st.booleans())
def test_what_is_told_is_understood(
    held: frozenset[TaskId], revoked: frozenset[TaskId], delay_ms: int, failed: bool
) -> None:
    state = WorkerState(url="http://b:8083/", config_offset=7, held=held)
    assert decode_state(encode_state(state)) == state
    told = GroupAssignment(
        leader="x",
        leader_url="u",
        config_offset=7,
        assigned=held,
        revoked=revoked,
        delay_ms=delay_ms,
        has_failed=failed,
    )
    assert decode_assignment(encode_assignment(told)) == told


@given(st.binary(max_size=40))
def test_what_is_no_workers_is_refused_and_nothing_else_is_raised(data: bytes) -> None:
    for decode in (decode_state, decode_assignment):
        try:
            decode(data)
        except ForeignWorker:
            continue


def test_a_consumer_in_the_group_is_told_apart() -> None:
    with pytest.raises(ForeignWorker):
        decode_state(b"\x00\x01")
