"""What a sink sends for a record."""

import pytest

from penstock.connect.connectors.wiring.payloads import filled, payload_of, text_of
from penstock.connect.errors.kinds import DataError
from penstock.connect.records import SinkRecord
from penstock.connect.values.schema import INT64_SCHEMA, STRING_SCHEMA, struct_schema
from penstock.connect.values.struct import StructValue


def test_bytes_and_texts_go_as_they_are_and_the_rest_as_json() -> None:
    schema = struct_schema({"n": INT64_SCHEMA, "s": STRING_SCHEMA})
    value = StructValue.of(schema, {"n": 1, "s": "é"})
    assert payload_of(None, None) is None
    assert payload_of(None, b"\xff") == b"\xff"
    assert payload_of(STRING_SCHEMA, "é") == "é".encode()
    assert text_of(schema, value) == '{"n":1,"s":"é"}'
    assert payload_of(None, {"a": [1, None]}) == b'{"a":[1,null]}'
    with pytest.raises(DataError):
        text_of(None, b"\xff")


def test_a_template_has_the_topic_and_the_key() -> None:
    record = SinkRecord(topic="t", key="k", offset=0)
    assert filled("/${topic}/x/${key}", record) == "/t/x/k"
    with pytest.raises(DataError):
        filled("${key}", SinkRecord(topic="t", offset=0))
