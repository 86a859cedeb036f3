"""Compaction in time that nobody else needs, as long as there is such time.

A process of the kernel's idle class is interrupted at once when a request comes in; with a mere low
priority a request may wait for the end of a time slice, which takes longer than its answer. But
where every processor is busy, the idle class gets next to nothing, and a log that is never cleaned
grows without end. So the process watches how long it waits for a processor, and says so when that
is nearly always; it is then run with a low priority instead. (Without special rights no process may
leave the idle class again.)
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_NICENESS: Final = 10
_WINDOW_S: Final = 10.0
_STARVED_SHARE: Final = 0.9  # Of the time it could run, spent waiting for a processor.
_SCHEDSTAT: Final = Path("/proc/self/schedstat")

# Seconds on a processor, and seconds ready to run but without one.
Times = tuple[float, float]


class Starved(Exception):
    """Others leave this process no time."""


def step_back(*, is_hurried: bool) -> None:
    """Let requests come first; a hurried process still gets a small share of its own."""
    os.nice(_NICENESS)
    if not is_hurried and hasattr(os, "SCHED_IDLE"):
        with suppress(OSError):  # Some sandboxes forbid it.
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def processor_times() -> Times | None:
    """What the kernel says of this process; None: it does not tell."""
    try:
        run_ns, wait_ns, _ = _SCHEDSTAT.read_text().split()
    except (OSError, ValueError):
        return None
    return int(run_ns) / 1e9, int(wait_ns) / 1e9


class Watch:
    """Asked often, looks every few seconds."""

    def __init__(
        self, now_s: Callable[[], float], times: Callable[[], Times | None] = processor_times
    ) -> None:
        self._now_s = now_s
        self._times = times
        self.begin()

    def begin(self) -> None:
        """Begin anew."""
        self._since_s = self._now_s()
        self._before = self._times()

    def check(self) -> None:
        """Raise Starved after a window with hardly any time on a processor."""
        if self._now_s() - self._since_s < _WINDOW_S:
            return
        before = self._before
        self.begin()
        now = self._before
        if before is None or now is None:
            return
        ran_s, waited_s = now[0] - before[0], now[1] - before[1]
        # A process that sleeps, for its rate or for the disk, is not starved.
        if waited_s > _WINDOW_S / 2 and waited_s > _STARVED_SHARE * (ran_s + waited_s):
            raise Starved
