"""Tasks spread over Spark's places evenly, by Spark's own hash."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.streams.spark.spreading import group_numbers, place_of


@given(st.integers(1, 60), st.integers(1, 16))
def test_each_task_falls_into_its_place(tasks: int, places: int) -> None:
    numbers = group_numbers(tasks, places)
    assert len(set(numbers)) == tasks
    assert [place_of(number, places) for number in numbers] == [t % places for t in range(tasks)]


def test_the_numbers_of_a_task_never_change_because_checkpoints_hold_them() -> None:
    assert group_numbers(6, 2) == [2, 3, 4, 6, 10, 11]
    assert group_numbers(4, 4) == [12, 15, 22, 24]
