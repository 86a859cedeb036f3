"""What fails on a record's way is named by its step and its class, as in Connect's dead letters."""

from typing import Any

import pytest

from penstock.client.values import ConsumerRecord
from penstock.connect.errors.dead_letters import FailedStep
from penstock.connect.errors.policy import ErrorPolicy
from penstock.connect.errors.tolerating import TolerantRun
from penstock.connect.records import SourceRecord
from penstock.connect.running.steps import TaskSteps
from penstock.connect.values.schema import INT32_SCHEMA
from penstock.schemas.dead_letters import FailureStage

JSON = "org.apache.kafka.connect.json.JsonConverter"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
INTEGERS = "org.apache.kafka.connect.converters.IntegerConverter"
INSERT = "org.apache.kafka.connect.transforms.InsertField$Value"
CAST = "org.apache.kafka.connect.transforms.Cast$Value"
CONFIG = {
    "key.converter": JSON,
    "key.converter.schemas.enable": "false",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
    "errors.tolerance": "all",
    "transforms": "cast,insert",
    "transforms.cast.type": CAST,
    "transforms.cast.spec": "n:string",
    "transforms.cast.predicate": "one",
    "transforms.insert.type": INSERT,
    "transforms.insert.static.field": "a",
    "transforms.insert.static.value": "b",
    "predicates": "one",
    "predicates.one.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "predicates.one.pattern": "one",
}


class NoLetters:
    """Nothing has to be waited for."""

    def settle(self) -> None:
        """All are safe."""


def steps(config: dict[str, str]) -> tuple[TaskSteps, list[FailedStep]]:
    aside: list[FailedStep] = []
    tolerant = TolerantRun(
        policy=ErrorPolicy.of(config),
        connector="c",
        task=0,
        now_ms=lambda: 0,
        pause_ms=lambda _: None,
        report=aside.append,
    )
    return TaskSteps(config, {}, tolerant, NoLetters()), aside


def consumed(topic: str, key: bytes | None, value: bytes) -> "ConsumerRecord[bytes, bytes]":
    return ConsumerRecord(
        topic=topic,
        partition=0,
        offset=7,
        timestamp_ms=0,
        timestamp_type="CreateTime",
        key=key,
        value=value,
        headers=(),
    )


@pytest.mark.parametrize(
    ("topic", "key", "value", "stage", "class_name"),
    [
        ("two", b"{", b"{}", FailureStage.KEY_CONVERTER, JSON),
        ("two", None, b"{", FailureStage.VALUE_CONVERTER, JSON),
        ("two", None, b'"text"', FailureStage.TRANSFORMATION, INSERT),
        ("one", None, b'"text"', FailureStage.TRANSFORMATION, CAST),
    ],
)
def test_a_record_on_its_way_out(
    topic: str, key: bytes | None, value: bytes, stage: FailureStage, class_name: str
) -> None:
    made, aside = steps(CONFIG)
    assert made.to_sink(consumed(topic, key, value)) is None
    ((found, name),) = [(one.stage, one.step_class) for one in aside]
    assert (found, name) == (stage, class_name)


def test_a_record_that_a_predicate_leaves_alone_goes_through() -> None:
    made, aside = steps(CONFIG)
    found = made.to_sink(consumed("two", None, b'{"n": 1}'))
    assert found is not None and found.value == {"n": 1, "a": "b"}
    assert aside == []


@pytest.mark.parametrize(
    ("key", "value", "stage"),
    [("x", 1, FailureStage.KEY_CONVERTER), (None, "x", FailureStage.VALUE_CONVERTER)],
)
def test_a_record_on_its_way_in(key: Any, value: Any, stage: FailureStage) -> None:
    config = {
        "key.converter": INTEGERS,
        "value.converter": INTEGERS,
        "errors.tolerance": "all",
    }
    made, aside = steps(config)
    record = SourceRecord(
        topic="t",
        key_schema=INT32_SCHEMA,
        key=key,
        value_schema=INT32_SCHEMA,
        value=value,
        source_partition=None,
        source_offset=None,
    )
    assert made.to_producer(record) is None
    ((found, name),) = [(one.stage, one.step_class) for one in aside]
    assert (found, name) == (stage, INTEGERS)
