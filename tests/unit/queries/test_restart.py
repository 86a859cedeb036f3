"""When a failed query is tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.queries.failure import QueryFailure
from penstock.queries.restart import FIRST_S, LONGEST_S, Attempts, pause_s, restarts_max

SLOW = QueryFailure("late", is_permanent=False, is_slow_start=True)
OTHER = QueryFailure("else", is_permanent=False)


@given(st.integers(1, 10_000))
def test_pauses_grow_up_to_a_limit(failures: int) -> None:
    assert FIRST_S <= pause_s(failures) <= pause_s(failures + 1) <= LONGEST_S


def test_a_query_that_progressed_begins_with_the_shortest_pause_again() -> None:
    tired = Attempts(in_a_row=9, total=9)
    fresh = tired.failed(now_ms=0, progressed=True, in_a_row_max=None)
    assert (fresh.in_a_row, fresh.total, fresh.resume_ms) == (1, 10, int(FIRST_S * 1000))


@given(st.integers(0, 6))
def test_it_is_given_up_after_the_limit_in_a_row(limit: int) -> None:
    attempts, failures = Attempts(), 0
    while attempts.resume_ms is not None or not failures:
        attempts = attempts.failed(now_ms=0, progressed=False, in_a_row_max=limit)
        failures += 1
    assert failures == limit + 1


def test_without_a_limit_it_is_tried_for_ever() -> None:
    attempts = Attempts()
    for now_ms in range(0, 100_000, 1000):
        attempts = attempts.failed(now_ms=now_ms, progressed=False, in_a_row_max=None)
    assert attempts.resume_ms is not None


@pytest.mark.parametrize(
    ("failure", "chosen", "ends", "expected"),
    [
        (OTHER, None, False, None),
        (OTHER, None, True, 3),
        (OTHER, 0, True, 0),
        (SLOW, None, False, None),
        (SLOW, None, True, 5),
        (SLOW, 0, False, 5),
        (SLOW, 9, False, 9),
    ],
)
def test_a_slow_start_is_tried_again_even_where_failures_are_final(
    failure: QueryFailure, chosen: int | None, ends: bool, expected: int | None
) -> None:
    assert restarts_max(failure, chosen, ends=ends) == expected
