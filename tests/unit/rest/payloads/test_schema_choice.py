"""Which schema is meant, and under which subject."""

import pytest

from penstock.rest.payloads.schema_choice import SchemaChoice
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind
from penstock.schemas.subject_names import record_name, topic_record_name


def test_the_subject_is_the_given_one_or_the_strategys() -> None:
    assert SchemaChoice(topic="t", is_key=True).subject_of(None) == "t-key"
    assert SchemaChoice(topic="t", is_key=False).subject_of("a.R") == "t-value"
    by_record = SchemaChoice(topic="t", is_key=False, strategy=record_name)
    assert by_record.subject_of("a.R") == "a.R"
    with pytest.raises(SchemaError):
        by_record.subject_of(None)
    both = SchemaChoice(topic="t", is_key=False, strategy=topic_record_name)
    assert both.subject_of("a.R") == "t-a.R"
    assert SchemaChoice(topic="t", is_key=False, subject="own").subject_of(None) == "own"


def test_only_a_subject_alone_means_its_latest_schema() -> None:
    assert SchemaChoice(topic="t", is_key=False).is_latest
    assert not SchemaChoice(topic="t", is_key=False, schema_id=1).is_latest
    assert not SchemaChoice(topic="t", is_key=False, version=1).is_latest
    assert not SchemaChoice(topic="t", is_key=False, text="", kind=SchemaKind.AVRO).is_latest


def test_contradictions_are_refused() -> None:
    with pytest.raises(SchemaError):
        SchemaChoice(topic="t", is_key=False, schema_id=1, version=1)
    with pytest.raises(SchemaError):
        SchemaChoice(topic="t", is_key=False, text='"int"')
