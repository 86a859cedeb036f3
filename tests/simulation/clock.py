"""An event loop on virtual time, and the processes that live on it.

Nothing sleeps: when nobody has anything to do, the clock jumps to the next timer. What is ready
runs in the order it became so, and what code wants done on another thread is done here, a random
moment later, so a run depends on its seed alone.

Every task belongs to the process in whose context it was created. A process that is paused runs
nothing while time goes on, as under SIGSTOP; one that was killed never runs again, not even its
`finally` blocks, as under SIGKILL.
"""

import asyncio
import contextvars
import heapq
import random
from asyncio import base_events, events
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_PROCESS: contextvars.ContextVar["Process"] = contextvars.ContextVar("process")
# What no process does: it happens to them, whether they run or not.
NATURE = contextvars.Context()

_START_S = 1000.0  # Not zero, which some code may take for "never".
_THREAD_DELAY_S = 0.002
_STEPS_MAX = 800_000  # Ten times what the busiest run needs.


class _Numbered:
    """Hashed by its number instead of its address: the order in a set is the same in every run."""

    number: int
    _count = 0

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        made = super().__new__(cls)
        _Numbered._count += 1
        made.number = _Numbered._count
        return made

    def __hash__(self) -> int:
        return self.number


class _Future(_Numbered, asyncio.Future[Any]):
    pass


class _Task(_Numbered, asyncio.Task[Any]):
    pass


class Deadlock(Exception):
    """Nothing is ready and no timer is set, so nothing would ever happen again."""


class Restless(Exception):
    """So much happens in so little time that somebody must be going in circles."""


class Process:
    """What can be paused and killed: all tasks begun in one context."""

    def __init__(self, loop: "VirtualLoop", name: str) -> None:
        self.name = name
        self.is_paused = False
        self.is_dead = False
        self.skew_ms = 0  # Its wall clock differs by this from the others'.
        self.context = contextvars.Context()
        self.context.run(_PROCESS.set, self)
        self._loop = loop
        self._held: list[events.Handle] = []
        self._remains: list[object] = []

    def __repr__(self) -> str:
        return f"<{self.name}{' paused' * self.is_paused}{' dead' * self.is_dead}>"

    @property
    def is_running(self) -> bool:
        return not self.is_paused and not self.is_dead

    def start(self, work: Coroutine[Any, Any, T], name: str | None = None) -> "asyncio.Task[T]":
        # A copy, as for any other task: what one task sets in its context is its own.
        return self._loop.create_task(work, name=name, context=self.context.copy())

    def call(self, work: Callable[..., object], *arguments: object) -> None:
        """Run it soon, as this process: not while paused, never once dead."""
        self._loop.call_soon(work, *arguments, context=self.context)

    def now_ms(self) -> int:
        """What the process reads from its wall clock."""
        return self._loop.wall_clock_ms() + self.skew_ms

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        held, self._held = self._held, []
        self._loop.ready_again(held)

    def kill(self) -> None:
        """Let go of nothing: a coroutine that is collected would run its `finally` blocks."""
        self.is_dead = True
        self._remains += [self._held, *self._loop.tasks_of(self)]

    def hold(self, handle: events.Handle) -> None:
        if self.is_dead:
            self._remains.append(handle)
        else:
            self._held.append(handle)


class VirtualLoop(base_events.BaseEventLoop):
    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.steps = 0
        self._now_s = _START_S
        self._rng = rng
        self._processes: dict[asyncio.Task[Any], Process] = {}
        self._order = 0
        self._timers: list[tuple[float, int, events.TimerHandle]] = []
        self.set_exception_handler(self._note_problem)
        self.set_task_factory(self._new_task)

    def time(self) -> float:
        return self._now_s

    def wall_clock_ms(self) -> int:
        return 1_700_000_000_000 + int(self._now_s * 1000)

    def tasks_of(self, process: Process) -> list["asyncio.Task[Any]"]:
        return [task for task, owner in self._processes.items() if owner is process]

    def ready_again(self, handles: list[events.Handle]) -> None:
        self._ready.extend(handles)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *arguments: Any,
        context: contextvars.Context | None = None,
    ) -> events.TimerHandle:
        """Timers of one moment fire in the order they were set."""
        timer = events.TimerHandle(max(when, self._now_s), callback, arguments, self, context)
        self._order += 1
        heapq.heappush(self._timers, (timer.when(), self._order, timer))
        return timer

    def create_future(self) -> "asyncio.Future[Any]":
        return _Future(loop=self)

    def run_in_executor(
        self, executor: object, func: Callable[..., T], *arguments: Any
    ) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self.create_future()
        self.call_later(self._rng.random() * _THREAD_DELAY_S, _work, future, func, arguments)
        return future

    def set_default_executor(self, executor: object) -> None:
        """There are no threads here."""

    async def shutdown_default_executor(self) -> None:
        """There is nothing to shut down."""

    def _run_once(self) -> None:
        if self.steps > _STEPS_MAX:
            raise Restless(f"{self.steps} steps until {self._now_s:.3f} s")
        if not self._ready:
            self._jump()
        while self._timers and self._timers[0][0] <= self._now_s:
            timer = heapq.heappop(self._timers)[2]
            if not timer.cancelled():
                self._ready.append(timer)
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if handle._cancelled:
                continue
            process = handle._context.get(_PROCESS)
            if process is None or process.is_running:
                self.steps += 1
                handle._run()
            else:
                process.hold(handle)

    def _jump(self) -> None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            raise Deadlock("nothing is ready and no timer is set")
        self._now_s = max(self._now_s, self._timers[0][0])

    def _new_task(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, T],
        context: contextvars.Context | None = None,
        **named: Any,
    ) -> "asyncio.Task[T]":
        task = _Task(work, loop=loop, context=context, **named)
        process = (context or contextvars.copy_context()).get(_PROCESS)
        if process is not None:
            self._processes[task] = process
            task.add_done_callback(self._processes.pop)
        return task

    def _note_problem(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        about = context.get("task") or context.get("future") or context.get("handle")
        self.problems.append(f"{context['message']}: {error!r} in {about!r}")

    # What a loop on real time needs and this one does not

    def _write_to_self(self) -> None:
        """Nobody waits in a selector."""

    def _process_events(self, event_list: object) -> None:
        """There are none."""

    def close(self) -> None:
        if not self.is_closed():
            super().close()


def current_process() -> Process | None:
    return _PROCESS.get(None)


def _work(future: "asyncio.Future[T]", func: Callable[..., T], arguments: tuple[Any, ...]) -> None:
    if future.cancelled():
        return  # It never began.
    try:
        result = func(*arguments)
    except Exception as error:  # noqa: BLE001 - whoever awaits the future gets it
        future.set_exception(error)
    else:
        future.set_result(result)
