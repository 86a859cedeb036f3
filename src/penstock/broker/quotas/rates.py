"""Rates as Kafka measures them, and the pause that brings a client back within its limit.

Pure arithmetic on times that are passed in. Whose rate it is, and what happens in the pause,
is decided elsewhere.
"""

from collections import deque
from typing import Final, NamedTuple

THROTTLE_MS_MAX: Final = (1 << 31) - 1  # What a response can tell.


class QuotaWindow(NamedTuple):
    """The time a rate is measured over, in samples."""

    samples: int
    sample_ms: int

    @property
    def whole_ms(self) -> int:
        """The time that counts even when the client has only just come.

        Without the sample that is being filled: so a first burst is not an endless rate, and a
        client may use at once what it is allowed in this time.
        """
        return max(self.samples - 1, 1) * self.sample_ms


class SlidingSum:
    """A sum over the latest samples; the oldest leaves as a whole when its time is over."""

    __slots__ = ("_kept_ms", "_parts", "_sample_ms", "_samples", "events", "total")

    def __init__(self, window: QuotaWindow) -> None:
        self._samples, self._sample_ms = window
        self._kept_ms = self._samples * self._sample_ms
        self._parts: deque[list[float]] = deque()  # [began_ms, sum, events], oldest first.
        self.total: float = 0
        self.events: float = 0

    def add(self, amount: float, now_ms: int) -> None:
        parts = self._parts
        if parts and now_ms - (last := parts[-1])[0] < self._sample_ms:
            last[1] += amount
            last[2] += 1
        else:
            self.expire(now_ms)
            parts.append([now_ms, amount, 1])
        self.total += amount
        self.events += 1

    def expire(self, now_ms: int) -> None:
        """Forget the samples that are too old to count."""
        parts = self._parts
        while parts and now_ms - parts[0][0] >= self._kept_ms:
            _, amount, events = parts.popleft()
            self.total -= amount
            self.events -= events
        if not parts:
            self.total = self.events = 0  # What rounding left over.

    def span_ms(self, now_ms: int) -> int:
        """The time the sum stands for: since the oldest sample, and never less than all but one."""
        self.expire(now_ms)
        elapsed_ms = now_ms - int(self._parts[0][0]) if self._parts else 0
        missing = self._samples - 1 - elapsed_ms // self._sample_ms
        if missing > 0:
            elapsed_ms += missing * self._sample_ms
        return elapsed_ms or 1

    def per_second(self, now_ms: int) -> float:
        span_ms = self.span_ms(now_ms)
        return self.total * 1000 / span_ms

    def average(self, now_ms: int) -> float:
        """Of the amounts that were added; 0 when there were none lately."""
        self.expire(now_ms)
        return self.total / self.events if self.events else 0.0


def throttle_ms(used: SlidingSum, limit: float, now_ms: int) -> int:
    """How long nothing may come until the sum, spread over that time too, is within the limit.

    This is Kafka's (rate - limit) / limit * span, with the division by the span taken out.
    """
    span_ms = used.span_ms(now_ms)
    if used.total * 1000 <= limit * span_ms:
        return 0
    if limit <= 0:
        return THROTTLE_MS_MAX
    return round(min(used.total * 1000 / limit - span_ms, THROTTLE_MS_MAX))


class TokenBucket:
    """Tokens drop in at the limit's rate, up to what the whole window lets in.

    Whoever comes while it is not in debt may take any number, and the debt is waited for: so one
    large change is possible at all, and many small ones are spread out.
    """

    __slots__ = ("_limit", "_most", "_seen_ms", "_window_s", "tokens")

    def __init__(self, window: QuotaWindow, *, limit: float, now_ms: int) -> None:
        self._window_s = window.samples * window.sample_ms / 1000
        self.limit = limit
        self.tokens = self._most
        self._seen_ms = now_ms

    @property
    def limit(self) -> float:
        """How many tokens drop in per second."""
        return self._limit

    @limit.setter
    def limit(self, limit: float) -> None:
        self._limit = limit
        self._most = limit * self._window_s

    def refill(self, now_ms: int) -> None:
        tokens = self.tokens + self._limit * (now_ms - self._seen_ms) / 1000
        self.tokens = tokens if tokens < self._most else self._most
        self._seen_ms = now_ms

    def take(self, count: float, now_ms: int) -> None:
        self.refill(now_ms)
        self.tokens = min(self.tokens - count, self._most)

    def forgive_beyond(self, debt_ms: int) -> None:
        self.tokens = max(self.tokens, -self._limit * debt_ms / 1000)

    def debt_ms(self, now_ms: int) -> int:
        """How long until nothing is owed; 0 if nothing is."""
        self.refill(now_ms)
        if self.tokens >= 0:
            return 0
        return round(min(-self.tokens / self._limit * 1000, THROTTLE_MS_MAX))
