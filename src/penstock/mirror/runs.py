"""Where a record of the source stands on the target: an exact map of offsets, as runs.

A run is a stretch over which both offsets count on in step. A new one begins only where the
distance changes: at a marker, at records that were left out, at a hole, at the end of one of the
mirror's own transactions. Runs are written to a topic by `copying`, which is also where batches
become runs; here nothing knows of topics.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Run(NamedTuple):
    """From this source offset on, records stand from this target offset on."""

    source: int
    target: int


class Stretch(NamedTuple):
    """Records with offsets in a row on both sides."""

    source: int
    target: int
    length: int


def paired(
    sources: Iterable[tuple[int, int]], targets: Iterable[tuple[int, int]]
) -> Iterator[Stretch]:
    """Where records stand, from where they came from and where the target put them.

    Both sides are pairs of a first offset and a count, in the order of the records; they are cut
    differently where a batch has holes or had to be split.
    """
    put = iter(targets)
    target, room = next(put, (0, 0))
    for source, count in sources:
        while count:
            if not room:
                target, room = next(put)
            step = min(count, room)
            yield Stretch(source, target, step)
            source, target = source + step, target + step
            count, room = count - step, room - step


def new_runs(distance: int | None, stretches: Iterable[Stretch]) -> tuple[list[Run], int | None]:
    """The runs that begin with these stretches, and the distance that the last one leaves.

    A distance of None: nothing is known of what was copied before, so the first one begins a run.
    """
    runs: list[Run] = []
    for source, target, _ in stretches:
        if target - source != distance:
            distance = target - source
            runs.append(Run(source, target))
    return runs, distance


class RunMap:
    """The runs of one partition, in ascending order, sixteen bytes each."""

    def __init__(self, runs: Iterable[Run] = (), *, end: int | None = None) -> None:
        self._sources = array("q")
        self._targets = array("q")
        self.end = end  # The target offset behind the last copied record; None: none is known.
        self.extend(runs)

    def __len__(self) -> int:
        return len(self._sources)

    def extend(self, runs: Iterable[Run]) -> None:
        """Add runs that begin behind all there are."""
        for run in runs:
            if self._sources and (run.source, run.target) <= (self._sources[-1], self._targets[-1]):
                raise ValueError(f"{run} does not follow {self._sources[-1]}, {self._targets[-1]}")
            self._sources.append(run.source)
            self._targets.append(run.target)

    def translate(self, source: int) -> int | None:
        """Where a reader goes on that has read all records before this source offset.

        None: nothing was copied. A place behind all that was copied becomes the end of that.
        """
        at = bisect_right(self._sources, source) - 1
        if at < 0:
            return self._targets[0] if self._targets else self.end
        return self._bounded(self._targets[at] + source - self._sources[at], self._targets, at)

    def translate_back(self, target: int) -> int | None:
        """The same from the target to the source, for those who return; None: nothing was copied.

        A place behind all that was copied becomes the source offset behind the last record.
        """
        at = bisect_right(self._targets, target) - 1
        if at < 0:
            return self._sources[0] if self._sources else None
        behind = target if self.end is None else min(target, self.end)
        return self._bounded(self._sources[at] + behind - self._targets[at], self._sources, at)

    def _bounded(self, linear: int, firsts: Sequence[int], at: int) -> int:
        """A place between two runs leads to the second; one behind all, to the end."""
        if at + 1 < len(firsts):
            linear = min(linear, firsts[at + 1])
        return linear if self.end is None or firsts is not self._targets else min(linear, self.end)


def forgettable(firsts: Sequence[int], start: int) -> list[int]:
    """Which groups of runs, by their first source offsets, nobody needs who reads from `start`."""
    kept_from = bisect_left(firsts, start + 1) - 1
    return list(firsts[: max(0, kept_from)])
