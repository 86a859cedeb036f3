"""Which windows hold a time, and which windows cannot be."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.streams import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindow,
    TimeWindows,
    WindowError,
)


@given(st.integers(1, 40), st.data(), st.integers(0, 200))
def test_a_time_lies_in_all_windows_around_it_and_no_others(
    size_ms: int, data: st.DataObject, at_ms: int
) -> None:
    advance_ms = data.draw(st.integers(1, size_ms))
    windows = TimeWindows.of(size_ms, advance_ms=advance_ms)
    starts = range(0, at_ms + 1, advance_ms)
    expected = [TimeWindow(s, s + size_ms) for s in starts if s <= at_ms < s + size_ms]
    assert windows.windows_for(at_ms) == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda: TimeWindows.of(0),
        lambda: TimeWindows.of(10, grace_ms=-1),
        lambda: TimeWindows.of(10, advance_ms=11),
        lambda: TimeWindows.of(10, advance_ms=0),
        lambda: SlidingWindows.of(-1),
        lambda: SessionWindows.of(0),
        lambda: JoinWindows.of(0, before_ms=-5, after_ms=2),
        lambda: JoinWindows.of(5, grace_ms=-1),
    ],
)
def test_a_window_that_cannot_be_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(WindowError):
        make()
