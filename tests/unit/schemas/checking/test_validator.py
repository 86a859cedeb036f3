"""What a dead letter of the broker says, and what is opened from its settings."""

import asyncio

from penstock.config.broker import load
from penstock.records.schema_check import RecordFlaw, SchemaScope
from penstock.records.schema_ids import NULL
from penstock.schemas.checking.validator import SchemaValidator
from penstock.schemas.dead_letters import cause_of

SETTINGS = {"confluent.schema.registry.url": "http://127.0.0.1:1,http://127.0.0.1:2"}


async def opened() -> tuple[SchemaValidator, dict[str, float]]:
    validator = SchemaValidator.of(load(None, SETTINGS))
    gauges = validator.gauges()
    await validator.close()
    return validator, gauges


def test_nothing_runs_before_something_is_asked() -> None:
    validator, gauges = asyncio.run(opened())
    assert gauges == {"workers": 0, "worker_deaths": 0}
    assert validator.good_ids(SchemaScope("t", False, "TopicNameStrategy")) == {NULL}


def test_a_dead_letter_keeps_to_the_contract() -> None:
    validator, _ = asyncio.run(opened())
    flaw = RecordFlaw(3, True, "no schema", "some.Error")
    headers = validator.dead_letter_headers(flaw, topic="t", partition=2, timestamp_ms=7)
    cause = cause_of(headers)
    assert (cause.topic, cause.partition, cause.offset, cause.timestamp_ms) == ("t", 2, None, 7)
    assert (cause.pipeline, cause.stage) == ("validation", "KEY_CONVERTER")
    assert (cause.error_class, cause.message) == ("some.Error", "no schema")
