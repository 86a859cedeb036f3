"""Rows to partitions: by Kafka's hash of the key, by a column, or in turn."""

import itertools
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidRecord
from penstock.spark.columns.encode_partitions import RowPartitioner, murmur2


def hash_of(key: bytes) -> int:
    """The same hash, a byte at a time."""
    mask, mix = 0xFFFFFFFF, 0x5BD1E995
    hashed = 0x9747B28C ^ len(key)
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * mix & mask
        word = (word ^ word >> 24) * mix & mask
        hashed = hashed * mix & mask ^ word
    if key[whole:]:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * mix & mask
    hashed = (hashed ^ hashed >> 13) * mix & mask
    return hashed ^ hashed >> 15


@given(st.lists(st.binary(max_size=40), min_size=1), st.integers(0, 5))
def test_keys_are_hashed_one_like_many(keys: list[bytes], skipped: int) -> None:
    column = pa.array(keys, pa.binary()).slice(skipped)
    assert murmur2(column).tolist() == [hash_of(key) for key in keys[skipped:]]


def test_keys_are_hashed_as_kafka_hashes_them() -> None:
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    known |= {b"a-little-bit-longer-string": -1486304829, b"abc": 479470107}
    found = murmur2(pa.array(list(known))).astype(np.int32).tolist()
    assert found == list(known.values())


def chosen(partitioner: RowPartitioner, keys: list[bytes | None], given: Any = None) -> list[int]:
    column = pa.array(keys, pa.binary())
    return partitioner.choose(
        "t", 4, keys=column, given=given, row_bytes=np.full(len(keys), 100)
    ).tolist()


def partitioner(**changes: Any) -> RowPartitioner:
    settings = {"batch_bytes": 1000, "ignore_keys": False, "round_robin": False, **changes}
    return RowPartitioner(**settings)


def test_a_key_always_goes_to_its_partition() -> None:
    keys = [b"k%d" % random.randrange(9) for _ in range(50)]
    assert chosen(partitioner(), [*keys]) == [(hash_of(k) & 0x7FFFFFFF) % 4 for k in keys]


def test_rows_without_a_key_stick_together_and_then_go_on() -> None:
    places = chosen(partitioner(), [None] * 40)
    assert set(places) == {0, 1, 2, 3}
    changes = sum(a != b for a, b in itertools.pairwise(places))
    assert changes == 4  # 40 rows of 100 bytes fill four batches, and begin a fifth.


def test_a_given_partition_wins_over_the_key() -> None:
    given_ = pa.array([3, None, 0], pa.int32())
    places = chosen(partitioner(), [b"a", b"a", b"a"], given_)
    assert (places[0], places[2]) == (3, 0)
    assert places[1] == (hash_of(b"a") & 0x7FFFFFFF) % 4


@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_partition_that_does_not_exist_is_refused(wrong: int) -> None:
    with pytest.raises(InvalidRecord, match=rf"{wrong} is not in the range \[0...4\)"):
        chosen(partitioner(), [b"a"], pa.array([wrong], pa.int32()))


def test_round_robin_takes_every_partition_in_turn() -> None:
    places = chosen(partitioner(round_robin=True), [b"same"] * 8)
    assert all((b - a) % 4 == 1 for a, b in itertools.pairwise(places))


def test_keys_can_be_ignored() -> None:
    places = chosen(partitioner(ignore_keys=True), [b"%d" % n for n in range(9)])
    assert len(set(places)) == 1
