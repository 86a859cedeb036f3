"""Where a stream is, as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.rest.v3.streams.positions import parse_positions, positions_text


@given(st.dictionaries(st.integers(0, 9999), st.integers(0, 2**63 - 1), min_size=1, max_size=20))
def test_positions_are_read_as_they_were_written(positions: dict[int, int]) -> None:
    assert parse_positions(positions_text(positions)) == positions


def test_they_are_in_the_order_of_partitions() -> None:
    assert positions_text({2: 5, 0: 7}) == "0-7,2-5"


@pytest.mark.parametrize(
    "text", ["", "latest", "0", "0-", "-1", "0-1,", "0-1,0-2", "0--1", "²-1", "0-" + "9" * 20]
)
def test_what_are_no_positions_is_none(text: str) -> None:
    assert parse_positions(text) is None
