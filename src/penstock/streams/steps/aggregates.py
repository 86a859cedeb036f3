"""Steps that add a key's records up: without windows, in time windows, and over a table's rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.streams.columns.aggregates import AnyTally
from penstock.streams.steps.contract import Arrival, RecordStep, Yielded, kept
from penstock.streams.steps.tables import stamped
from penstock.streams.steps.window_clock import WindowStep
from penstock.streams.values.lanes import LaneTally
from penstock.streams.values.records import Stamped, StreamRecord, TableChange, TimeWindow, Windowed
from penstock.streams.values.windows import TimeWindows

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]  # key, value, aggregate


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateStream(RecordStep):
    """Count, reduce and aggregate of a stream; several inputs of a cogroup share one state."""

    initializer: Initializer
    aggregator: Aggregator
    sends_old: bool = False
    tally: AnyTally | None = None  # What is added up, where it was declared.
    lane_tally: LaneTally | None = None  # What adds up batches of records that came in a lane.
    has_state = True

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record; one without key or value is dropped."""
        record, row = arrival.record, arrival.state
        if record.key is None or record.value is None:
            return kept(arrival)
        old = self.initializer() if row is None else row.value
        at_ms = record.timestamp_ms if row is None else max(record.timestamp_ms, row.timestamp_ms)
        new = self.aggregator(record.key, record.value, old)
        change = TableChange(new, old if self.sends_old else None)
        records = (record.with_value(change).at(at_ms),)
        return Yielded(records=records, state=stamped(new, at_ms), clock=arrival.clock)

    def merge(self, arrival: Arrival) -> Yielded:
        """Work on what a batch adds up to for a key: the record's value is the batch's row."""
        tally: Any = self.tally or self.lane_tally
        record, row, key = arrival.record, arrival.state, arrival.record.key
        old = self.initializer() if row is None else row.value
        at_ms = record.timestamp_ms if row is None else max(record.timestamp_ms, row.timestamp_ms)
        new = tally.merge(key, old, record.value)
        change = TableChange(new, old if self.sends_old else None)
        records = (record.with_value(change).at(at_ms),)
        return Yielded(records=records, state=Stamped(new, at_ms), clock=arrival.clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateRows(RecordStep):
    """The same over a table: the old row is taken out before the new one is put in."""

    initializer: Initializer
    adder: Aggregator
    subtractor: Aggregator
    reduces: bool  # A reduction starts with the first value itself, and with its time.
    sends_old: bool = False
    has_state = True

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one change."""
        record, change, row = arrival.record, arrival.record.value, arrival.state
        aggregate = old = None if row is None else row.value
        at_ms = record.timestamp_ms
        if change.old is not None and row is not None:
            aggregate = self.subtractor(record.key, change.old, aggregate)
            at_ms = max(record.timestamp_ms, row.timestamp_ms)
        if change.new is not None:
            if row is not None and not (self.reduces and aggregate is None):
                at_ms = max(record.timestamp_ms, row.timestamp_ms)
            start = self.initializer() if aggregate is None else aggregate
            aggregate = self.adder(record.key, change.new, start)
        sent = TableChange(aggregate, old if self.sends_old else None)
        records = (record.with_value(sent).at(at_ms),)
        return Yielded(records=records, state=stamped(aggregate, at_ms), clock=arrival.clock)


WindowRows = tuple[tuple[int, Stamped], ...]  # By window start, ascending.


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateWindows(WindowStep):
    """Aggregates in tumbling or hopping windows; a record too late for a window misses it."""

    windows: TimeWindows
    initializer: Initializer
    aggregator: Aggregator
    tally: AnyTally | None = None  # What is added up, where it was declared.
    lane_tally: LaneTally | None = None  # What adds up batches of records that came in a lane.

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record; a null value is aggregated like any other."""
        record, clock = arrival.record, arrival.clock
        if not self.takes(record):
            return kept(arrival)
        closes_ms = clock.stream_ms(self.part) - self.windows.grace_ms
        oldest_ms = clock.stored_ms - self.windows.retention_ms + 1
        rows: dict[int, Stamped] = dict(live_rows(dict(arrival.state or ()), oldest_ms) or ())
        sent = []
        for window in self.windows.windows_for(record.timestamp_ms):
            if window.end_ms > closes_ms:
                sent.append(self._update(rows, window, record, self.aggregator))
                clock = clock.stored(window.start_ms)
        state = live_rows(rows, clock.stored_ms - self.windows.retention_ms + 1)
        return Yielded(records=tuple(sent), state=state, clock=clock)

    def merge(self, arrival: Arrival, start_ms: int, closes_ms: int) -> Yielded:
        """Work on what a batch adds up to for a window, unless it was closed before the batch."""
        record, clock = arrival.record, arrival.clock
        window = TimeWindow(start_ms, start_ms + self.windows.size_ms)
        if window.end_ms <= closes_ms:
            return kept(arrival)
        oldest_ms = clock.stored_ms - self.windows.retention_ms + 1
        rows: dict[int, Stamped] = dict(live_rows(dict(arrival.state or ()), oldest_ms) or ())
        tally: Any = self.tally or self.lane_tally
        merge = tally.merge
        sent = self._update(rows, window, record, lambda key, value, old: merge(key, old, value))
        clock = clock.stored(start_ms)
        state = live_rows(rows, clock.stored_ms - self.windows.retention_ms + 1)
        return Yielded(records=(sent,), state=state, clock=clock)

    def _update(
        self,
        rows: dict[int, Stamped],
        window: TimeWindow,
        record: StreamRecord,
        aggregator: Aggregator,
    ) -> StreamRecord:
        row = rows.pop(window.start_ms, None)
        old = self.initializer() if row is None else row.value
        at_ms = record.timestamp_ms if row is None else max(record.timestamp_ms, row.timestamp_ms)
        new = aggregator(record.key, record.value, old)
        if new is not None:
            rows[window.start_ms] = Stamped(new, at_ms)
        change = TableChange(new, old if self.sends_old else None)
        return record.with_key(Windowed(record.key, window)).with_value(change).at(at_ms)


def live_rows(rows: dict[int, Stamped], first_ms: int) -> WindowRows | None:
    """The windows that start at a time or later, in order; None when there is none."""
    alive = [(start, rows[start]) for start in sorted(rows) if start >= first_ms]
    return tuple(alive) or None
