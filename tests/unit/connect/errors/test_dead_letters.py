"""Records that were put aside: Connect's headers, which the platform's contract reads."""

from penstock.connect.errors.dead_letters import (
    STACK_TRACE,
    STEP_CLASS,
    TASK,
    FailedStep,
    RecordOrigin,
    dead_letter,
)
from penstock.connect.errors.kinds import DataError
from penstock.connect.errors.policy import ErrorPolicy
from penstock.schemas.dead_letters import FailureStage, cause_of, own_headers

ORIGIN = RecordOrigin(
    topic="orders",
    partition=1,
    offset=7,
    timestamp_ms=99,
    key=b"k",
    value=b"v",
    headers=(("own", b"1"),),
)
FAILED = FailedStep(
    stage=FailureStage.VALUE_CONVERTER,
    step_class="org.apache.kafka.connect.json.JsonConverter",
    error=DataError("no JSON"),
    origin=ORIGIN,
    connector="sink",
    task=3,
)


def test_without_a_topic_there_is_no_letter() -> None:
    assert dead_letter(ErrorPolicy(), FAILED) is None


def test_a_sources_record_has_no_letter() -> None:
    failed = FailedStep(
        stage=FAILED.stage,
        step_class="x",
        error=FAILED.error,
        origin=RecordOrigin(),
        connector="source",
        task=0,
    )
    assert dead_letter(ErrorPolicy(dead_letter_topic="dead"), failed) is None


def test_a_letter_is_the_record_as_it_was() -> None:
    letter = dead_letter(ErrorPolicy(dead_letter_topic="dead"), FAILED)
    assert letter is not None
    assert (letter.topic, letter.key, letter.value, letter.timestamp_ms) == ("dead", b"k", b"v", 99)
    assert letter.headers == ORIGIN.headers


def test_its_headers_are_those_of_the_platforms_contract() -> None:
    letter = dead_letter(ErrorPolicy(dead_letter_topic="dead", with_context=True), FAILED)
    assert letter is not None
    cause = cause_of(letter.headers)
    assert cause.origin == "orders-1@7"
    assert (cause.pipeline, cause.stage, cause.message) == ("sink", "VALUE_CONVERTER", "no JSON")
    assert cause.error_class == "org.apache.kafka.connect.errors.DataException"
    assert own_headers(letter.headers) == [("own", b"1")]
    told = dict(letter.headers)
    assert told[TASK] == b"3"
    assert told[STEP_CLASS] == b"org.apache.kafka.connect.json.JsonConverter"
    assert b"no JSON" in (told[STACK_TRACE] or b"")
