"""What a task counts, under the names of Connect's metrics; the worker shows it to scrapers.

Counts are told over the line, all of them together and at most once a second, so that counting
costs a task nothing that can be measured.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

POLLED: Final = "source-record-poll-total"
WRITTEN: Final = "source-record-write-total"
READ: Final = "sink-record-read-total"
SENT: Final = "sink-record-send-total"
COMMITTED: Final = "offset-commit-success-total"
NOT_COMMITTED: Final = "offset-commit-failure-total"
_EVERY_S: Final = 1.0


class TaskCounts:
    """Counts of one run, and whether it is time to tell them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._told_s = clock()

    def add(self, name: str, number: int = 1) -> None:
        """Count."""
        self._counts[name] = self._counts.get(name, 0) + number

    def news(self, *, at_end: bool = False) -> dict[str, int] | None:
        """All counts, if they have changed and were not told a moment ago; None: say nothing."""
        is_early = self._clock() - self._told_s < _EVERY_S and not at_end
        if is_early or self._counts == self._told:
            return None
        self._told, self._told_s = dict(self._counts), self._clock()
        return self._told


def commit_percentages(counts: Mapping[str, int]) -> tuple[float, float]:
    """Which part of the commits succeeded and failed, between 0 and 1, as Connect tells it."""
    good, bad = counts.get(COMMITTED, 0), counts.get(NOT_COMMITTED, 0)
    return (good / (good + bad), bad / (good + bad)) if good + bad else (0.0, 0.0)
