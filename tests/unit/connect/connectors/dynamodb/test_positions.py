"""Positions survive the offset topic, and the further of two is known."""

import json

from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.dynamodb.positions import ShardPosition, SnapshotState, TableMark

POSITIONS = st.builds(
    ShardPosition, sequence=st.integers(0, 10**40).map(str), part=st.integers(0, 2)
)
MARKS = st.builds(
    TableMark,
    stream=st.text(max_size=5),
    snapshot=st.sampled_from(SnapshotState),
    since_ms=st.integers(0, 2**50),
    key=st.text(max_size=5),
    seen_ms=st.integers(0, 2**50),
) | st.builds(
    TableMark,
    stream=st.text(max_size=5),
    snapshot=st.sampled_from(SnapshotState),
    shard=st.text(min_size=1, max_size=5),
    position=POSITIONS,
)


@given(POSITIONS, MARKS)
def test_an_offset_becomes_what_it_was_made_of(position: ShardPosition, mark: TableMark) -> None:
    assert ShardPosition.of_offset(json.loads(json.dumps(position.offset()))) == position
    assert TableMark.of_offset(json.loads(json.dumps(mark.offset()))) == mark


def test_sequence_numbers_are_compared_as_numbers() -> None:
    nine, ten = ShardPosition(sequence="9"), ShardPosition(sequence="10")
    half = ShardPosition(sequence="10", part=1)
    assert nine.is_behind(ten) and nine.is_behind(half) and half.is_behind(ten)
    assert not ten.is_behind(nine) and not ten.is_behind(half) and not ten.is_behind(ten)
