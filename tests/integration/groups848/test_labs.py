"""Consumer groups with real processes as members, speaking the new protocol through librdkafka."""

from typing import Any

import pytest
from confluent_kafka import ConsumerGroupType
from confluent_kafka.admin import AdminClient
from tests.integration.groups.lab import Lab, Member, partitions_of, read_by, shared
from tests.integration.groups848.conftest import SHORT_SESSION

TOPIC = "tasks"
NEW = {"group.protocol": "consumer"}


def numbered(count: int, name: str = "message") -> list[str]:
    return [f"{name} {number}" for number in range(count)]


def new_member(lab: Lab, *topics: str, **settings: Any) -> Member:
    return lab.member("workers", *(topics or (TOPIC,)), **{**NEW, **settings})


def kind_of(lab: Lab, group: str = "workers") -> str:
    admin = AdminClient({"bootstrap.servers": lab.broker.address})
    (found,) = [g for g in admin.list_consumer_groups().result().valid if g.group_id == group]
    return str(found.type.name)


def test_three_consumers_share_the_messages(lab: Lab) -> None:
    lab.create(TOPIC, 3)
    members = [new_member(lab) for _ in range(3)]
    shared(members, partitions_of(TOPIC, 3), shares=[1, 1, 1])
    lab.send(TOPIC, numbered(25), 3)
    assert set(read_by(members, numbered(25)).values()) == {1}
    assert kind_of(lab) == ConsumerGroupType.CONSUMER.name
    assert lab.group_state("workers") == "STABLE"


@pytest.mark.parametrize("lab", [SHORT_SESSION], ids=["short session"], indirect=True)
def test_the_others_take_over_from_a_consumer_killed_with_signal_9(lab: Lab) -> None:
    lab.create(TOPIC, 4)
    members = [new_member(lab) for _ in range(3)]
    shared(members, partitions_of(TOPIC, 4), shares=[1, 1, 2])
    lab.send(TOPIC, numbered(40, "before"), 4)
    read_by(members, numbered(40, "before"))
    victim, *others = members
    victim.kill()
    shared(others, partitions_of(TOPIC, 4), shares=[2, 2])
    lab.send(TOPIC, numbered(40, "after"), 4)
    seen = read_by(others, numbered(40, "after"))
    assert {value for value, times in seen.items() if times > 1} <= set(victim.values)


def test_a_consumer_that_leaves_is_replaced_without_waiting_for_its_session(lab: Lab) -> None:
    lab.create(TOPIC, 4)
    first, second = new_member(lab), new_member(lab)
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
    members = [new_member(lab) for _ in range(8)]
    shared(members, partitions_of(TOPIC, 6), shares=[0, 0, 1, 1, 1, 1, 1, 1])
    idle = [member for member in members if not member.assignment]
    lab.send(TOPIC, numbered(30), 6)
    assert set(read_by(members, numbered(30)).values()) == {1}
    assert [member.values for member in idle] == [[], []]


def test_a_static_member_that_restarts_moves_nothing(lab: Lab) -> None:
    lab.create(TOPIC, 4)
    static = {"group.instance.id": "the one"}
    first, second = new_member(lab, **static), new_member(lab)
    shared([first, second], partitions_of(TOPIC, 4), shares=[2, 2])
    had, told = first.assignment, second.assignment_count
    first.stop()
    again = new_member(lab, **static)
    shared([again, second], partitions_of(TOPIC, 4), shares=[2, 2])
    assert again.assignment == had
    assert second.assignment_count == told, "the other was disturbed"


def test_new_partitions_and_topics_of_a_pattern_are_taken_up(lab: Lab) -> None:
    lab.create("tasks-1", 2)
    member = new_member(lab, "^tasks-.*")
    shared([member], partitions_of("tasks-1", 2))
    lab.grow("tasks-1", 4)
    shared([member], partitions_of("tasks-1", 4))
    lab.create("tasks-2", 1)
    shared([member], partitions_of("tasks-1", 4) | partitions_of("tasks-2", 1))


def test_a_broker_killed_in_the_middle_forgets_no_member_and_no_offset(lab: Lab) -> None:
    lab.create(TOPIC, 4)
    members = [new_member(lab) for _ in range(2)]
    shared(members, partitions_of(TOPIC, 4), shares=[2, 2])
    lab.send(TOPIC, numbered(40, "before"), 4)
    read_by(members, numbered(40, "before"))
    had = [member.assignment for member in members]
    lab.broker.kill()
    lab.broker.start()
    lab.send(TOPIC, numbered(40, "after"), 4)
    seen = read_by(members, numbered(40, "after"))
    assert {seen[value] for value in numbered(40, "after")} == {1}
    assert [member.assignment for member in members] == had


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_a_group_goes_to_the_new_protocol_and_back_member_by_member(
    lab: Lab, strategy: str
) -> None:
    lab.create(TOPIC, 6)
    members = [lab.member("workers", TOPIC, strategy=strategy) for _ in range(3)]
    shared(members, partitions_of(TOPIC, 6), shares=[2, 2, 2])
    assert kind_of(lab) == ConsumerGroupType.CLASSIC.name
    sent: list[str] = []
    for speaks_new in (True, True, True, False, False, False):
        values = numbered(30, f"round {len(sent)}")
        sent += values
        lab.send(TOPIC, values, 6)
        members.pop(0).stop()
        joins = new_member(lab) if speaks_new else lab.member("workers", TOPIC, strategy=strategy)
        members.append(joins)
        shared(members, partitions_of(TOPIC, 6), shares=[2, 2, 2])
        is_classic = kind_of(lab) == ConsumerGroupType.CLASSIC.name
        assert is_classic == (not speaks_new and len(sent) == 180)
    assert read_by(lab.members, sent).keys() == set(sent)
