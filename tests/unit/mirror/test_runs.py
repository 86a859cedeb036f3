"""Offsets on both sides, against a plain list of where every record stands."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.mirror.runs import Run, RunMap, Stretch, forgettable, new_runs, paired

# What can stand next in the source: so many records, a hole, a marker, or records left out.
STEPS = st.lists(
    st.tuples(st.sampled_from(["records", "hole", "marker", "aborted"]), st.integers(1, 6)),
    max_size=30,
)
# What the target has between two batches: nothing, the mirror's marker, somebody else's records,
# and a restart after which the mirror knows nothing of the last distance.
BETWEEN = st.lists(st.sampled_from(["", "", "marker", "foreign", "restart"]), max_size=40)


class Copied:
    """A plain model: each copied record's two offsets, beside the map that was built."""

    def __init__(self, steps: list[tuple[str, int]], between: list[str], first: int) -> None:
        self.pairs: list[tuple[int, int]] = []
        self.map = RunMap()
        self.source, self.target = first, 0
        distance: int | None = None
        turns = iter(between)
        for kind, count in steps:
            if kind == "records":
                distance = self._copy(count, distance)
                turn = next(turns, "")
                self.target += {"marker": 1, "foreign": 3}.get(turn, 0)
                distance = None if turn == "restart" else distance
            self.source += 1 if kind == "marker" else count
        self.map.end = self.pairs[-1][1] + 1 if self.pairs else None

    def _copy(self, count: int, distance: int | None) -> int | None:
        self.pairs += [(self.source + n, self.target + n) for n in range(count)]
        stretch = Stretch(self.source, self.target, count)
        runs, distance = new_runs(distance, [stretch])
        self.map.extend(runs)
        self.target += count
        return distance

    def places(self) -> Iterator[int]:
        return iter(range(self.source + 10))


@given(STEPS, BETWEEN, st.integers(0, 50))
def test_a_reader_goes_on_at_exactly_the_record_that_comes_next(
    steps: list[tuple[str, int]], between: list[str], first: int
) -> None:
    copied = Copied(steps, between, first)
    for place in copied.places():
        there = copied.map.translate(place)
        if there is None:
            assert copied.pairs == []
            continue
        left = [source for source, target in copied.pairs if target >= there]
        assert left == [source for source, _ in copied.pairs if source >= place]


@given(STEPS, BETWEEN, st.integers(0, 50))
def test_a_reader_who_returns_goes_on_at_exactly_the_record_that_comes_next(
    steps: list[tuple[str, int]], between: list[str], first: int
) -> None:
    copied = Copied(steps, between, first)
    for place in range(copied.target + 10):
        back = copied.map.translate_back(place)
        if back is None:
            assert copied.pairs == []
            continue
        left = [target for source, target in copied.pairs if source >= back]
        assert left == [target for _, target in copied.pairs if target >= place]


@given(STEPS, BETWEEN, st.integers(0, 50))
def test_translations_never_go_back(
    steps: list[tuple[str, int]], between: list[str], first: int
) -> None:
    copied = Copied(steps, between, first)
    found = [copied.map.translate(place) for place in copied.places()]
    known = [place for place in found if place is not None]
    assert known == sorted(known)


def test_a_distance_that_stays_needs_no_run() -> None:
    runs, distance = new_runs(None, [Stretch(5, 105, 3), Stretch(9, 109, 1), Stretch(20, 111, 2)])
    assert (runs, distance) == ([Run(5, 105), Run(20, 111)], 91)
    assert new_runs(distance, [Stretch(22, 113, 1)]) == ([], 91)


@given(st.lists(st.integers(1, 9), min_size=1), st.lists(st.integers(1, 9), min_size=1))
def test_stretches_hold_where_both_sides_are_cut(first: list[int], second: list[int]) -> None:
    total = min(sum(first), sum(second))
    sources = cut([(1000 * n, count) for n, count in enumerate(first)], total)
    targets = cut([(7000 * n, count) for n, count in enumerate(second)], total)
    stretches = list(paired(sources, targets))
    assert flat((s.source, s.length) for s in stretches) == flat(sources)
    assert flat((s.target, s.length) for s in stretches) == flat(targets)


def test_runs_must_ascend() -> None:
    with pytest.raises(ValueError, match="does not follow"):
        RunMap([Run(5, 5), Run(4, 4)])


@given(st.lists(st.integers(0, 60), unique=True).map(sorted), st.integers(0, 70))
def test_what_may_be_forgotten_leaves_every_later_translation_as_it_was(
    firsts: list[int], start: int
) -> None:
    runs = [Run(first, 2 * first) for first in firsts]
    gone = set(forgettable(firsts, start))
    whole = RunMap(runs, end=1000)
    rest = RunMap([run for run in runs if run.source not in gone], end=1000)
    assert all(whole.translate(n) == rest.translate(n) for n in range(start, 75))


def flat(spans: object) -> list[int]:
    return [n for first, count in spans for n in range(first, first + count)]  # type: ignore[attr-defined]


def cut(spans: list[tuple[int, int]], total: int) -> list[tuple[int, int]]:
    """As many of the records as there are on both sides."""
    kept = []
    for first, count in spans:
        kept.append((first, min(count, total)))
        total -= min(count, total)
    return [span for span in kept if span[1]]
