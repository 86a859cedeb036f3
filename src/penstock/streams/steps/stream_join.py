"""Stream-stream joins: records of a key that lie near each other in time meet once.

A record of an outer side waits until no partner can come any more: its window and the grace are
over. Waiting records of all keys leave in the order of their times, as Kafka Streams sends them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.streams.steps.contract import Arrival, RecordStep, Timer, Yielded, kept, seen_ms
from penstock.streams.values.records import StreamRecord
from penstock.streams.values.windows import JoinWindows

RIGHT, LEFT = 0, 1  # Of two waiting records of one time, the right one leaves first.
FAR_MS = 2**63 - 1
Held = tuple[tuple[int, Any], ...]  # (time, value), by time, then by arrival.


@dataclass(frozen=True, slots=True)
class JoinClock:
    """A task's times at a join, shared by both sides."""

    stream_ms: int = -1
    stored_ms: tuple[int, int] = (-1, -1)  # The latest record held on the right and on the left.
    waiting_ms: int = FAR_MS  # No record that waits is older than this; FAR_MS: none waits.


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A record of an outer side that has met nobody yet."""

    timer: Timer
    key: Any
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinState:
    """What a key holds on both sides."""

    held: tuple[Held, Held] = ((), ())
    waiting: tuple[Waiting, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStreams(RecordStep):
    """One side of the join. Both sides share state, clock and timers."""

    windows: JoinWindows
    side: int
    joiner: Callable[[Any, Any, Any], Any]  # key, left, right
    outer_sides: tuple[int, ...]  # The sides whose lonely records are sent.
    has_state = True
    sweeps_first = True

    def advance(self, clock: JoinClock | None, record: StreamRecord) -> JoinClock:
        """The time of both streams together; records that cannot be joined count too."""
        clock = clock or JoinClock()
        return replace(clock, stream_ms=seen_ms(clock.stream_ms, record.timestamp_ms))

    def take(self, arrival: Arrival) -> Yielded:
        """Meet the other side's records near in time, or wait, then be held for those to come."""
        record, clock = arrival.record, arrival.clock
        outer = self.side in self.outer_sides
        if record.value is None:
            return kept(arrival)
        if record.key is None:
            return kept(arrival, self._alone(record)) if outer else kept(arrival)
        state = arrival.state or JoinState()
        partners = self._partners(state, clock, record.timestamp_ms)
        sent = [self._meet(record, at_ms, value) for at_ms, value in partners]
        state = self._no_longer_waiting(state, {at_ms for at_ms, _ in partners})
        if outer and not partners:
            if max(0, record.timestamp_ms + self._reach_ms(self.side)) < clock.stream_ms:
                sent.append(self._alone(record))
            else:
                state = self._wait(state, arrival)
                clock = replace(clock, waiting_ms=min(clock.waiting_ms, record.timestamp_ms))
        return self._hold(state, clock, record, sent)

    def sweep(
        self, clock: JoinClock, record: StreamRecord, timers: Sequence[Timer]
    ) -> tuple[list[Timer], JoinClock]:
        """The waiting records whose windows are over. A late record makes nobody look."""
        grace_ms, now_ms = self.windows.grace_ms, clock.stream_ms
        skipped = record.key is None or record.value is None or record.timestamp_ms != now_ms
        reach_ms = self._reach_ms(self.side)
        if skipped or clock.waiting_ms + reach_ms + grace_ms >= now_ms:
            return [], clock
        due: list[Timer] = []
        still_open: set[int] = set()
        waiting_ms = FAR_MS
        for timer in timers:
            waiting_ms = timer.at_ms
            if len(still_open) == 2:
                break
            if timer.at_ms + self._reach_ms(timer.side) + grace_ms >= now_ms:
                still_open.add(timer.side)
            else:
                due.append(timer)
        return due, replace(clock, waiting_ms=waiting_ms)

    def fire(
        self, timer: Timer, state: JoinState, clock: JoinClock, cause: StreamRecord
    ) -> Yielded:
        """Send the records that waited in vain, in the order they came.

        Their headers are those of the record that ended the waiting, as in Kafka Streams.
        """
        lonely = [one for one in state.waiting if one.timer == timer]
        sent = tuple(
            StreamRecord(
                key=one.key,
                value=self._joined(timer.side, one.key, one.value, None),
                timestamp_ms=timer.at_ms,
                headers=cause.headers,
            )
            for one in lonely
        )
        left = tuple(one for one in state.waiting if one.timer != timer)
        return self._yielded(replace(state, waiting=left), clock, sent)

    def timers_of(self, state: JoinState) -> tuple[Timer, ...]:
        """One for each time at which a record waits."""
        return tuple(dict.fromkeys(one.timer for one in state.waiting))

    def _reach_ms(self, side: int) -> int:
        """How far after a record of the side a partner may lie."""
        return self.windows.after_ms if side == LEFT else self.windows.before_ms

    def _partners(self, state: JoinState, clock: JoinClock, at_ms: int) -> Held:
        other = 1 - self.side
        oldest_ms = clock.stored_ms[other] - self.windows.retention_ms + 1
        first_ms = max(0, at_ms - self._reach_ms(other), oldest_ms)
        last_ms = max(0, at_ms + self._reach_ms(self.side))
        return tuple(one for one in state.held[other] if first_ms <= one[0] <= last_ms)

    def _meet(self, record: StreamRecord, at_ms: int, value: Any) -> StreamRecord:
        joined = self._joined(self.side, record.key, record.value, value)
        return record.with_value(joined).at(max(record.timestamp_ms, at_ms))

    def _alone(self, record: StreamRecord) -> StreamRecord:
        return record.with_value(self._joined(self.side, record.key, record.value, None))

    def _joined(self, side: int, key: Any, mine: Any, other: Any) -> Any:
        pair = (mine, other) if side == LEFT else (other, mine)
        return self.joiner(key, *pair)

    def _no_longer_waiting(self, state: JoinState, met_ms: set[int]) -> JoinState:
        """A record of the other side that was met does not wait any more."""
        if not met_ms or not state.waiting:
            return state
        other = 1 - self.side
        left = (o for o in state.waiting if o.timer.side != other or o.timer.at_ms not in met_ms)
        return replace(state, waiting=tuple(left))

    def _wait(self, state: JoinState, arrival: Arrival) -> JoinState:
        record = arrival.record
        timer = Timer(record.timestamp_ms, self.side, arrival.key)
        waiting = Waiting(timer=timer, key=record.key, value=record.value)
        return replace(state, waiting=(*state.waiting, waiting))

    def _hold(
        self, state: JoinState, clock: JoinClock, record: StreamRecord, sent: list[StreamRecord]
    ) -> Yielded:
        stored = list(clock.stored_ms)
        stored[self.side] = max(stored[self.side], record.timestamp_ms)
        held = list(state.held)
        held[self.side] = (*held[self.side], (record.timestamp_ms, record.value))
        for side in (RIGHT, LEFT):
            oldest_ms = stored[side] - self.windows.retention_ms + 1
            alive = (one for one in held[side] if one[0] >= oldest_ms)
            held[side] = tuple(sorted(alive, key=lambda one: one[0]))
        state = replace(state, held=(held[RIGHT], held[LEFT]))
        return self._yielded(state, replace(clock, stored_ms=(stored[0], stored[1])), tuple(sent))

    def _yielded(
        self, state: JoinState, clock: JoinClock, sent: tuple[StreamRecord, ...]
    ) -> Yielded:
        return Yielded(records=sent, state=state, clock=clock, timers=self.timers_of(state))
