"""Groups with real processes as members: shared work, broadcast, takeover, standby."""

import pytest
from tests.integration.groups.lab import (
    LIBRARIES,
    PATIENCE_S,
    SHORT_SESSION_MS,
    Lab,
    partitions_of,
    read_by,
    shared,
)
from tests.support.waiting import eventually

TOPIC = "tasks"


def numbered(count: int, name: str = "message") -> list[str]:
    return [f"{name} {number}" for number in range(count)]


@pytest.mark.parametrize("count", [7, 25])
def test_three_consumers_of_one_group_share_the_messages(lab: Lab, count: int) -> None:
    lab.create(TOPIC, 3)
    members = [lab.member("workers", TOPIC) for _ in range(3)]
    shared(members, partitions_of(TOPIC, 3), shares=[1, 1, 1])
    lab.send(TOPIC, numbered(count), 3)
    assert set(read_by(members, numbered(count)).values()) == {1}
    for member in members:
        assert {read.partition for read in member.records} == {member.assignment[0][1]}


def test_every_group_of_its_own_gets_all_messages(lab: Lab) -> None:
    lab.create(TOPIC, 3)
    lab.send(TOPIC, numbered(25), 3)
    members = [lab.member(f"listener {number}", TOPIC) for number in range(3)]
    for member in members:
        assert read_by([member], numbered(25)) == dict.fromkeys(numbered(25), 1)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_others_take_over_from_a_consumer_killed_with_signal_9(lab: Lab, library: str) -> None:
    lab.create(TOPIC, 4)
    members = [
        lab.member("workers", TOPIC, library=library, session_ms=SHORT_SESSION_MS) for _ in range(3)
    ]
    shared(members, partitions_of(TOPIC, 4), shares=[1, 1, 2])
    lab.send(TOPIC, numbered(40, "before"), 4)
    read_by(members, numbered(40, "before"))
    victim, *others = members
    victim.kill()
    shared(others, partitions_of(TOPIC, 4))
    lab.send(TOPIC, numbered(40, "after"), 4)
    seen = read_by(others, numbered(40, "after"))
    assert {value for value, times in seen.items() if times > 1} <= set(victim.values)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_consumer_that_leaves_is_replaced_without_waiting_for_its_session(
    lab: Lab, library: str
) -> None:
    lab.create(TOPIC, 4)
    first = lab.member("workers", TOPIC, library=library)
    shared([first], partitions_of(TOPIC, 4))
    second = lab.member("workers", TOPIC, library=library)
    shared([first, second], partitions_of(TOPIC, 4), shares=[2, 2])
    lab.send(TOPIC, numbered(20), 4)
    read_by([first, second], numbered(20))
    first.stop()
    shared([second], partitions_of(TOPIC, 4))
    lab.send(TOPIC, numbered(20, "later"), 4)
    assert set(read_by([second], numbered(20, "later")).values()) == {1}
    second.stop()
    assert lab.group_state("workers") == "EMPTY"


def test_consumers_beyond_the_partitions_stand_by(lab: Lab) -> None:
    lab.create(TOPIC, 6)
    members = [lab.member("workers", TOPIC, session_ms=SHORT_SESSION_MS) for _ in range(8)]
    shared(members, partitions_of(TOPIC, 6), shares=[0, 0, 1, 1, 1, 1, 1, 1])
    idle = [member for member in members if not member.assignment]
    lab.send(TOPIC, numbered(30), 6)
    assert set(read_by(members, numbered(30)).values()) == {1}
    assert [member.values for member in idle] == [[], []]
    victim = next(member for member in members if member.assignment)
    victim.kill()
    alive = [member for member in members if member is not victim]
    shared(alive, partitions_of(TOPIC, 6))
    lab.send(TOPIC, numbered(30, "again"), 6)
    read_by(alive, numbered(30, "again"))


def test_a_slow_consumer_takes_five_at_a_time(lab: Lab) -> None:
    lab.create(TOPIC, 1)
    lab.send(TOPIC, numbered(25), 1)
    slow = lab.member("slow", TOPIC, records_max=5, work_ms=100)
    assert read_by([slow], numbered(25)) == dict.fromkeys(numbered(25), 1)
    assert slow.values == numbered(25)
    assert max(slow.batches) == 5


def test_ten_runs_of_fifty_records_arrive_once_each(lab: Lab) -> None:
    lab.create(TOPIC, 5)
    members = [lab.member("workers", TOPIC) for _ in range(2)]
    shared(members, partitions_of(TOPIC, 5), shares=[2, 3])
    expected: list[str] = []
    for run in range(10):
        lab.send(TOPIC, numbered(50, f"run {run}"), 5)
        expected += numbered(50, f"run {run}")
        read_by(members, expected)
    assert set(read_by(members, expected).values()) == {1}


@pytest.mark.parametrize("library", ["confluent", "kafka-python"])
def test_new_partitions_are_picked_up(lab: Lab, library: str) -> None:
    lab.create(TOPIC, 2)
    members = [lab.member("workers", TOPIC, library=library) for _ in range(2)]
    shared(members, partitions_of(TOPIC, 2), shares=[1, 1])
    lab.grow(TOPIC, 6)
    shared(members, partitions_of(TOPIC, 6), shares=[3, 3])


def test_a_pattern_picks_up_new_topics(lab: Lab) -> None:
    lab.create("orders-eu", 2)
    members = [lab.member("workers", "^orders-.*") for _ in range(2)]
    shared(members, partitions_of("orders-eu", 2), shares=[1, 1])
    lab.create("orders-us", 2)
    lab.create("other", 2)
    shared(members, partitions_of("orders-eu", 2) | partitions_of("orders-us", 2))


def test_a_cooperative_group_moves_only_what_it_must(lab: Lab) -> None:
    lab.create(TOPIC, 6)
    first = lab.member("workers", TOPIC, strategy="cooperative-sticky")
    shared([first], partitions_of(TOPIC, 6))
    second = lab.member(
        "workers", TOPIC, strategy="cooperative-sticky", session_ms=SHORT_SESSION_MS
    )
    shared([first, second], partitions_of(TOPIC, 6), shares=[3, 3])
    lab.send(TOPIC, numbered(30), 6)
    assert set(read_by([first, second], numbered(30)).values()) == {1}
    second.kill()
    shared([first], partitions_of(TOPIC, 6))


def test_a_static_member_returns_to_its_partitions_without_a_rebalance(lab: Lab) -> None:
    lab.create(TOPIC, 4)
    first = lab.member("workers", TOPIC, **{"group.instance.id": "one"})
    second = lab.member("workers", TOPIC, **{"group.instance.id": "two"})
    shared([first, second], partitions_of(TOPIC, 4), shares=[2, 2])
    before, changes = sorted(second.assignment), first.assignment_count
    second.kill()
    again = lab.member("workers", TOPIC, **{"group.instance.id": "two"})
    eventually(lambda: sorted(again.assignment) == before, timeout_s=PATIENCE_S)
    assert first.assignment_count == changes


def test_a_group_goes_on_after_the_broker_was_killed(lab: Lab) -> None:
    lab.create(TOPIC, 4)
    members = [lab.member("workers", TOPIC) for _ in range(2)]
    shared(members, partitions_of(TOPIC, 4), shares=[2, 2])
    lab.send(TOPIC, numbered(40, "before"), 4)
    read_by(members, numbered(40, "before"))
    lab.broker.kill()
    lab.broker.start()
    lab.send(TOPIC, numbered(40, "after"), 4)
    read_by(members, numbered(40, "after"))
    shared(members, partitions_of(TOPIC, 4))
    for member in members:
        member.stop()
    # Whoever comes next finds that all was read and committed.
    late = lab.member("workers", TOPIC)
    shared([late], partitions_of(TOPIC, 4))
    lab.send(TOPIC, ["last"], 4)
    assert read_by([late], ["last"]) == {"last": 1}


def test_members_of_different_libraries_share_a_group(lab: Lab) -> None:
    lab.create(TOPIC, 6)
    members = [
        lab.member("mixed", TOPIC, library=library, strategy="roundrobin") for library in LIBRARIES
    ]
    shared(members, partitions_of(TOPIC, 6), shares=[2, 2, 2])
    lab.send(TOPIC, numbered(60), 6)
    assert set(read_by(members, numbered(60)).values()) == {1}
    assert all(member.values for member in members)
