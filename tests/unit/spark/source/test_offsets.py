"""How offsets are shared between batches and tasks: nothing lost, nothing twice."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.client.values import TopicPartition
from penstock.spark.source.offsets import OffsetRange, available, flat, limited, nested, split

partitions = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 20))
ends = st.dictionaries(partitions, st.tuples(st.integers(0, 50), st.integers(0, 1000)), min_size=1)


@given(st.dictionaries(partitions, st.integers(0, 9)))
def test_the_json_of_offsets_comes_back_and_has_one_order(
    offsets: dict[TopicPartition, int],
) -> None:
    assert flat(nested(offsets)) == offsets
    backwards = dict(sorted(offsets.items(), reverse=True))
    assert str(nested(backwards)) == str(nested(offsets))


@given(ends, st.integers(1, 500))
def test_a_limit_is_used_fully_and_never_exceeded(
    drawn: dict[TopicPartition, tuple[int, int]], limit: int
) -> None:
    start = {p: begin for p, (begin, _) in drawn.items()}
    end = {p: begin + size for p, (begin, size) in drawn.items()}
    cut = limited(start, end, limit)
    assert set(cut) == set(end)
    assert all(start[p] <= cut[p] <= end[p] for p in end)
    assert available(start, cut) == min(limit, available(start, end))


@given(ends, st.integers(1, 500))
def test_no_partition_with_records_waits_behind_a_larger_one(
    drawn: dict[TopicPartition, tuple[int, int]], limit: int
) -> None:
    start = {p: begin for p, (begin, _) in drawn.items()}
    end = {p: begin + size for p, (begin, size) in drawn.items()}
    waiting = [p for p in end if end[p] > start[p]]
    cut = limited(start, end, limit)
    if limit >= len(waiting):
        assert all(cut[p] > start[p] for p in waiting)


@given(ends, st.none() | st.integers(1, 40), st.none() | st.integers(1, 200))
def test_tasks_cover_every_offset_once(
    drawn: dict[TopicPartition, tuple[int, int]], least: int | None, most: int | None
) -> None:
    ranges = [
        OffsetRange(partition=p, start=begin, end=begin + size)
        for p, (begin, size) in drawn.items()
    ]
    pieces = split(ranges, min_partitions=least, max_records=most)
    covered = [(piece.partition, at) for piece in pieces for at in range(piece.start, piece.end)]
    wanted = [(one.partition, at) for one in ranges for at in range(one.start, one.end)]
    assert sorted(covered) == sorted(wanted)
    assert len(set(covered)) == len(covered)
    assert all(0 < piece.size <= (most or piece.size) for piece in pieces)
    if least is not None and least <= len(wanted):
        assert len(pieces) >= min(least, len(wanted))


def test_partitions_stay_whole_where_nothing_asks_for_more() -> None:
    one = OffsetRange(partition=TopicPartition("a", 0), start=3, end=10)
    empty = OffsetRange(partition=TopicPartition("a", 1), start=3, end=3)
    assert split([one, empty]) == [one]
    assert split([one, empty], min_partitions=1) == [one]
