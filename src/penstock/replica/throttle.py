"""How fast replicas that are out of sync may be copied, so that moving data hurts nobody else.

A partition is held back only where its topic names it (`*.replication.throttled.replicas`), only
while the copy is not in sync (KAFKA-4313), and only once the broker's rate is used up. The leader
and the follower each have a rate of their own.
"""

from collections.abc import Callable
from typing import Final

from penstock.config.broker import BrokerConfig

NO_LIMIT: Final = 2**63 - 1
_EVERYTHING: Final = "*"
_WINDOW_NUM: Final = "replication.quota.window.num"


def is_throttled(words: tuple[str, ...], partition: int, broker_id: int) -> bool:
    """Whether a topic's list, of `partition:broker` or `*`, names this replica."""
    if not words:
        return False
    return _EVERYTHING in words or f"{partition}:{broker_id}" in words


def window_s(config: BrokerConfig) -> int:
    """How long a rate may go unused and be made up for at once.

    Kafka measures over all windows but the one that has just begun. Its default of eleven would
    let ten seconds' worth through at once; here that is done only where somebody asks for it.
    """
    size_s = config.replication_quota_window_size_seconds
    if _WINDOW_NUM not in config.static:
        return size_s
    return size_s * max(1, config.replication_quota_window_num - 1)


class ReplicationRate:
    """A bucket that fills at the rate; what was copied is taken out, even if that is too much."""

    def __init__(
        self,
        rate: Callable[[], int],  # Bytes a second.
        *,
        window_s: Callable[[], int] = lambda: 1,
        clock_ms: Callable[[], int],
    ) -> None:
        self._rate = rate
        self._window_s = window_s
        self._clock_ms = clock_ms
        self._filled_ms = clock_ms()
        self._left = 0.0
        self._used_rate = 0
        self.copied_bytes = 0  # Of throttled replicas, since the start.

    def note(self, size_bytes: int) -> None:
        self.copied_bytes += size_bytes
        self._fill()
        self._left -= size_bytes

    @property
    def is_exceeded(self) -> bool:
        if self._rate() >= NO_LIMIT:
            return False
        self._fill()
        return self._left <= 0

    def _fill(self) -> None:
        rate, now_ms = self._rate(), self._clock_ms()
        most = float(rate) * self._window_s()
        if rate != self._used_rate:  # A new rate begins with a full bucket.
            self._used_rate, self._left = rate, most
        else:
            self._left = min(most, self._left + rate * (now_ms - self._filled_ms) / 1000)
        self._filled_ms = now_ms
