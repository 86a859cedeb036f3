"""Subjects are named after topics, records, or both."""

import pytest

from penstock.schemas.errors import SchemaError
from penstock.schemas.subject_names import find_strategy


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("TopicNameStrategy", "orders-key", "orders-value"),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "s.Order", "s.Order"),
        ("TopicRecordNameStrategy", "orders-s.Order", "orders-s.Order"),
    ],
)
def test_a_strategy_is_found_by_its_setting(setting: str, key: str, value: str) -> None:
    strategy = find_strategy(setting)
    assert (strategy("orders", True, "s.Order"), strategy("orders", False, "s.Order")) == (
        key,
        value,
    )


def test_a_schema_without_a_name_needs_the_topic() -> None:
    assert find_strategy("TopicNameStrategy")("orders", False, None) == "orders-value"
    for setting in ("RecordNameStrategy", "TopicRecordNameStrategy"):
        with pytest.raises(SchemaError, match="no name"):
            find_strategy(setting)("orders", False, None)


def test_a_strategy_that_does_not_exist_is_told() -> None:
    with pytest.raises(SchemaError, match="is none of TopicNameStrategy"):
        find_strategy("MyStrategy")
