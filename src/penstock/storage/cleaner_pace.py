"""How fast compaction may read and write: `log.cleaner.io.max.bytes.per.second`.

Between two pieces of work there is time to listen, too: the rate may change, and the work may be
called off. How time passes and where words come from is given, so tests need no clock.
"""

from collections.abc import Callable
from typing import Final

_STRETCH_BYTES: Final = 256 << 10
_STRETCHES_PER_S: Final = 10  # At a low rate: short pauses instead of long ones.

Listen = Callable[[float], None]  # For so many seconds, or until somebody says something.


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
