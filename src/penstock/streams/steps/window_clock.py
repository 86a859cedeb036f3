"""The times of a windowed step: what each of its inputs saw, and what its store has seen.

Lateness is a matter of one input: in a cogroup a stream that runs ahead does not make the others'
records late. What a store still answers is a matter of all of them, for they write to one store.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.streams.steps.contract import RecordStep
from penstock.streams.values.records import Stamped, StreamRecord
from penstock.streams.values.windows import SessionWindows, SlidingWindows, TimeWindows

AnyWindows = TimeWindows | SlidingWindows | SessionWindows
NEVER_MS = -1


@dataclass(frozen=True, slots=True)
class WindowClock:
    """A task's times at the steps that share a store of windows."""

    stored_ms: int = NEVER_MS  # The latest window that was stored.
    inputs_ms: tuple[int, ...] = ()  # The stream time of each input, by its number.

    def stream_ms(self, part: int) -> int:
        """The stream time of an input."""
        return self.inputs_ms[part] if part < len(self.inputs_ms) else NEVER_MS

    def saw(self, part: int, timestamp_ms: int) -> "WindowClock":
        """The clock once an input brought a record of this time."""
        times = [*self.inputs_ms, *[NEVER_MS] * (part + 1 - len(self.inputs_ms))]
        times[part] = max(times[part], timestamp_ms)
        return replace(self, inputs_ms=tuple(times))

    def stored(self, stored_ms: int) -> "WindowClock":
        """The clock once a window of this time was stored."""
        return self if stored_ms <= self.stored_ms else replace(self, stored_ms=stored_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStep(RecordStep):
    """An aggregation in windows of any kind; the inputs of a cogroup are numbered parts of it."""

    windows: AnyWindows
    part: int = 0
    sends_old: bool = False
    has_state = True

    def takes(self, record: StreamRecord) -> bool:
        """Whether the record is aggregated: one without a key is not, one without a value is."""
        return record.key is not None

    def held_under(self, key: Any) -> Any:
        """A key's windows lie together, under the key alone."""
        return key.key

    def row(
        self, key: Any, state: Any, clock: Any, parents: Callable[[], tuple[Stamped | None, ...]]
    ) -> Stamped | None:
        """The row of a window, unless the store has let it go."""
        start_ms, windows = key.window.start_ms, self.windows
        is_gone = clock is None or start_ms <= clock.stored_ms - windows.retention_ms
        return None if is_gone else dict(state or ()).get(start_ms)

    def advance(self, clock: WindowClock | None, record: StreamRecord) -> WindowClock:
        """The clock with the record's time; a record that is not aggregated does not count."""
        clock = clock or WindowClock()
        return clock.saw(self.part, record.timestamp_ms) if self.takes(record) else clock
