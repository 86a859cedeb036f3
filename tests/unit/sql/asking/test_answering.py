"""What ASSERT TOPIC looks at: whether a topic is there, and how it is laid out."""

import pytest

from penstock.sql.asking.answering import topic_fault
from penstock.sql.language.parse import parse_one
from penstock.sql.language.statements import AssertTopic
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
