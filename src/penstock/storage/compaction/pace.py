"""How much of the machine compaction may take: bytes by the second, and time on a processor.

`Pace` keeps to `log.cleaner.io.max.bytes.per.second`. Between two pieces of work there is time to
listen, too: the rate may change, and the work may be called off. How time passes and where words
come from is given, so tests need no clock.

A process of the kernel's idle class is interrupted at once when a request comes in; with a mere low
priority a request may wait for the end of a time slice, which takes longer than its answer. But
where every processor is busy, the idle class gets next to nothing, and a log that is never cleaned
grows without end. So `Watch` looks how long the process waits for a processor, and says so when
that is nearly always; it is then run with a low priority instead. (Without special rights no
process may leave the idle class again.)
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_STRETCH_BYTES: Final = 256 << 10
_STRETCHES_PER_S: Final = 10  # At a low rate: short pauses instead of long ones.
_NICENESS: Final = 10
_WINDOW_S: Final = 10.0
_STARVED_SHARE: Final = 0.9  # Of the time it could run, spent waiting for a processor.
_SCHEDSTAT: Final = Path("/proc/self/schedstat")

Listen = Callable[[float], None]  # For so many seconds, or until somebody says something.
# Seconds on a processor, and seconds ready to run but without one.
Times = tuple[float, float]


class Pace:
    """`spend` is called with every piece of work; most calls only add."""

    def __init__(self, bytes_per_s: float, *, listen: Listen, now_s: Callable[[], float]) -> None:
        self.total_bytes = 0
        self._listen = listen
        self._now_s = now_s
        self._pending_bytes = 0
        self.set_rate(bytes_per_s)

    def set_rate(self, bytes_per_s: float) -> None:
        """From now on; what was spent before is settled."""
        self._bytes_per_s = max(bytes_per_s, 1.0)
        self._since_s = self._now_s()
        self._since_bytes = self.total_bytes
        self._stretch_bytes = int(min(_STRETCH_BYTES, self._bytes_per_s / _STRETCHES_PER_S)) or 1

    def spend(self, size: int) -> None:
        """So many bytes were read or written; returns when it is time to go on."""
        self._pending_bytes += size
        if self._pending_bytes >= self._stretch_bytes:
            self.total_bytes += self._pending_bytes
            self._pending_bytes = 0
            self._rest()

    def _rest(self) -> None:
        self._listen(0)
        while (early_s := self._early_s()) > 0:
            self._listen(early_s)

    def _early_s(self) -> float:
        """How long to wait until the rate is kept."""
        due_s = self._since_s + (self.total_bytes - self._since_bytes) / self._bytes_per_s
        return due_s - self._now_s()


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
