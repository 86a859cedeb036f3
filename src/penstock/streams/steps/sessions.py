"""Session windows: a record joins the sessions within the gap around it into one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.streams.steps.aggregates import Aggregator, Initializer
from penstock.streams.steps.contract import Arrival, Yielded, kept
from penstock.streams.steps.tables import stamped
from penstock.streams.steps.window_clock import WindowClock, WindowStep
from penstock.streams.values.records import Stamped, StreamRecord, TableChange, TimeWindow, Windowed
from penstock.streams.values.windows import SessionWindows

Merger = Callable[[Any, Any, Any], Any]  # key, aggregate, aggregate
Sessions = tuple[tuple[TimeWindow, Any], ...]  # By end, then start.


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSessions(WindowStep):
    """Sends a tombstone for each session that is replaced, then the session that replaces them."""

    windows: SessionWindows
    initializer: Initializer
    aggregator: Aggregator
    merger: Merger

    def row(
        self, key: Any, state: Any, clock: Any, parents: Callable[[], tuple[Stamped | None, ...]]
    ) -> Stamped | None:
        """The row of a session with these bounds, unless the store has let it go."""
        end_ms = key.window.end_ms
        is_gone = clock is None or end_ms <= clock.stored_ms - self.windows.retention_ms
        value = None if is_gone else dict(state or ()).get(key.window)
        return stamped(value, end_ms)

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record; a null value is aggregated like any other."""
        record, clock = arrival.record, arrival.clock
        if not self.takes(record):
            return kept(arrival)
        found = self._near(arrival.state or (), clock, record.timestamp_ms)
        own = TimeWindow(record.timestamp_ms, record.timestamp_ms)
        merged, aggregate = own, self.initializer()
        for window, value in found:
            aggregate = self.merger(record.key, aggregate, value)
            start_ms = min(merged.start_ms, window.start_ms)
            merged = TimeWindow(start_ms, max(merged.end_ms, window.end_ms))
        if merged.end_ms < clock.stream_ms(self.part) - self.windows.retention_ms:
            return kept(arrival)
        replaced = found if merged != own else ()
        new = self.aggregator(record.key, record.value, aggregate)
        sent = [self._changed(record, w, None, value) for w, value in replaced]
        sent.append(self._changed(record, merged, new, None))
        state, clock = self._stored(arrival, replaced, merged, new)
        return Yielded(records=tuple(sent), state=state, clock=clock)

    def _near(self, sessions: Sessions, clock: WindowClock, at_ms: int) -> Sessions:
        oldest_ms = clock.stored_ms - self.windows.retention_ms + 1
        first_ms, last_ms = at_ms - self.windows.gap_ms, at_ms + self.windows.gap_ms
        return tuple(
            (window, value)
            for window, value in sessions
            if window.end_ms >= max(first_ms, oldest_ms) and window.start_ms <= last_ms
        )

    def _changed(
        self, record: StreamRecord, window: TimeWindow, new: Any, old: Any
    ) -> StreamRecord:
        change = TableChange(new, old if self.sends_old else None)
        windowed = Windowed(record.key, window)
        return StreamRecord(key=windowed, value=change, timestamp_ms=window.end_ms)

    def _stored(
        self, arrival: Arrival, replaced: Sessions, merged: TimeWindow, new: Any
    ) -> tuple[Sessions | None, WindowClock]:
        gone = {window for window, _ in replaced} | {merged}
        sessions = [one for one in arrival.state or () if one[0] not in gone]
        clock = arrival.clock.stored(merged.end_ms)
        if new is not None:
            sessions.append((merged, new))
        oldest_ms = clock.stored_ms - self.windows.retention_ms + 1
        alive = [one for one in sessions if one[0].end_ms >= oldest_ms]
        alive.sort(key=lambda one: (one[0].end_ms, one[0].start_ms))
        return tuple(alive) or None, clock
