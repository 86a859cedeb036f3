"""Records as documents."""

import json

import pytest

from penstock.http.errors import HttpError
from penstock.records.record import Record
from penstock.rest.v3.shown_records import RecordView, ShownFormats


def shown(value: bytes | None, format_: str = "auto") -> object:
    view = RecordView(ShownFormats.of(None, format_), None)
    return json.loads(view.text(0, Record(5, 1_612_552_482_000, None, value)))["value"]


@pytest.mark.parametrize(
    ("value", "format_", "word", "data"),
    [
        (b'{"a": [1, 2]}', "auto", "JSON", {"a": [1, 2]}),
        (b"12345678901234567890123", "auto", "JSON", 12345678901234567890123),
        (b"NaN", "auto", "STRING", "NaN"),
        ("ä\u2028".encode(), "auto", "STRING", "ä\u2028"),
        (b"\xff", "auto", "BINARY", "/w=="),
        (b"", "auto", "STRING", ""),
        (b"\x00\x00\x00\x00\x07x", "auto", "STRING", "\x00\x00\x00\x00\x07x"),
        (b"1", "string", "STRING", "1"),
        (b"1", "BINARY", "BINARY", "MQ=="),
        (b"{", "json", "BINARY", "ew=="),
        (b"x", "avro", "BINARY", "eA=="),
    ],
)
def test_a_value_is_shown_as_asked_or_as_it_fits(
    value: bytes, format_: str, word: str, data: object
) -> None:
    assert shown(value, format_) == {"type": word, "data": data}


def test_what_is_not_there_is_null() -> None:
    assert shown(None) is None


def test_a_record_says_where_it_is_and_when_it_came() -> None:
    record = Record(5, 1_612_552_482_000, b"k", b"1", (("h", b"A"), ("n", None)))
    view = RecordView(ShownFormats(), None)
    text = view.text(3, record)
    assert b"\n" not in text
    assert json.loads(text) == {
        "partition_id": 3,
        "offset": 5,
        "timestamp": "2021-02-05T19:14:42Z",
        "headers": [{"name": "h", "value": "QQ=="}, {"name": "n", "value": None}],
        "key": {"type": "STRING", "data": "k"},
        "value": {"type": "JSON", "data": 1},
    }


def test_a_format_that_does_not_exist_is_a_bad_request() -> None:
    with pytest.raises(HttpError, match="format xml is not one of AUTO, BINARY"):
        ShownFormats.of("xml", None)
