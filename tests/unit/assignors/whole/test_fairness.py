"""Every assignor: each partition once, evenly, and with as little moved as can be."""

from collections.abc import Callable, Iterable, Mapping
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.assignors import (
    Assignment,
    Subscriber,
    assign_ranges,
    assign_round_robin,
    assign_sticky,
    assign_uniform,
    still_held_by_others,
)

Members = list[Subscriber[str]]
ASSIGNORS: list[Callable[[Iterable[Subscriber[str]], Mapping[str, int]], Assignment[str]]] = [
    assign_ranges,
    assign_round_robin,
    assign_sticky,
    assign_uniform,
]
TOPICS = ("a", "b", "c", "d")
partition_counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 12))


@st.composite
def some_members(draw: st.DrawFn, *, size_max: int = 6, alike: bool = False) -> Members:
    wish = st.frozensets(st.sampled_from(TOPICS))
    shared = draw(wish)
    names = draw(st.lists(st.sampled_from("mnopqrst"), unique=True, max_size=size_max))
    owned = st.dictionaries(st.sampled_from(TOPICS), st.frozensets(st.integers(0, 13)))
    return [
        Subscriber(
            member_id=name,
            topics=shared if alike else draw(wish),
            owned=draw(owned),
            instance_id=draw(st.none() | st.just(f"static-{name}")),
            generation=draw(st.integers(-1, 2)),
        )
        for name in names
    ]


def after(members: Members, assignment: Assignment[str]) -> Members:
    """The same members when everybody owns what was assigned."""
    return [
        Subscriber(member_id=m.member_id, topics=m.topics, owned=assignment[m.member_id])
        for m in members
    ]


def flat(topics: Mapping[str, Iterable[int]]) -> set[tuple[str, int]]:
    return {(topic, partition) for topic, held in topics.items() for partition in held}


def loads(assignment: Assignment[str]) -> list[int]:
    return sorted(len(flat(topics)) for topics in assignment.values())


@pytest.mark.parametrize("assign", ASSIGNORS)
@settings(max_examples=40)
@given(members=some_members(), partitions=partition_counts)
def test_every_wanted_partition_has_exactly_one_owner_and_that_one_wants_it(
    assign: Callable[..., Assignment[str]], members: Members, partitions: dict[str, int]
) -> None:
    assignment = assign(members, partitions)
    assert list(assignment) == [] or assignment.keys() == {m.member_id for m in members}
    given_away = [each for topics in assignment.values() for each in flat(topics)]
    wanted = {topic for m in members for topic in m.topics if topic in partitions}
    assert sorted(given_away) == [(t, p) for t in sorted(wanted) for p in range(partitions[t])]
    for member in members:
        assert assignment[member.member_id].keys() <= member.topics
        assert all(assignment[member.member_id].values()), "a topic without partitions is left out"


@pytest.mark.parametrize("assign", ASSIGNORS)
@settings(max_examples=40)
@given(members=some_members(), partitions=partition_counts)
def test_the_order_in_which_members_are_named_does_not_matter(
    assign: Callable[..., Assignment[str]], members: Members, partitions: dict[str, int]
) -> None:
    assert assign(members, partitions) == assign(members[::-1], partitions)


@pytest.mark.parametrize("assign", [assign_sticky, assign_uniform, assign_round_robin])
@settings(max_examples=40)
@given(members=some_members(alike=True), partitions=partition_counts)
def test_members_who_want_the_same_differ_by_one_partition_at_most(
    assign: Callable[..., Assignment[str]], members: Members, partitions: dict[str, int]
) -> None:
    found = loads(assign(members, partitions))
    assert not found or found[-1] - found[0] <= 1


@settings(max_examples=40)
@given(members=some_members(), partitions=partition_counts)
def test_range_gives_each_member_a_run_of_neighbours_per_topic(
    members: Members, partitions: dict[str, int]
) -> None:
    for topics in assign_ranges(members, partitions).values():
        for held in topics.values():
            assert held == set(range(min(held), max(held) + 1))


@settings(max_examples=40)
@given(members=some_members(alike=True), count=st.integers(1, 12))
def test_range_gives_the_same_numbers_of_every_topic_of_the_same_size(
    members: Members, count: int
) -> None:
    for topics in assign_ranges(members, dict.fromkeys(TOPICS, count)).values():
        assert len({frozenset(held) for held in topics.values()}) <= 1


@settings(max_examples=40)
@given(members=some_members(), partitions=partition_counts)
def test_range_differs_by_one_partition_within_a_topic_at_most(
    members: Members, partitions: dict[str, int]
) -> None:
    assignment = assign_ranges(members, partitions)
    for topic in TOPICS:
        sizes = [len(assignment[m.member_id].get(topic, ())) for m in members if topic in m.topics]
        assert not sizes or max(sizes) - min(sizes) <= 1


@settings(max_examples=40)
@given(members=some_members(alike=True), partitions=partition_counts)
def test_uniform_lets_members_who_want_the_same_keep_all_that_balance_allows(
    members: Members, partitions: dict[str, int]
) -> None:
    settled = after(members, assign_uniform(members, partitions))
    grown = {topic: count + 3 for topic, count in partitions.items()}
    for less in range(len(settled)):
        remaining = settled[less:]
        assignment = assign_uniform(remaining, grown)
        kept = sum(len(flat(m.owned) & flat(assignment[m.member_id])) for m in remaining)
        assert kept == most_that_can_stay(remaining, assignment)


def most_that_can_stay(members: Members, assignment: Assignment[str]) -> int:
    """Each may keep its quota; as many as get one more may keep one more."""
    sizes = loads(assignment)
    extra = sum(size > sizes[0] for size in sizes)
    owned = [len(flat(m.owned)) for m in members]
    return sum(min(o, sizes[0]) for o in owned) + min(extra, sum(o > sizes[0] for o in owned))


@pytest.mark.parametrize("assign", [assign_sticky, assign_uniform])
@settings(max_examples=40)
@given(members=some_members(), partitions=partition_counts)
def test_where_nothing_changes_nothing_moves(
    assign: Callable[..., Assignment[str]], members: Members, partitions: dict[str, int]
) -> None:
    assignment = assign(members, partitions)
    assert assign(after(members, assignment), partitions) == assignment


@settings(max_examples=40)
@given(members=some_members(), partitions=partition_counts)
def test_when_a_member_leaves_only_its_partitions_and_those_that_even_out_move(
    members: Members, partitions: dict[str, int]
) -> None:
    """Without evening out to do, nobody who stays loses anything."""
    before = assign_uniform(members, partitions)
    staying = after(members, before)[1:]
    assignment = assign_uniform(staying, partitions)
    lost = {
        m.member_id: flat(m.owned) - flat(assignment[m.member_id])
        for m in staying
        if flat(m.owned) - flat(assignment[m.member_id])
    }
    least = min(loads(assignment), default=0)
    for member_id, gone in lost.items():
        # Who gave something up was above the least loaded, else nothing is gained by it.
        assert len(flat(before[member_id])) > least, (member_id, gone)


tiny_counts = st.dictionaries(st.sampled_from("abc"), st.integers(0, 2))


@settings(max_examples=40)
@given(members=some_members(size_max=3), partitions=tiny_counts)
def test_uniform_is_as_even_as_any_assignment_can_be(
    members: Members, partitions: dict[str, int]
) -> None:
    assert unevenness(loads(assign_uniform(members, partitions))) == least_unevenness(
        members, partitions
    )


def unevenness(sizes: Iterable[int]) -> int:
    return sum(size * size for size in sizes)


def least_unevenness(members: Members, partitions: dict[str, int]) -> int:
    """By trying everything."""
    choices = [
        [m.member_id for m in members if topic in m.topics]
        for topic, count in partitions.items()
        for _ in range(count)
        if any(topic in m.topics for m in members)
    ]
    ids = [m.member_id for m in members]
    return min(
        unevenness(owners.count(member_id) for member_id in ids) for owners in product(*choices)
    )


def test_a_chain_of_moves_evens_out_what_no_single_move_can() -> None:
    members = [
        Subscriber(member_id="m", topics={"a"}, owned={"a": {0}}),
        Subscriber(member_id="n", topics={"a", "b"}, owned={"a": {1}, "b": {0}}),
        Subscriber(member_id="o", topics={"b"}, owned={"b": {1, 2, 3}}),
    ]
    assignment = assign_uniform(members, {"a": 2, "b": 4})
    assert assignment == {"m": {"a": {0, 1}}, "n": {"b": {0, 3}}, "o": {"b": {1, 2}}}


def test_a_static_member_keeps_its_range_when_its_member_id_changes() -> None:
    def run(one: str, two: str) -> list[dict[str, set[int]]]:
        members = [
            Subscriber(member_id=one, topics={"a"}, instance_id="first"),
            Subscriber(member_id=two, topics={"a"}, instance_id="second"),
        ]
        found = assign_ranges(members, {"a": 3})
        return [found[one], found[two]]

    assert run("x", "y") == run("y", "x") == [{"a": {0, 1}}, {"a": {2}}]


def test_of_two_claims_to_a_partition_the_younger_generation_counts() -> None:
    members = [
        Subscriber(member_id="m", topics={"a"}, owned={"a": {0, 1}}, generation=3),
        Subscriber(member_id="n", topics={"a"}, owned={"a": {0, 1}}, generation=4),
        Subscriber(member_id="o", topics={"a"}, owned={}, generation=4),
    ]
    assert assign_sticky(members, {"a": 2})["m"] == {}
    assert assign_sticky(members, {"a": 2})["n"] == {"a": {0}}


@settings(max_examples=40)
@given(members=some_members(), partitions=partition_counts)
def test_a_cooperative_member_waits_for_exactly_what_somebody_else_still_holds(
    members: Members, partitions: dict[str, int]
) -> None:
    target = assign_sticky(members, partitions)
    settled = after(members, target)
    changed = [*settled[1:], Subscriber(member_id="new", topics=frozenset(TOPICS))]
    target = assign_sticky(changed, partitions)
    waiting = still_held_by_others(target, changed)
    for member in changed:
        held = {each for other in changed if other is not member for each in flat(other.owned)}
        assert flat(waiting[member.member_id]) == flat(target[member.member_id]) & held


def test_two_hundred_members_with_different_wishes_share_a_thousand_partitions_equally() -> None:
    topics = {f"t{i}": 50 for i in range(20)}
    old = [Subscriber(member_id=f"m{i:03}", topics=topics.keys()) for i in range(100)]
    owned = assign_uniform(old, topics)
    members = [
        Subscriber(member_id=m.member_id, topics=m.topics, owned=owned[m.member_id]) for m in old
    ]
    members += [
        Subscriber(member_id=f"n{i:03}", topics=set(list(topics)[i % 5 :])) for i in range(100)
    ]
    assert loads(assign_uniform(members, topics)) == [5] * 200
