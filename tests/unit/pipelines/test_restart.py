"""When a failed query is tried again."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.pipelines.restart import FIRST_S, LONGEST_S, Attempts, pause_s


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
