"""Lag as a number: what the log holds beyond what was committed."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.client.values import TopicPartition
from penstock.queries.lag import lag_of

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def test_lag_is_the_sum_over_partitions() -> None:
    assert lag_of({A: 10, B: 5}, {A: 0, B: 0}, {A: 7, B: 5}) == 3


def test_a_partition_never_read_counts_from_its_first_record() -> None:
    assert lag_of({A: 10}, {A: 4}, {}) == 6


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100))
def test_lag_is_never_negative(end: int, start: int, committed: int) -> None:
    assert lag_of({A: end}, {A: start}, {A: committed}) >= 0
