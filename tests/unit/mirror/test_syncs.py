"""MirrorMaker 2's bytes, written down from its own schemas, and the record that is ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecord
from penstock.mirror.runs import Run
from penstock.mirror.syncs import (
    Checkpoint,
    Heartbeat,
    OffsetSync,
    RunsKey,
    decode_runs,
    decode_runs_key,
    encode_runs,
)

LONG = (1).to_bytes(8, "big"), (2).to_bytes(8, "big")


def test_an_offset_sync_is_a_partition_and_two_offsets() -> None:
    key, value = OffsetSync("t", 3, 1, 2).encoded()
    assert key == b"\0\1t\0\0\0\3"
    assert value == LONG[0] + LONG[1]


def test_a_checkpoint_has_a_version() -> None:
    key, value = Checkpoint("g", "A.t", 3, 1, 2, "m").encoded()
    assert key == b"\0\1g\0\3A.t\0\0\0\3"
    assert value == b"\0\0" + LONG[0] + LONG[1] + b"\0\1m"


def test_a_heartbeat_is_two_clusters_and_a_time() -> None:
    assert Heartbeat("A", "B", 1).encoded() == (b"\0\1A\0\1B", b"\0\0" + LONG[0])


LONGS = st.integers(0, 2**63 - 1)


@given(st.text(max_size=20), st.integers(0, 999), st.lists(st.tuples(LONGS, LONGS), min_size=1))
def test_runs_come_back(topic: str, partition: int, pairs: list[tuple[int, int]]) -> None:
    runs = [Run(*pair) for pair in pairs]
    key, value = encode_runs(topic, partition, runs)
    assert decode_runs_key(key) == RunsKey(topic, partition, runs[0].source)
    assert value is not None and decode_runs(value) == runs


@given(st.binary(max_size=30))
def test_bytes_of_others_are_refused_or_read(data: bytes) -> None:
    for decode in (decode_runs, decode_runs_key):
        try:
            decode(data)
        except CorruptRecord:
            continue


def test_a_value_that_ends_too_early_is_refused() -> None:
    with pytest.raises(CorruptRecord):
        decode_runs(b"123")
