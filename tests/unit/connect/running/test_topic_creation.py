"""Which topics a source's task makes, and how."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.client.operations.topics import NewTopic
from penstock.connect.running.topic_creation import TopicMaker, topic_rules
from penstock.errors import ConfigError, TopicExists, UnknownTopicOrPartition

BY_DEFAULT = {
    "topic.creation.default.replication.factor": "3",
    "topic.creation.default.partitions": "5",
}
GROUPED = BY_DEFAULT | {
    "topic.creation.groups": "logs, rest",
    "topic.creation.logs.include": "log-.*, audit",
    "topic.creation.logs.exclude": "log-old",
    "topic.creation.logs.partitions": "1",
    "topic.creation.logs.cleanup.policy": "compact",
    "topic.creation.rest.include": "r.*",
    "topic.creation.rest.replication.factor": "-1",
}


class TopicsInMemory:
    def __init__(self, *there: str, is_raced: bool = False) -> None:
        self.there = set(there)
        self.made: list[NewTopic] = []
        self.opened = 0
        self.is_raced = is_raced

    @contextmanager
    def open(self) -> Iterator["TopicsInMemory"]:
        self.opened += 1
        yield self

    def describe_topics(self, names: list[str], /) -> dict[str, object]:
        if names[0] not in self.there:
            raise UnknownTopicOrPartition(names[0])
        return {names[0]: None}

    def create_topics(self, new: list[NewTopic], /) -> None:
        if self.is_raced:
            raise TopicExists(new[0].name)
        self.made += new


def made(config: dict[str, str], *topics: str, there: tuple[str, ...] = ()) -> list[NewTopic]:
    brokers = TopicsInMemory(*there)
    maker = TopicMaker(topic_rules(config), brokers.open)
    for topic in topics:
        maker.ensure(topic)
    return brokers.made


def test_nothing_is_made_unless_the_settings_say_so() -> None:
    assert topic_rules({"topic": "t"}) == ()
    assert made({}, "t") == []


def test_every_topic_is_made_as_the_default_says() -> None:
    (one,) = made(BY_DEFAULT, "t")
    assert (one.name, one.partitions, one.replication_factor, one.configs) == ("t", 5, 3, {})


def test_the_first_group_that_fits_holds() -> None:
    found = {one.name: one for one in made(GROUPED, "log-a", "audit", "log-old", "room", "x")}
    shapes = {name: (one.partitions, one.replication_factor) for name, one in found.items()}
    assert shapes == {
        "log-a": (1, 3),
        "audit": (1, 3),
        "log-old": (5, 3),
        "room": (5, -1),
        "x": (5, 3),
    }
    assert found["log-a"].configs == {"cleanup.policy": "compact"}


def test_what_is_there_stays_as_it_is() -> None:
    assert made(BY_DEFAULT, "t", there=("t",)) == []


def test_brokers_are_asked_once_for_a_topic() -> None:
    brokers = TopicsInMemory()
    maker = TopicMaker(topic_rules(BY_DEFAULT), brokers.open)
    for _ in range(3):
        maker.ensure("t")
    assert brokers.opened == 1


def test_another_task_may_be_faster() -> None:
    brokers = TopicsInMemory(is_raced=True)
    TopicMaker(topic_rules(BY_DEFAULT), brokers.open).ensure("t")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"topic.creation.default.partitions": "0"}, "default.partitions: it must be positive"),
        ({"topic.creation.logs.partitions": "many"}, "logs.partitions: it must be positive"),
        ({"topic.creation.logs.include": "("}, "topic.creation.logs.include: "),
        ({"topic.creation.groups": "logs,new"}, 'Missing required .*"topic.creation.new.include"'),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        topic_rules(GROUPED | change)


def test_groups_need_a_default() -> None:
    with pytest.raises(ConfigError, match=r"topic\.creation\.default\.replication\.factor"):
        topic_rules({"topic.creation.groups": "a", "topic.creation.a.include": "x"})
