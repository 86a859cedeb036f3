"""Deadlines by name, kept so that moving one further away costs next to nothing.

Every heartbeat of every member moves a deadline, and hardly any is ever reached. So a deadline
that moves away leaves its place in the queue alone; it is put in the right place when its turn
seems to have come.
"""

from collections.abc import Callable
from heapq import heappop, heappush

TimerKey = tuple[str, ...]  # The group first, then what for.


class Timers:
    """Callbacks at moments of a clock that only somebody else can read."""

    def __init__(self, elapsed_ms: Callable[[], int]) -> None:
        self._elapsed_ms = elapsed_ms
        self._set: dict[TimerKey, tuple[int, Callable[[], None]]] = {}
        self._queue: list[tuple[int, TimerKey]] = []
        self._queued: dict[TimerKey, int] = {}  # The earliest place of a timer in the queue.

    def __len__(self) -> int:
        return len(self._set)

    def set(self, key: TimerKey, after_ms: int, callback: Callable[[], None]) -> None:
        """Call back after so long; a timer of the same name is replaced."""
        deadline_ms = self._elapsed_ms() + after_ms
        self._set[key] = (deadline_ms, callback)
        queued_ms = self._queued.get(key)
        if queued_ms is None or deadline_ms < queued_ms:
            self._enqueue(key, deadline_ms)

    def cancel(self, key: TimerKey) -> None:
        self._set.pop(key, None)

    def cancel_group(self, group_id: str) -> None:
        """Cancel whatever was set for the group."""
        for key in [key for key in self._set if key[0] == group_id]:
            del self._set[key]

    def is_set(self, key: TimerKey) -> bool:
        return key in self._set

    def deadline_ms(self, key: TimerKey) -> int | None:
        """When the timer fires; None: it is not set."""
        found = self._set.get(key)
        return None if found is None else found[0]

    def next_ms(self) -> int | None:
        """A moment not after the next deadline; None: nothing is set."""
        return self._queue[0][0] if self._queue else None

    def run_due(self) -> None:
        """Call back everything whose deadline has come, in the order of the deadlines."""
        now_ms = self._elapsed_ms()
        while self._queue and self._queue[0][0] <= now_ms:
            queued_ms, key = heappop(self._queue)
            if self._queued.get(key) != queued_ms:
                continue  # An earlier place was taken since; that one counts.
            del self._queued[key]
            found = self._set.get(key)
            if found is None:
                continue
            deadline_ms, callback = found
            if deadline_ms > now_ms:
                self._enqueue(key, deadline_ms)
                continue
            del self._set[key]
            callback()

    def _enqueue(self, key: TimerKey, deadline_ms: int) -> None:
        self._queued[key] = deadline_ms
        heappush(self._queue, (deadline_ms, key))
