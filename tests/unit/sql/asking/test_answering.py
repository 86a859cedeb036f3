"""What ASSERT TOPIC looks at, and which values SET refuses."""

import pytest

from penstock.sql.asking.answering import refuse_value, topic_fault
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.language.parse import parse_one
from penstock.sql.language.statements import AssertTopic, SetProperty
from penstock.sql.running.ports import TopicShape

CLICKS = TopicShape(name="CLICKS", replicas=(1, 1))


@pytest.mark.parametrize(
    ("statement", "found", "fault"),
    [
        ("ASSERT TOPIC clicks", CLICKS, None),
        ("ASSERT TOPIC clicks", None, "Topic CLICKS does not exist"),
        ("ASSERT NOT EXISTS TOPIC clicks", None, None),
        ("ASSERT NOT EXISTS TOPIC clicks", CLICKS, "Topic CLICKS exists"),
        ("ASSERT TOPIC clicks WITH (partitions=2, replicas=1)", CLICKS, None),
        ("ASSERT NOT EXISTS TOPIC clicks WITH (partitions=2)", None, None),
        (
            "ASSERT TOPIC clicks WITH (partitions=3)",
            CLICKS,
            "Mismatched configuration for topic CLICKS: For config partitions, expected 3 got 2",
        ),
        (
            "ASSERT TOPIC clicks WITH (replicas=3)",
            CLICKS,
            "Mismatched configuration for topic CLICKS: For config replicas, expected 3 got 1",
        ),
        (
            "ASSERT TOPIC clicks WITH (colour='red')",
            CLICKS,
            "Cannot assert unknown topic property: COLOUR",
        ),
    ],
)
def test_a_topic_is_as_asserted_or_the_difference_is_told(
    statement: str, found: TopicShape | None, fault: str | None
) -> None:
    asserted = parse_one(statement)
    assert isinstance(asserted, AssertTopic)
    assert topic_fault(asserted, found) == fault


@pytest.mark.parametrize(
    "statement",
    [
        "SET 'auto.offset.reset'='earliest'",
        "SET 'ksql.streams.auto.offset.reset'='latest'",
        "SET 'processing.guarantee'='exactly_once_v2'",
        "SET 'commit.interval.ms'='10'",
        "SET 'num.stream.threads'='4'",
        "SET 'ksql.streams.producer.linger.ms'='5'",
        "SET 'ksql.suppress.enabled'='true'",
        "SET 'shuffle.partitions'='2'",
        "UNSET 'auto.offset.reset'",
    ],
)
def test_a_value_that_queries_can_go_by_is_taken(statement: str) -> None:
    said = parse_one(statement)
    assert isinstance(said, SetProperty)
    refuse_value(said)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("SET 'auto.offset.reset'='earlist'", "earliest or latest, not 'earlist'"),
        ("SET 'ksql.streams.auto.offset.reset'='never'", "earliest or latest, not 'never'"),
        ("SET 'processing.guarantee'='twice'", "not 'twice'"),
        ("ALTER SYSTEM 'commit.interval.ms'='soon'", "must be a number, not 'soon'"),
        ("SET 'cache.max.bytes.buffering'='much'", "must be a number, not 'much'"),
        ("SET 'auto.ofset.reset'='earliest'", "Not recognizable as ksql, streams, consumer, or"),
        ("SET 'ksql.streams.nothing'='1'", "producer property: 'ksql.streams.nothing'"),
    ],
)
def test_a_value_that_would_be_left_out_is_refused(statement: str, reason: str) -> None:
    said = parse_one(statement)
    assert isinstance(said, SetProperty)
    with pytest.raises(StatementRefused, match=reason):
        refuse_value(said)
