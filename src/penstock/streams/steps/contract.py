"""What a host and a step agree on.

A step has no memory. The host keeps a state for each key, a clock for each group of keys that it
runs together (a task, a bucket) and the timers the step asked for, and hands them in; the step
returns what they become. All are values, so a host may keep them in a dict or in pages of bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.streams.values.records import Stamped, StreamRecord


@dataclass(frozen=True, slots=True, order=True)
class Timer:
    """Something a key waits for. Timers are looked at in the order of these fields."""

    at_ms: int
    side: int
    key: bytes


class Arrival(NamedTuple):
    """A record at a step, with all the step may look at. A tuple: every record makes some."""

    record: StreamRecord
    key: bytes  # The record's key as its serde writes it; empty for none.
    state: Any = None  # What the step last returned for this key; None at first.
    clock: Any = None
    found: Stamped | None = None  # The row of the table that the step looks into.


class Yielded(NamedTuple):
    """What becomes of it: records to forward in order, and the key's state and timers from now."""

    records: tuple[StreamRecord, ...] = ()
    state: Any = None
    clock: Any = None
    timers: tuple[Timer, ...] | None = None  # None: as they were.


class RecordStep:
    """A node's work. This one has no state and passes records on; the others override."""

    has_state = False
    sweeps_first = False  # Whether due timers come before the record that makes them due.

    def lookup_key(self, record: StreamRecord) -> Any:
        """The key of the row to find in the table the node looks into."""
        return record.key

    def advance(self, clock: Any, record: StreamRecord) -> Any:
        """The clock once the record is seen."""
        return clock

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one record."""
        return Yielded(records=(arrival.record,))

    def sweep(
        self, clock: Any, record: StreamRecord, timers: Sequence[Timer]
    ) -> tuple[list[Timer], Any]:
        """The timers that are due, in order, and the clock afterwards."""
        return [], clock

    def fire(self, timer: Timer, state: Any, clock: Any, cause: StreamRecord) -> Yielded:
        """Work on a timer that is due, because of the record that made it so."""
        return Yielded(state=state, clock=clock)

    def timers_of(self, state: Any) -> tuple[Timer, ...]:
        """The timers of a key with this state, for a host that lost them."""
        return ()

    def held_under(self, key: Any) -> Any:
        """The key under which the state lies that has the row of a key."""
        return key

    def row(
        self, key: Any, state: Any, clock: Any, parents: Callable[[], tuple[Stamped | None, ...]]
    ) -> Stamped | None:
        """The row of a table now: its state, or what follows from its parents' rows."""
        return state if self.has_state else self.derive(key, parents())

    def derive(self, key: Any, rows: tuple[Stamped | None, ...]) -> Stamped | None:
        """The row of a table without a store, from the rows of the tables it comes from."""
        return rows[0]


NOTHING = Yielded()


def kept(arrival: Arrival, *records: StreamRecord) -> Yielded:
    """State and clock as they were."""
    return Yielded(records=records, state=arrival.state, clock=arrival.clock)


def seen_ms(clock: int | None, timestamp_ms: int) -> int:
    """The latest time seen: a stream's time never goes back."""
    return timestamp_ms if clock is None else max(clock, timestamp_ms)
