"""Requests that wait without a task: each is a value that appends and deadlines wake.

Thousands of consumers wait at the ends of logs, and every record ends the wait of some. A task
for each of them costs as much as the whole rest of a delivery. What waits is kept here instead,
and all that were woken in one turn of the event loop are looked at in the next, in one callback.
What they wait for, and what they answer, is the business of their handlers.
"""

import asyncio
import math
from collections import deque
from collections.abc import Generator
from typing import Any, Final, Protocol

TICK_S: Final = 0.005  # Waits that end within so much of each other share a timer.
TURN_MAX: Final = 256  # So many are looked at before the rest of the broker gets its turn.


class Asker(Protocol):
    """Who looks at what waits when it may be over, and takes the answer."""

    def wake(self) -> None: ...


class Unanswered:
    """A response that is still to come; nothing is kept anywhere before somebody begins to wait."""

    __slots__ = ("_asker", "_is_woken", "_room", "_tick", "is_late")

    def __init__(self, room: "WaitingRoom") -> None:
        self.is_late = False  # Whether the time is up.
        self._room = room
        self._asker: Asker | None = None  # None: nobody waits for it, or no more.
        self._is_woken = False
        self._tick = 0

    def look(self) -> Any:
        """The response, or None while there is not enough; what waits for more goes on waiting."""
        raise NotImplementedError

    def begin(self, asker: Asker, deadline_s: float) -> None:
        """Wait until woken, at the latest at the deadline."""
        self._asker = asker
        self._tick = self._room.expect(self, deadline_s)

    def leave(self) -> None:
        """Wait no more: it was answered, or nobody is there to be answered."""
        if self._asker is not None:
            self._asker = None
            self._room.forget(self, self._tick)

    def wake_soon(self) -> None:
        """Have it looked at in the next turn, however often this is said in one."""
        if not self._is_woken:
            self._is_woken = True
            self._room.wake(self)

    def wake(self) -> None:
        self._is_woken = False
        if self._asker is not None:
            self._asker.wake()

    def __await__(self) -> Generator[Any, None, Any]:
        """For whoever has a task of their own."""
        asker = _TaskAsker()
        self.start(asker)
        try:
            while True:
                yield from asker.woken()
                response = self.look()
                if response is not None:
                    return response
        finally:
            self.leave()

    def start(self, asker: Asker) -> None:
        """Begin to wait for what the response depends on; calls `begin`."""
        raise NotImplementedError


class _TaskAsker:
    """A task that waits for an answer."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    def woken(self) -> Generator[Any, None, None]:
        yield from self._future
        self._future = asyncio.get_running_loop().create_future()


class _Tick:
    """All waits that end at the same time; a dict, since the first to come is woken first."""

    __slots__ = ("timer", "waiting")

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.timer = timer
        self.waiting: dict[Unanswered, None] = {}


class WaitingRoom:
    """Everything of a broker that waits without a task, by when its time is up."""

    def __init__(self) -> None:
        self._ticks: dict[int, _Tick] = {}
        self._woken: deque[Unanswered] = deque()
        self._is_due = False  # Whether a look at those that were woken is on its way.

    def __len__(self) -> int:
        return sum(len(tick.waiting) for tick in self._ticks.values())

    def expect(self, waiting: Unanswered, deadline_s: float) -> int:
        """Wake it at the deadline, or little later; the tick by which it can be forgotten."""
        number = math.ceil(deadline_s / TICK_S)
        tick = self._ticks.get(number)
        if tick is None:
            loop = asyncio.get_running_loop()
            timer = loop.call_at(number * TICK_S, self._ring, number)
            tick = self._ticks[number] = _Tick(timer)
        tick.waiting[waiting] = None
        return number

    def forget(self, waiting: Unanswered, number: int) -> None:
        tick = self._ticks.get(number)
        if tick is None:
            return
        tick.waiting.pop(waiting, None)
        if not tick.waiting:  # A client may ask for weeks: its timer must not stay so long.
            tick.timer.cancel()
            del self._ticks[number]

    def wake(self, waiting: Unanswered) -> None:
        self._woken.append(waiting)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _ring(self, number: int) -> None:
        for waiting in self._ticks.pop(number).waiting:
            waiting.is_late = True
            waiting.wake_soon()

    def _serve(self) -> None:
        woken = self._woken
        try:
            for _ in range(min(len(woken), TURN_MAX)):
                woken.popleft().wake()
        finally:
            self._is_due = bool(woken)
            if woken:
                asyncio.get_running_loop().call_soon(self._serve)
