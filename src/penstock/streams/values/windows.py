"""Windows as the user declares them. Which records fall into one is arithmetic, so it is here."""

from dataclasses import dataclass

from penstock.streams.values.records import TimeWindow
from penstock.streams.words.kafka_words import KafkaWindows

FAR_MS = 2**62


class WindowError(ValueError):
    """A window that cannot be: no size, a negative grace, an advance past its size."""


def _check(name: str, value_ms: int, *, least_ms: int) -> None:
    if not isinstance(value_ms, int):
        raise WindowError(f"{name} must be a whole number of milliseconds, and is {value_ms!r}")
    if value_ms < least_ms:
        raise WindowError(f"{name} is {value_ms} ms; it must be at least {least_ms} ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindows(KafkaWindows):
    """Windows of one size: tumbling, or hopping where the advance is less than the size."""

    size_ms: int
    grace_ms: int
    advance_ms: int

    @classmethod
    def of(cls, size_ms: int, *, grace_ms: int = 0, advance_ms: int | None = None) -> "TimeWindows":
        """Windows of `size_ms`; a record up to `grace_ms` behind their end still counts."""
        advance_ms = size_ms if advance_ms is None else advance_ms
        _check("the size of a window", size_ms, least_ms=1)
        _check("the grace of a window", grace_ms, least_ms=0)
        _check("the advance of a window", advance_ms, least_ms=1)
        if advance_ms > size_ms:
            raise WindowError(f"an advance of {advance_ms} ms leaves gaps in {size_ms} ms windows")
        return cls(size_ms=size_ms, grace_ms=grace_ms, advance_ms=advance_ms)

    def windows_for(self, timestamp_ms: int) -> list[TimeWindow]:
        """The windows that hold the time, the earliest first; none starts before the epoch."""
        first = max(0, timestamp_ms - self.size_ms + self.advance_ms)
        first -= first % self.advance_ms
        starts = range(first, timestamp_ms + 1, self.advance_ms)
        return [TimeWindow(start, start + self.size_ms) for start in starts]

    @property
    def retention_ms(self) -> int:
        """How far behind its newest window a store still answers."""
        return self.size_ms + self.grace_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindows(KafkaWindows):
    """A window for each set of records that lie within a time of each other; both ends inside."""

    difference_ms: int
    grace_ms: int

    @classmethod
    def of(cls, difference_ms: int, *, grace_ms: int = 0) -> "SlidingWindows":
        """Records at most `difference_ms` apart share a window."""
        _check("the time difference of a sliding window", difference_ms, least_ms=0)
        _check("the grace of a window", grace_ms, least_ms=0)
        return cls(difference_ms=difference_ms, grace_ms=grace_ms)

    @property
    def retention_ms(self) -> int:
        """A new record looks back two differences for the windows it changes."""
        return 2 * self.difference_ms + self.grace_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindows(KafkaWindows):
    """Windows that end when a key was quiet for a while."""

    gap_ms: int
    grace_ms: int

    @classmethod
    def of(cls, gap_ms: int, *, grace_ms: int = 0) -> "SessionWindows":
        """A session ends after `gap_ms` without a record."""
        _check("the gap of a session", gap_ms, least_ms=1)
        _check("the grace of a window", grace_ms, least_ms=0)
        return cls(gap_ms=gap_ms, grace_ms=grace_ms)

    @property
    def retention_ms(self) -> int:
        """How far behind its newest session a store still answers."""
        return self.gap_ms + self.grace_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWindows(KafkaWindows):
    """How far before and after a left record a right one may lie to be joined."""

    before_ms: int
    after_ms: int
    grace_ms: int

    @classmethod
    def of(
        cls,
        difference_ms: int,
        *,
        before_ms: int | None = None,
        after_ms: int | None = None,
        grace_ms: int = 0,
    ) -> "JoinWindows":
        """Within `difference_ms` either way; `before_ms` and `after_ms` set one side alone."""
        before_ms = difference_ms if before_ms is None else before_ms
        after_ms = difference_ms if after_ms is None else after_ms
        for part_ms in (before_ms, after_ms):
            _check("a join window", part_ms, least_ms=-FAR_MS)
        if before_ms + after_ms < 0:
            raise WindowError("a join window must not end before it starts")
        _check("the grace of a window", grace_ms, least_ms=0)
        return cls(before_ms=before_ms, after_ms=after_ms, grace_ms=grace_ms)

    @property
    def retention_ms(self) -> int:
        """How far behind its newest record a side is still joined."""
        return self.before_ms + self.after_ms + self.grace_ms
