"""Where replicas go: the layout people know from the tutorials, and that it is fair."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.topics.placement import alternate_racks, place
from penstock.errors import InvalidPartitions, InvalidReplicationFactor


def no_racks(count: int) -> dict[int, str | None]:
    return dict.fromkeys(range(count))


def test_the_layout_of_the_tutorials_describe_listing() -> None:
    layout = place(no_racks(3), partition_count=13, replication_factor=3, start=2, shift=0)
    first_six = ((2, 0, 1), (0, 1, 2), (1, 2, 0), (2, 1, 0), (0, 2, 1), (1, 0, 2))
    assert tuple(layout.values()) == (*first_six, *first_six, first_six[0])
    assert list(layout) == list(range(13))


def test_ten_partitions_on_five_brokers() -> None:
    layout = place(no_racks(5), partition_count=10, replication_factor=3, start=0, shift=0)
    assert list(layout.values()) == [
        (0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1),
        (0, 2, 3), (1, 3, 4), (2, 4, 0), (3, 0, 1), (4, 1, 2),
    ]  # fmt: skip


def test_racks_alternate() -> None:
    racks = {0: "a", 1: "c", 2: "c", 3: "b", 4: "b", 5: "a"}
    assert alternate_racks(racks) == [0, 3, 1, 5, 4, 2]


def test_an_uneven_rack_comes_last() -> None:
    assert alternate_racks({0: "a", 1: "a", 2: "a", 3: "b"}) == [0, 3, 1, 2]


def test_replicas_are_in_different_racks_while_there_are_enough() -> None:
    racks: dict[int, str | None] = {0: "a", 1: "c", 2: "c", 3: "b", 4: "b", 5: "a"}
    layout = place(racks, partition_count=7, replication_factor=3, start=0, shift=0)
    assert list(layout.values()) == [
        (0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3),
        (0, 4, 2),  # The second round takes other followers than the first.
    ]  # fmt: skip
    for replicas in layout.values():
        assert {racks[broker] for broker in replicas} == {"a", "b", "c"}


def test_one_broker_without_a_rack_makes_racks_count_for_nothing() -> None:
    racks: dict[int, str | None] = {0: "a", 1: "a", 2: None}
    known = place(no_racks(3), partition_count=9, replication_factor=2, start=1, shift=1)
    assert place(racks, partition_count=9, replication_factor=2, start=1, shift=1) == known


def test_broker_ids_need_not_be_consecutive() -> None:
    brokers = dict.fromkeys((5, 10, 7))
    layout = place(brokers, partition_count=3, replication_factor=2, start=0, shift=0)
    assert list(layout.values()) == [(5, 7), (7, 10), (10, 5)]


def test_growing_goes_on_where_the_topic_stopped() -> None:
    whole = place(no_racks(5), partition_count=23, replication_factor=3, start=2, shift=2)
    begun = place(no_racks(5), partition_count=8, replication_factor=3, start=2, shift=2)
    assert begun == {number: whole[number] for number in range(8)}
    grown = place(
        no_racks(5),
        partition_count=15,
        replication_factor=3,
        start=2,
        shift=2,
        first_partition=8,
    )
    assert [replicas[0] for replicas in grown.values()] == [whole[n][0] for n in range(8, 23)]


@pytest.mark.parametrize(
    ("partitions", "factor", "error", "message"),
    [
        (0, 1, InvalidPartitions, "Number of partitions must be larger than 0."),
        (-1, 1, InvalidPartitions, "Number of partitions must be larger than 0."),
        (1, 0, InvalidReplicationFactor, "Replication factor must be larger than 0."),
        (1, -1, InvalidReplicationFactor, "Replication factor must be larger than 0."),
        (
            1,
            3,
            InvalidReplicationFactor,
            "Replication factor: 3 larger than available brokers: 1.",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_kafkas_words(
    partitions: int, factor: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        place(no_racks(1), partition_count=partitions, replication_factor=factor, start=0, shift=0)
    assert str(caught.value) == message


rack_maps = st.dictionaries(
    st.integers(0, 40), st.sampled_from(("a", "b", "c", "d")), min_size=1, max_size=9
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[dict[int, str | None], int, int, int, int]:
    racks = draw(rack_maps)
    if draw(st.booleans()):
        racks = dict.fromkeys(racks)
    count = len(racks)
    partitions, factor = draw(st.integers(1, 60)), draw(st.integers(1, count))
    return racks, partitions, factor, draw(st.integers(0, count)), draw(st.integers(0, count))


@given(requests())
def test_every_partition_has_its_replicas_on_different_brokers(
    request_: tuple[dict[int, str | None], int, int, int, int],
) -> None:
    racks, partitions, factor, start, shift = request_
    layout = place(
        racks, partition_count=partitions, replication_factor=factor, start=start, shift=shift
    )
    assert list(layout) == list(range(partitions))
    for replicas in layout.values():
        assert len(replicas) == len(set(replicas)) == factor
        assert set(replicas) <= set(racks)


@given(requests())
def test_leaders_are_spread_within_one(
    request_: tuple[dict[int, str | None], int, int, int, int],
) -> None:
    racks, partitions, factor, start, shift = request_
    layout = place(
        racks, partition_count=partitions, replication_factor=factor, start=start, shift=shift
    )
    led = Counter(replicas[0] for replicas in layout.values())
    counts = [led[broker] for broker in racks]
    assert max(counts) - min(counts) <= 1


@given(requests())
def test_a_rack_gets_a_second_replica_only_when_every_rack_has_one(
    request_: tuple[dict[int, str | None], int, int, int, int],
) -> None:
    racks, partitions, factor, start, shift = request_
    if None in racks.values():
        return
    layout = place(
        racks, partition_count=partitions, replication_factor=factor, start=start, shift=shift
    )
    rack_count = len(set(racks.values()))
    for replicas in layout.values():
        assert len({racks[broker] for broker in replicas}) == min(factor, rack_count)


@given(st.integers(2, 8), st.data())
def test_replicas_are_spread_evenly_over_whole_rounds(count: int, data: st.DataObject) -> None:
    """Without racks, as many partitions as brokers times followers' places give all the same."""
    factor = data.draw(st.integers(1, count))
    start, shift = data.draw(st.integers(0, count)), data.draw(st.integers(0, count))
    layout = place(
        no_racks(count),
        partition_count=count * max(1, count - 1),
        replication_factor=factor,
        start=start,
        shift=shift,
    )
    hosted = Counter(broker for replicas in layout.values() for broker in replicas)
    assert len(set(hosted.values())) == 1
