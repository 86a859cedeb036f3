"""When what died is started again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.platform.restarts import FIRST_S, LONGEST_S, STEADY_S, Restarts, is_refusal


def after(*lives_s: float) -> Restarts:
    found = Restarts()
    for lived_s in lives_s:
        found = found.after_end(lived_s=lived_s)
    return found


def test_the_pause_doubles_from_half_a_second_to_thirty() -> None:
    pauses = [after(*[1.0] * count).pause_s for count in range(1, 10)]
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


@given(st.lists(st.floats(0, STEADY_S, exclude_max=True), min_size=1, max_size=200))
def test_pauses_never_shrink_while_it_keeps_dying_and_stay_within_bounds(
    lives: list[float],
) -> None:
    found, before_s = Restarts(), FIRST_S
    for lived_s in lives:
        found = found.after_end(lived_s=lived_s)
        assert before_s <= found.pause_s <= LONGEST_S
        before_s = found.pause_s
    assert found.total == len(lives)


@given(st.lists(st.floats(0, 1_000), max_size=20), st.floats(STEADY_S, 1e9))
def test_a_long_life_begins_the_count_anew_but_forgets_no_restart(
    lives: list[float], long_s: float
) -> None:
    found = after(*lives, long_s)
    assert found.pause_s == FIRST_S
    assert found.total == len(lives) + 1


@pytest.mark.parametrize(
    ("code", "has_been_ready", "refuses"),
    [(1, False, True), (1, True, False), (-9, False, False), (0, False, False), (3, False, True)],
)
def test_only_a_first_start_that_ends_with_a_code_is_an_answer(
    code: int, has_been_ready: bool, refuses: bool
) -> None:
    assert is_refusal(code, has_been_ready=has_been_ready) is refuses
