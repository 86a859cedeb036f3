"""A histogram of durations that costs an index and an addition to feed.

Buckets are sixteen to each doubling of microseconds, so a percentile is right within 1/16 of
itself, over any range, in a fixed list. Percentiles are of the last one to two windows: `roll`
starts a new window and drops the one before the last.
"""

from typing import Final

_SUB_BITS: Final = 4
_SUB: Final = 1 << _SUB_BITS
_LONGEST_US: Final = (1 << 32) - 1  # More than an hour: nothing we time takes longer.
_BUCKETS: Final = ((_LONGEST_US.bit_length() - _SUB_BITS) << _SUB_BITS) + _SUB


class Histogram:
    """Durations in seconds."""

    __slots__ = ("_count_before", "_counts", "_previous", "sum_s")

    def __init__(self) -> None:
        self.sum_s = 0.0
        self._counts = [0] * _BUCKETS
        self._previous: list[int] | None = None  # None: there was no window before this one.
        self._count_before = 0  # Durations counted in all windows before this one.

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.sum_s += seconds
        us = int(seconds * 1_000_000)
        if _SUB <= us <= _LONGEST_US:
            # bucket_of without the call: every request comes by here.
            shift = us.bit_length() - _SUB_BITS - 1
            self._counts[(shift << _SUB_BITS) + (us >> shift)] += 1
        else:
            self._counts[bucket_of(us)] += 1

    @property
    def count(self) -> int:
        """How many durations were counted since the beginning."""
        return self._count_before + sum(self._counts)

    def roll(self) -> None:
        """Begin a new window."""
        self._count_before = self.count
        self._previous = self._counts
        self._counts = [0] * _BUCKETS

    def percentiles(self, *quantiles: float) -> list[float]:
        """The durations in seconds below which these parts lie; 0 where nothing was seen."""
        counts = self._counts
        if self._previous is not None:
            counts = [now + before for now, before in zip(counts, self._previous, strict=True)]
        total = sum(counts)
        return [_at_rank(counts, quantile * total) if total else 0.0 for quantile in quantiles]


def bucket_of(microseconds: int) -> int:
    """Where a duration is counted."""
    if microseconds < _SUB:
        return microseconds if microseconds > 0 else 0
    if microseconds > _LONGEST_US:
        return _BUCKETS - 1
    shift = microseconds.bit_length() - _SUB_BITS - 1
    return (shift << _SUB_BITS) + (microseconds >> shift)


def bucket_top_us(bucket: int) -> int:
    """The longest duration counted in a bucket."""
    if bucket < _SUB:
        return bucket
    shift = (bucket >> _SUB_BITS) - 1
    return ((bucket - (shift << _SUB_BITS) + 1) << shift) - 1


def _at_rank(counts: list[int], rank: float) -> float:
    seen = 0
    for bucket, count in enumerate(counts):
        seen += count
        if count and seen >= rank:
            return bucket_top_us(bucket) / 1_000_000
    return _LONGEST_US / 1_000_000
