"""Log lines about peers that nobody knows, bounded: a flood of them must not fill the disk.

Each line comes as it is while there are few. Beyond that, lines are left out, and the next one
that is written tells how many. Lines of one kind, which differ by their peer alone, have a bound
of their own: a thousand peers that do the same thing are told of once a second, and do not hide
what others do.
"""

import logging
import time
from collections.abc import Callable

_KINDS_MAX = 100  # A reason may hold what a peer has sent.


class PeerLog:
    """A logger that writes at most so many lines a second, after a first burst.

    Values are the peer, and then the reason.
    """

    def __init__(
        self,
        log: logging.Logger,
        *,
        lines_per_s: float = 10.0,
        burst: int = 200,
        lines_per_kind_s: float = 1.0,
        burst_per_kind: int = 10,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._now_s = now_s
        self._all = _Allowance(lines_per_s, burst, now_s())
        self._rate_of_kind, self._burst_of_kind = lines_per_kind_s, burst_per_kind
        self._kinds: dict[tuple[object, ...], _Allowance] = {}
        self._omitted = 0

    def info(self, text: str, *values: object) -> None:
        self._write(logging.INFO, text, values)

    def warning(self, text: str, *values: object) -> None:
        self._write(logging.WARNING, text, values)

    def _write(self, level: int, text: str, values: tuple[object, ...]) -> None:
        if not self._log.isEnabledFor(level):
            return
        now_s = self._now_s()
        if not self._allowance_of((text, *values[1:]), now_s).take(now_s):
            self._omitted += 1
            return
        if not self._all.take(now_s):
            self._omitted += 1
            return
        if self._omitted:
            text += f" ({self._omitted} lines about other peers were left out)"
            self._omitted = 0
        self._log.log(level, text, *values)

    def _allowance_of(self, kind: tuple[object, ...], now_s: float) -> "_Allowance":
        found = self._kinds.get(kind)
        if found is None:
            if len(self._kinds) >= _KINDS_MAX:
                self._kinds.clear()
            found = _Allowance(self._rate_of_kind, self._burst_of_kind, now_s)
            self._kinds[kind] = found
        return found


class _Allowance:
    """Lines that may still be written; it fills up again with time."""

    __slots__ = ("_burst", "_counted_s", "_left", "_lines_per_s")

    def __init__(self, lines_per_s: float, burst: int, now_s: float) -> None:
        self._lines_per_s = lines_per_s
        self._burst = burst
        self._left = float(burst)
        self._counted_s = now_s

    def take(self, now_s: float) -> bool:
        """Whether one more may be written, which is then counted."""
        gained = (now_s - self._counted_s) * self._lines_per_s
        self._left, self._counted_s = min(self._burst, self._left + gained), now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True
