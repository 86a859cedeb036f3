"""Notices an event loop that hangs, so that a hung broker does not look alive.

kazoo's thread goes on greeting ZooKeeper while the loop is stuck, and the broker would keep its
leaderships without serving anybody. This thread looks whether the loop still ticks; what to do
about it is for the owner.
"""

import asyncio
import threading
from collections.abc import Callable

_LOOKS = 4  # How often to look within the limit.


class LoopWatchdog:
    """Calls `on_hang` from its thread when the loop stood for `limit_s`, then `on_recovery`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        limit_s: float,
        on_hang: Callable[[], None],
        on_recovery: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._every_s = limit_s / _LOOKS
        self._on_hang = on_hang
        self._on_recovery = on_recovery
        self._has_ticked = threading.Event()
        self._is_stopped = threading.Event()
        self._tick: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """On the loop."""
        self._beat()
        threading.Thread(target=self._look, name="loop-watchdog", daemon=True).start()

    def stop(self) -> None:
        """On the loop. The thread ends at its next look."""
        self._is_stopped.set()
        if self._tick is not None:
            self._tick.cancel()

    def _beat(self) -> None:
        self._has_ticked.set()
        self._tick = self._loop.call_later(self._every_s / 2, self._beat)

    def _look(self) -> None:
        silent = 0
        while not self._is_stopped.wait(self._every_s):
            # Looks are counted, not seconds: when the whole process stood still, for instance
            # stopped by a signal, the loop gets its time to tick before it is called hung.
            silent = 0 if self._has_ticked.is_set() else silent + 1
            self._has_ticked.clear()
            if silent == _LOOKS:
                self._on_hang()
                self._wait_for_recovery()
                silent = 0

    def _wait_for_recovery(self) -> None:
        while not self._is_stopped.is_set():
            if self._has_ticked.wait(self._every_s):
                self._on_recovery()
                return
