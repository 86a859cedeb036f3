"""Suppress: hold a table's changes back until a window closes or a time has passed."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from penstock.streams.steps.contract import Arrival, RecordStep, Timer, Yielded, seen_ms
from penstock.streams.values.records import Headers, Stamped, StreamRecord, TableChange

_at_ms = attrgetter("at_ms")


class BufferFull(RuntimeError):
    """More rows wait than the buffer may hold, and it may not let any go early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """The latest change of a key, and when its key began to wait."""

    timer: Timer
    key: Any
    change: TableChange
    timestamp_ms: int
    prior: Stamped | None  # The row before the first change that waits: it is still the table's.


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldWithHeaders(HeldBack):
    """The same for a record with headers; a class of its own, for most have none."""

    headers: Headers

    @classmethod
    def of(cls, held: HeldBack, headers: Headers) -> "HeldWithHeaders":
        """What waits, with the headers of its record."""
        return cls(
            timer=held.timer,
            key=held.key,
            change=held.change,
            timestamp_ms=held.timestamp_ms,
            prior=held.prior,
            headers=headers,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldBack(RecordStep):
    """A key's first change starts the wait; later ones replace what waits."""

    time_of: Callable[[StreamRecord], int]  # From when a change waits: its time, or a window's end.
    wait_ms: int
    is_final: bool  # Final results have no tombstones: a closed window that is empty never was.
    records_max: int | None = None
    emits_when_full: bool = True
    has_state = True

    def advance(self, clock: int | None, record: StreamRecord) -> int:
        """The stream's time."""
        return seen_ms(clock, record.timestamp_ms)

    def take(self, arrival: Arrival) -> Yielded:
        """Put the change in the place of the one that waits."""
        record, before = arrival.record, arrival.state
        timer = before.timer if before else Timer(self.time_of(record), 0, arrival.key)
        old = record.value.old
        prior = before.prior if before else None if old is None else Stamped(old, -1)
        held = HeldBack(
            timer=timer,
            key=record.key,
            change=record.value,
            timestamp_ms=record.timestamp_ms,
            prior=prior,
        )
        if record.headers:
            held = HeldWithHeaders.of(held, record.headers)
        return Yielded(state=held, clock=arrival.clock, timers=(timer,))

    def sweep(
        self, clock: int, record: StreamRecord, timers: Sequence[Timer]
    ) -> tuple[list[Timer], int]:
        """What has waited long enough, and what a full buffer lets go early."""
        # Timers are in order, and there may be very many: who looked at all of them for each record
        # would take the longer for a record the more there are.
        due = list(timers[: bisect_right(timers, clock - self.wait_ms, key=_at_ms)])
        room = len(timers) if self.records_max is None else self.records_max
        if len(timers) - len(due) > room:
            if not self.emits_when_full:
                raise BufferFull(f"a suppress buffer of {room} records is full")
            due = list(timers[: len(timers) - room])
        return due, clock

    def fire(self, timer: Timer, state: HeldBack, clock: int, cause: StreamRecord) -> Yielded:
        """Let the change go."""
        record = StreamRecord(
            key=state.key,
            value=state.change,
            timestamp_ms=state.timestamp_ms,
            headers=state.headers if isinstance(state, HeldWithHeaders) else (),
        )
        dropped = state.change.new is None and self.is_final
        return Yielded(records=() if dropped else (record,), clock=clock, timers=())

    def timers_of(self, state: HeldBack) -> tuple[Timer, ...]:
        """What waits has one."""
        return (state.timer,)

    def row(
        self, key: Any, state: Any, clock: Any, parents: Callable[[], tuple[Stamped | None, ...]]
    ) -> Stamped | None:
        """The row as those behind the buffer know it."""
        held: HeldBack | None = state
        return parents()[0] if held is None else held.prior
