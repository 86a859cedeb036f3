"""A change is told by the snapshot or by the stream, never by both and never by neither."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.postgres.snapshot_marks import (
    SnapshotMarks,
    SnapshotPart,
    VisibleIds,
)


def test_ids_that_had_ended_are_visible() -> None:
    seen = VisibleIds.of("10:14:11,12")
    assert [seen.has(xid) for xid in (3, 10, 11, 12, 13, 14, 15)] == [
        True, True, False, False, True, False, False,
    ]  # fmt: skip
    assert str(seen) == "10:14:11,12"


def test_the_stream_has_the_low_bits_of_ids() -> None:
    epoch = 1 << 32
    seen = VisibleIds(epoch + 5, epoch + 9, frozenset({epoch + 6}))
    assert seen.has(0xFFFFFFF0), "an id of the epoch before"
    assert [seen.has(xid) for xid in (5, 6, 8, 9)] == [True, False, True, False]
    late = VisibleIds(epoch - 10, epoch - 2, frozenset())
    assert not late.has(3), "an id of the epoch after"


def part(table: str, after: tuple[object, ...] | None, xmax: int) -> SnapshotPart:
    return SnapshotPart(table=table, after=after, visible=VisibleIds(xmax, xmax, frozenset()))


MARKS = SnapshotMarks(
    tables=("a", "b"),
    parts=(part("a", None, 100), part("a", (5,), 200), part("b", (3,), 300)),
    until_lsn=77,
)


def test_each_row_is_judged_by_the_part_that_read_it() -> None:
    seen_at = {("a", (5,)): 100, ("a", (6,)): 200, ("b", (1,)): 200, ("b", (3,)): 200}
    seen_at |= {("b", (4,)): 300}
    for (table, key), xmax in seen_at.items():
        assert MARKS.has_seen(table, key, xmax - 1)
        assert not MARKS.has_seen(table, key, xmax)
    assert not MARKS.has_seen("c", (1,), 1), "a table that was not read"


def test_a_table_without_an_order_is_judged_by_its_last_reading() -> None:
    marks = SnapshotMarks(tables=("a",), parts=(part("a", None, 10), part("a", None, 20)))
    assert marks.has_seen("a", None, 19) and not marks.has_seen("a", None, 20)


def test_marks_travel_as_text() -> None:
    assert SnapshotMarks.of_text(MARKS.text()) == MARKS


@given(
    st.lists(st.integers(0, 30), max_size=5, unique=True),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 200)), max_size=40),
)
def test_wherever_a_snapshot_is_broken_off_each_change_is_told_once(
    breaks: list[int], changes: list[tuple[int, int]]
) -> None:
    """A row is read in one part; a change is seen by it or left to the stream."""
    starts = [None, *[(one,) for one in sorted(breaks)]]
    parts = tuple(part("t", after, 50 * number) for number, after in enumerate(starts, start=1))
    marks = SnapshotMarks(tables=("t",), parts=parts)
    for key, xid in changes:
        reading = sum(after is None or after < (key,) for after in starts)
        assert marks.has_seen("t", (key,), xid) == (xid < 50 * reading)
