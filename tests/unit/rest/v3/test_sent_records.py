"""Records of produce requests: their bytes, their receipts, what is wrong with them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.http.errors import HttpError
from penstock.rest.payloads.schema_choice import SchemaChoice
from penstock.rest.producing import StoredAt
from penstock.rest.v3.sent_records import (
    Receipts,
    RecordReader,
    SchemaNeeded,
    failed,
    timestamp_ms,
    timestamp_text,
)
from penstock.schemas.lookup import SchemaKind


class Upper:
    """A schema whose bytes are easily told."""

    schema_id = 7

    def encode(self, document: Any) -> bytes:
        return str(document).upper().encode()


class KnownUpper:
    kind = SchemaKind.AVRO
    subject = "t-value"
    version = 3
    codec = Upper()


READER = RecordReader("t", None)


def test_each_plain_format_becomes_its_bytes() -> None:
    record = {
        "partition_id": 2,
        "headers": [{"name": "a", "value": "QQ=="}, {"name": "b", "value": None}],
        "key": {"type": "BINARY", "data": "AAE="},
        "value": {"type": "JSON", "data": {"n": 2**70}},
        "timestamp": "2021-02-05T19:14:42Z",
    }
    sent = READER.read(record)
    assert sent.outgoing == (
        "t",
        b'{"n":1180591620717411303424}',
        b"\x00\x01",
        2,
        1_612_552_482_000,
        [("a", b"A"), ("b", None)],
    )
    assert sent.sides == b',"key":{"type":"BINARY","size":2},"value":{"type":"JSON","size":28}'


def test_what_is_left_out_is_null() -> None:
    assert READER.read({}).outgoing == ("t", None, None, -1, 0, ())
    assert READER.read({"value": {"type": "STRING", "data": None}}).outgoing.value is None


def test_a_schema_that_is_not_at_hand_is_asked_for() -> None:
    reader = RecordReader("t", lambda choice: None)
    with pytest.raises(SchemaNeeded) as needed:
        reader.read({"value": {"schema_id": 7, "data": "x"}})
    assert needed.value.choice == SchemaChoice(topic="t", is_key=False, schema_id=7)


def test_a_schema_at_hand_is_told_in_the_receipt() -> None:
    reader = RecordReader("t", lambda choice: KnownUpper())
    sent = reader.read({"value": {"type": "AVRO", "data": "abc"}})
    assert sent.outgoing.value == b"ABC"
    assert json.loads(b"{" + sent.sides[1:] + b"}")["value"] == {
        "type": "AVRO",
        "subject": "t-value",
        "schema_id": 7,
        "schema_version": 3,
        "size": 3,
    }


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ([], 400),
        ({"key": 5}, 400),
        ({"value": {"type": "BINARY", "data": "!"}}, 422),
        ({"value": {"type": "STRING", "data": {}}}, 422),
        ({"value": {"type": "XML", "data": ""}}, 400),
        ({"value": {"type": ["JSON"], "data": ""}}, 400),
        ({"value": {"data": 1}}, 422),
        ({"value": {"type": "AVRO", "schema_id": "7"}}, 400),
        ({"value": {"type": "AVRO", "schema_id": 7, "schema_version": 1}}, 400),
        ({"value": {"schema": "{}"}}, 400),
        ({"value": {"subject_name_strategy": "MINE"}}, 400),
        ({"partition_id": -1}, 40402),
        ({"partition_id": "0"}, 400),
        ({"partition_id": True}, 400),
        ({"partition_id": 2**40}, 40402),
        ({"headers": {"a": "b"}}, 400),
        ({"headers": [{"value": "QQ=="}]}, 400),
        ({"headers": [{"name": "a", "value": "!"}]}, 400),
        ({"headers": [{"name": "a", "value": 5}]}, 400),
        ({"timestamp": "yesterday"}, 400),
        ({"timestamp": 5}, 400),
        ({"timestamp": "1970-01-01T00:00:00Z"}, 400),
    ],
)
def test_what_is_wrong_is_told_with_a_code(record: Any, code: int) -> None:
    with pytest.raises(HttpError) as refused:
        READER.read(record)
    assert refused.value.code == code


def test_a_receipt_is_a_line_of_json_whatever_the_names() -> None:
    receipts = Receipts('c"%d', "t%s")
    text = receipts.stored(StoredAt(1, 42, 1_612_552_482_005), b',"value":{"size":1}')
    assert text.endswith(b"}\r\n")
    assert json.loads(text) == {
        "error_code": 200,
        "cluster_id": 'c"%d',
        "topic_name": "t%s",
        "partition_id": 1,
        "offset": 42,
        "timestamp": "2021-02-05T19:14:42.005Z",
        "value": {"size": 1},
    }


def test_a_refusal_is_a_receipt_too() -> None:
    assert json.loads(failed(40403, 'no "such"\n')) == {
        "error_code": 40403,
        "message": 'no "such"\n',
    }


def test_a_time_that_no_calendar_has_is_no_time() -> None:
    assert timestamp_text(2**62) is None
    assert b'"timestamp":""' in Receipts("c", "t").stored(StoredAt(0, 0, 2**62), b"")


@given(st.integers(1, 253_402_300_799_999))
def test_times_are_written_as_they_are_read(time_ms: int) -> None:
    assert timestamp_ms(timestamp_text(time_ms)) == time_ms
