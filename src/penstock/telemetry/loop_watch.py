"""How long the event loop goes without looking at its sockets, and what keeps it from doing so.

One thread serves everybody, so a long turn of its loop is a pause for every client. The loop waits
for its sockets in `select`; what lies between two of these waits is a turn. Its length is measured
by the wall, which also shows a disk or a machine that is busy, and by the processor time of the
thread, which only our own work can use up: that is what tests judge by.
"""

import asyncio
import logging
import selectors
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from time import monotonic, thread_time
from types import FrameType, TracebackType
from typing import Final, NamedTuple, Self

from penstock.telemetry import families
from penstock.telemetry.metrics import Gauge

log = logging.getLogger("kafka.server.EventLoop")

PROCESSOR_S_WARN: Final = 0.1
WALL_S_WARN: Final = 1.0  # Longer, because a busy machine stalls a process that does nothing.
_LOOK_EVERY_S: Final = 0.05
_WARN_EVERY_S: Final = 10.0
_FRAMES_SHOWN: Final = 6
# Reading the processor clock costs more than a small turn may, so its mark is renewed only so
# often. A turn is charged for what ran since the mark, at most so much too much.
_MARK_S: Final = 0.005


class Turn(NamedTuple):
    """The length of a turn by the two clocks."""

    wall_s: float = 0.0
    processor_s: float = 0.0


class LoopWatch(selectors.DefaultSelector):
    """The selector of an event loop, which thereby sees every turn begin and end."""

    def __init__(self) -> None:
        super().__init__()
        self.thread_id = threading.get_ident()
        self.turn_count = 0
        self.began_s: float | None = None  # None: the loop waits, and nobody waits for it.
        self._marked_s = 0.0
        self._mark_s = thread_time()
        self._longest = Turn()
        self._longest_ever = Turn()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began_s = self.began_s
        if began_s is not None:
            wall_s = monotonic() - began_s
            if wall_s > _MARK_S:
                self._note(wall_s)
            self.began_s = None
        ready = super().select(timeout)
        self.turn_count += 1
        self.began_s = now_s = monotonic()
        if now_s - self._marked_s > _MARK_S:
            self._marked_s = now_s
            self._mark_s = thread_time()
        return ready

    def _note(self, wall_s: float) -> None:
        processor_s = min(wall_s, thread_time() - self._mark_s)
        self._marked_s = 0.0  # The next turn is charged for its own work alone.
        turn = Turn(wall_s, processor_s)
        self._longest = _longer(self._longest, turn)
        self._longest_ever = _longer(self._longest_ever, turn)

    def forget(self) -> None:
        """Begin to measure now: a start is allowed to take its time."""
        self._longest = self._longest_ever = Turn()
        self.began_s = None

    def longest_ever(self) -> Turn:
        return self._longest_ever

    def take_longest(self) -> Turn:
        """The longest turn since this was last asked."""
        longest, self._longest = self._longest, Turn()
        return longest

    def gauges(self) -> Iterable[Gauge]:
        """What a scrape is told; the turn that the scrape is part of counts for the next one."""
        for name, turn in (
            (families.LOOP_TURN_MAX, self.take_longest()),
            (families.LOOP_TURN_MAX_EVER, self._longest_ever),
        ):
            yield Gauge(name, {"clock": "wall"}, turn.wall_s)
            yield Gauge(name, {"clock": "processor"}, turn.processor_s)


def _longer(one: Turn, other: Turn) -> Turn:
    return Turn(max(one.wall_s, other.wall_s), max(one.processor_s, other.processor_s))


class StallWarnings:
    """Tells the log what the loop is busy with when a turn gets long, while it is entered.

    A thread looks now and then, so a loop that never comes back is told of as well.
    """

    def __init__(self, watch: LoopWatch) -> None:
        self._watch = watch
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop-watch", daemon=True)
        self._told_turn = -1
        self._told_s = -_WARN_EVERY_S
        self._untold = 0

    def __enter__(self) -> Self:
        self._watch.forget()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        clock = time.pthread_getcpuclockid(self._watch.thread_id)
        turn, processor_s = -1, 0.0
        while not self._stopping.wait(_LOOK_EVERY_S):
            watch = self._watch
            if watch.turn_count != turn:  # Another turn: its work is counted from here.
                turn, processor_s = watch.turn_count, time.clock_gettime(clock)
                continue
            began_s = watch.began_s
            if began_s is not None and turn != self._told_turn:
                self._look(began_s, time.clock_gettime(clock) - processor_s)

    def _look(self, began_s: float, processor_s: float) -> None:
        now_s = monotonic()
        if now_s - began_s < WALL_S_WARN and processor_s < PROCESSOR_S_WARN:
            return
        self._told_turn = self._watch.turn_count
        if now_s - self._told_s < _WARN_EVERY_S:
            self._untold += 1
            return
        log.warning(
            "All clients have been waiting for %d ms, %d ms of them work of this broker: %s%s",
            (now_s - began_s) * 1000,
            processor_s * 1000,
            self._what_runs(),
            f" (and {self._untold} more such turns before)" if self._untold else "",
        )
        self._told_s, self._untold = now_s, 0

    def _what_runs(self) -> str:
        frame = sys._current_frames().get(self._watch.thread_id)
        frames = list(_frames(frame))
        places = [place for place in map(_place, frames) if place][:_FRAMES_SHOWN]
        clients = {
            client
            for found in frames
            if (client := getattr(found.f_locals.get("context"), "client_address", None))
        }
        asked = f", asked by {' and '.join(sorted(clients))}" if clients else ""
        return (" < ".join(places) or "something outside of the broker's code") + asked


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _place(frame: FrameType) -> str | None:
    """Where in our own code a frame is; None: not in ours, or only what runs the loop itself."""
    path = PurePath(frame.f_code.co_filename)
    if "penstock" not in path.parts:
        return None
    within = path.parts[len(path.parts) - path.parts[::-1].index("penstock") :]
    if within[0] == "cli" or path.name in ("loop_watch.py", "server.py"):
        return None
    return f"{'/'.join(within)}:{frame.f_lineno} {frame.f_code.co_name}"


def watched_loop() -> tuple[asyncio.AbstractEventLoop, LoopWatch]:
    """A new event loop, and who watches it."""
    watch = LoopWatch()
    return asyncio.SelectorEventLoop(watch), watch
