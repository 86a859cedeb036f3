"""Sliding windows: one window for each distinct set of records within a time of each other.

A record has a window that ends at it (its left one) and, once a later record lies within reach, a
window that starts right after it (its right one). Only windows whose records differ from their
neighbours' are kept.
"""

from dataclasses import dataclass, field
from typing import Any

from penstock.streams.steps.aggregates import Aggregator, Initializer, live_rows
from penstock.streams.steps.contract import Arrival, Yielded, kept
from penstock.streams.steps.window_clock import WindowStep
from penstock.streams.values.records import Stamped, StreamRecord, TableChange, TimeWindow, Windowed
from penstock.streams.values.windows import SlidingWindows


@dataclass(slots=True, kw_only=True)
class _Board:
    """A key's windows while one record changes them."""

    rows: dict[int, Stamped]
    closes_ms: int  # A window that ends before this is closed.
    stored_ms: int
    sent: list[StreamRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """A key's windows around a record, as they were before it came.

    The record's home is its left window or, near the epoch, the window from 0.
    """

    rows: dict[int, Stamped]
    home_ms: int
    inner: tuple[int, ...]  # Starts of the later windows that hold the record, ascending.
    below: Stamped | None  # The nearest window that ends before the record.

    @classmethod
    def at(cls, rows: dict[int, Stamped], at_ms: int, span_ms: int) -> "_Around":
        """Sort the windows by where they lie."""
        home_ms = max(0, at_ms - span_ms)
        lower = [start for start in rows if home_ms - span_ms <= start < home_ms]
        return cls(
            rows=dict(rows),
            home_ms=home_ms,
            inner=tuple(start for start in sorted(rows) if home_ms < start <= at_ms),
            below=rows[max(lower)] if lower else None,
        )

    @property
    def home(self) -> Stamped | None:
        """The home window, if there is one already."""
        return self.rows.get(self.home_ms)

    @property
    def right(self) -> Stamped | None:
        """The latest window that holds the record: it has what comes after the record."""
        return self.rows[self.inner[-1]] if self.inner else None

    @property
    def previous_ms(self) -> int | None:
        """The time of the record before this one, as far as the windows tell."""
        last = self.below or self.home
        return None if last is None else last.timestamp_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSliding(WindowStep):
    """Aggregates in sliding windows."""

    windows: SlidingWindows
    initializer: Initializer
    aggregator: Aggregator

    def takes(self, record: StreamRecord) -> bool:
        """Whether the record is aggregated: it needs a key and, other than elsewhere, a value."""
        return record.key is not None and record.value is not None

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        record, clock = arrival.record, arrival.clock
        if not self.takes(record):
            return kept(arrival)
        closes_ms = clock.stream_ms(self.part) - self.windows.grace_ms
        if record.timestamp_ms + self.windows.difference_ms < closes_ms:
            return kept(arrival)
        oldest_ms = clock.stored_ms - self.windows.retention_ms + 1
        rows = {start: row for start, row in arrival.state or () if start >= oldest_ms}
        board = _Board(rows=rows, closes_ms=closes_ms, stored_ms=clock.stored_ms)
        around = _Around.at(rows, record.timestamp_ms, self.windows.difference_ms)
        if record.timestamp_ms < self.windows.difference_ms:
            self._take_early(board, around, record)
        else:
            self._take(board, around, record)
        state = live_rows(board.rows, board.stored_ms - self.windows.retention_ms + 1)
        clock = clock.stored(board.stored_ms)
        return Yielded(records=tuple(board.sent), state=state, clock=clock)

    def _take(self, board: _Board, around: _Around, record: StreamRecord) -> None:
        """The windows that hold the record, the latest first, then those it opens."""
        at_ms, home = record.timestamp_ms, around.home
        for start_ms in reversed(around.inner):
            self._update(board, start_ms, around.rows[start_ms], record)
        if home is not None:
            self._update(board, around.home_ms, home, record)
            if home.timestamp_ms >= at_ms:
                return  # A record of the same time opened all windows already.
        self._open_after(board, around, record, around.previous_ms)
        if home is None:
            self._update(board, around.home_ms, self._home_row(around, at_ms), record)
        self._open_right(board, around, record, around.right)

    def _take_early(self, board: _Board, around: _Around, record: StreamRecord) -> None:
        """A record whose left window would start before the epoch: the window from 0 holds it.

        Its windows are told in another order: the earliest first, its home last.
        """
        at_ms, home = record.timestamp_ms, around.home
        for start_ms in around.inner:
            self._update(board, start_ms, around.rows[start_ms], record)
        self._open_right(board, around, record, around.right or home)
        if home is not None and home.timestamp_ms < at_ms:
            self._open_after(board, around, record, home.timestamp_ms)
        self._update(board, 0, home or self._fresh(at_ms), record)

    def _home_row(self, around: _Around, at_ms: int) -> Stamped:
        """What a new left window starts with: the records below that are within its reach."""
        below = around.below
        if below is not None and below.timestamp_ms >= around.home_ms:
            return Stamped(below.value, at_ms)
        return self._fresh(at_ms)

    def _open_after(
        self, board: _Board, around: _Around, record: StreamRecord, previous_ms: int | None
    ) -> None:
        """Open the previous record's right window, if this record is the first to lie in it."""
        if previous_ms is None or previous_ms + 1 in around.rows:
            return
        if previous_ms + 1 + self.windows.difference_ms >= record.timestamp_ms:
            self._update(board, previous_ms + 1, self._fresh(record.timestamp_ms), record)

    def _fresh(self, at_ms: int) -> Stamped:
        return Stamped(self.initializer(), at_ms)

    def _open_right(
        self, board: _Board, around: _Around, record: StreamRecord, right: Stamped | None
    ) -> None:
        """Open the record's own right window, if a later record lies in it."""
        start_ms = record.timestamp_ms + 1
        if start_ms in around.rows or right is None or right.timestamp_ms < start_ms:
            return
        self._store(board, start_ms, right)
        board.sent.append(self._changed(record, start_ms, right.value, None, right.timestamp_ms))

    def _update(self, board: _Board, start_ms: int, row: Stamped, record: StreamRecord) -> None:
        if start_ms + self.windows.difference_ms < board.closes_ms:
            return
        new = self.aggregator(record.key, record.value, row.value)
        at_ms = record.timestamp_ms
        if row.value is not None:
            at_ms = max(at_ms, row.timestamp_ms)
        self._store(board, start_ms, Stamped(new, at_ms))
        board.sent.append(self._changed(record, start_ms, new, row.value, at_ms))

    def _store(self, board: _Board, start_ms: int, row: Stamped) -> None:
        board.stored_ms = max(board.stored_ms, start_ms)
        if row.value is None:
            board.rows.pop(start_ms, None)
        else:
            board.rows[start_ms] = row

    def _changed(
        self, record: StreamRecord, start_ms: int, new: Any, old: Any, at_ms: int
    ) -> StreamRecord:
        window = TimeWindow(start_ms, start_ms + self.windows.difference_ms)
        change = TableChange(new, old if self.sends_old else None)
        return record.with_key(Windowed(record.key, window)).with_value(change).at(at_ms)
