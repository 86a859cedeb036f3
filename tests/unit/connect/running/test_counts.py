"""What a task counts, and when it tells."""

from penstock.connect.running.counts import (
    COMMITTED,
    NOT_COMMITTED,
    POLLED,
    TaskCounts,
    commit_percentages,
)


def test_counts_are_told_once_a_second_when_they_changed_and_at_the_end() -> None:
    now_s = 0.0
    counts = TaskCounts(clock=lambda: now_s)
    counts.add(POLLED, 2)
    counts.add(POLLED)
    assert counts.news() is None
    now_s = 1.0
    assert counts.news() == {POLLED: 3}
    now_s = 9.0
    assert counts.news() is None
    counts.add(POLLED)
    assert counts.news(at_end=True) == {POLLED: 4}


def test_the_part_of_commits_that_succeeded() -> None:
    assert commit_percentages({}) == (0.0, 0.0)
    assert commit_percentages({COMMITTED: 3, NOT_COMMITTED: 1}) == (0.75, 0.25)
