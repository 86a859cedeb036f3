"""Which subject a record's schema belongs to: by topic, by record name, or by both.

The names of the strategies are those that serializers' settings use, without their package.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from penstock.schemas.errors import SchemaError

SubjectNameStrategy: TypeAlias = Callable[[str, bool, str | None], str]


def topic_name(topic: str, is_key: bool, record: str | None = None) -> str:
    """`orders-key` or `orders-value`: one subject for each side of a topic."""
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name(topic: str, is_key: bool, record: str | None = None) -> str:
    """The record's full name: one subject for a type, in whatever topic it is."""
    return _named(record)


def topic_record_name(topic: str, is_key: bool, record: str | None = None) -> str:
    """`orders-shop.Order`: several types in one topic, each with its own history."""
    return f"{topic}-{_named(record)}"


STRATEGIES: Mapping[str, SubjectNameStrategy] = {
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}


def find_strategy(setting: str) -> SubjectNameStrategy:
    """The strategy that a setting names, with or without Confluent's package."""
    name = setting.rpartition(".")[2]
    if name not in STRATEGIES:
        raise SchemaError(f"{setting} is none of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def _named(record: str | None) -> str:
    if not record:
        raise SchemaError("the subject is named after the record, but the schema has no name")
    return record
