"""librdkafka's statistics over the last half minute: counters, gauges, distributions.

librdkafka emits a JSON document at intervals, with counters since the start and distributions of
the last interval. What Kafka would call them is for `metrics`.
"""

import itertools
import json
import math
from collections import deque
from collections.abc import Iterable
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]

_WINDOW_COUNT_MAX = 31
_WINDOW_CHARS_MAX = 8_000_000  # With thousands of partitions a document is large: keep fewer.


class Statistics:
    """The statistics of the last half minute, kept as text and read only when asked for."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque(maxlen=_WINDOW_COUNT_MAX)

    def add(self, text: str) -> None:
        """Take a document; librdkafka calls this."""
        self._texts.append(text)
        while len(self._texts) > 2 and sum(map(len, self._texts)) > _WINDOW_CHARS_MAX:
            self._texts.popleft()

    def documents(self) -> list[Document]:
        """Oldest first."""
        return [json.loads(text) for text in tuple(self._texts)]


class Series:
    """The same part (all, one broker, one topic) of several documents, with their times."""

    def __init__(self, parts: Iterable[tuple[float, Document]]) -> None:
        self._parts = list(parts)

    def rate(self, *path: str) -> float:
        """Growth per second of a counter over the window."""
        if len(self._parts) < 2:
            return 0.0
        (first_s, first), (last_s, last) = self._parts[0], self._parts[-1]
        if last_s <= first_s:
            return 0.0
        return (_number(last, path) - _number(first, path)) / (last_s - first_s)

    def growth(self, *path: str) -> float:
        """By how much a counter grew over the window; of one document, since the start."""
        if not self._parts:
            return 0.0
        before = _number(self._parts[0][1], path) if len(self._parts) > 1 else 0.0
        return _number(self._parts[-1][1], path) - before

    def last(self, *path: str) -> float:
        """The newest value of a counter or gauge."""
        return _number(self._parts[-1][1], path) if self._parts else math.nan

    def average(self, *path: str) -> float:
        """The mean over all distributions of the window."""
        found = [_distribution(part, path) for _, part in self._parts]
        count = sum(one.get("cnt", 0) for one in found)
        return sum(one.get("sum", 0) for one in found) / count if count else math.nan

    def highest(self, *path: str) -> float:
        """The greatest value in any distribution of the window."""
        found = [_distribution(part, path) for _, part in self._parts]
        seen = [one["max"] for one in found if one.get("cnt")]
        return float(max(seen)) if seen else math.nan

    def total(self, *path: str) -> float:
        """The sum over all distributions of the window."""
        within = self._parts[1:] or self._parts  # The first one tells of the time before.
        return float(sum(_distribution(part, path).get("sum", 0) for _, part in within))

    def count(self, *path: str) -> float:
        """How many values the distributions of the window hold."""
        within = self._parts[1:] or self._parts
        return float(sum(_distribution(part, path).get("cnt", 0) for _, part in within))

    def peak(self, upper: str, lower: str) -> float:
        """The greatest average per piece that any interval of the window had."""
        seen = []
        for (_, before), (_, after) in itertools.pairwise(self._parts):
            pieces = after.get(lower, 0) - before.get(lower, 0)
            if pieces > 0:
                seen.append((after.get(upper, 0) - before.get(upper, 0)) / pieces)
        return max(seen) if seen else self.ratio(upper, lower)

    def ratio(self, upper: str, lower: str) -> float:
        """One counter by another, over the whole life."""
        below = self.last(lower)
        return self.last(upper) / below if below else math.nan


def _number(part: Document, path: tuple[str, ...]) -> float:
    value: Any = part
    for step in path:
        value = value.get(step, 0) if isinstance(value, dict) else 0
    return float(value)


def _distribution(part: Document, path: tuple[str, ...]) -> Document:
    value: Any = part
    for step in path:
        value = value.get(step, {})
    return value if isinstance(value, dict) else {}
