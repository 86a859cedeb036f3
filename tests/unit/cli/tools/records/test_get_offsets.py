"""kafka-get-offsets: which partitions, and which time."""

import pytest

from penstock.cli.tools.records.get_offsets import chosen_by_rules, chosen_by_topic, parse_time
from penstock.client.values import TopicPartition
from penstock.errors import CommandError

ALL = [TopicPartition(topic, number) for topic in ("a1", "a2", "b") for number in range(4)]


def chosen(rules: str) -> list[str]:
    wanted = chosen_by_rules(rules)
    return [f"{one.topic}:{one.partition}" for one in ALL if wanted(one)]


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ("b", ["b:0", "b:1", "b:2", "b:3"]),
        ("b:1", ["b:1"]),
        ("b:1-3", ["b:1", "b:2"]),
        ("b:2-", ["b:2", "b:3"]),
        ("b:-2", ["b:0", "b:1"]),
        (":3", ["a1:3", "a2:3", "b:3"]),
        ("a.:0,b:3", ["a1:0", "a2:0", "b:3"]),
        ("b:0-1,b:3-", ["b:0", "b:3"]),
    ],
)
def test_rules_choose_partitions(rules: str, found: list[str]) -> None:
    assert chosen(rules) == found


def test_topics_and_partitions_may_be_given_apart() -> None:
    wanted = chosen_by_topic("a.*", "0,2")
    assert [str(one) for one in ALL if wanted(one)] == ["a1-0", "a1-2", "a2-0", "a2-2"]
    assert all(map(chosen_by_topic(None, None), ALL))


def test_times_are_words_or_numbers() -> None:
    assert [parse_time(t) for t in ("latest", "-2", "max-timestamp", "1234")] == [-1, -2, -3, 1234]
    with pytest.raises(
        CommandError, match=r"Malformed time argument soon\. Please use -1 or latest"
    ):
        parse_time("soon")


def test_a_bad_rule_is_told() -> None:
    with pytest.raises(CommandError, match="Invalid rule specification: a:b:c"):
        chosen_by_rules("a:b:c")
    with pytest.raises(CommandError, match="numeric partition ids"):
        chosen_by_topic(None, "one")
