"""What a progress topic tells can be read again, the newest of each kind."""

from penstock.streams.steps.window_clock import WindowClock
from penstock.streams.tasks.progress import (
    TASK_KEY,
    TaskMarks,
    position_row,
    progress_from,
    progress_topic,
)


def test_marks_are_read_as_they_were_written() -> None:
    clock = WindowClock(5, (7, 9))
    marks = TaskMarks(stream_ms=9, due_ms=(10, 20), clocks={"store": clock, "other": 3})
    assert TaskMarks.read(marks.written()) == marks


def test_the_newest_position_and_the_newest_marks_count() -> None:
    old, new = TaskMarks(stream_ms=1).written(), TaskMarks(stream_ms=2).written()
    rows = [
        (0, *position_row("a-topic", 0, 5)),
        (1, *position_row("a-topic", 1, 6)),
        (1, TASK_KEY, old),
        (0, *position_row("a-topic", 0, 9)),
        (1, TASK_KEY, new),
        (0, b"of a later version", b"?"),
        (0, TASK_KEY, None),
    ]
    found = progress_from(rows)
    assert found.positions == {("a-topic", 0): 9, ("a-topic", 1): 6}
    assert found.marks == {1: new}


def test_the_reset_tool_knows_the_topic_by_its_name() -> None:
    assert progress_topic(3) == "stage-3-progress-changelog"
