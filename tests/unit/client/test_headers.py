"""Headers: a mapping or pairs going out, names and order coming in."""

import dataclasses
from typing import Any

import pytest

from penstock.client.headers import NO_HEADERS, RecordHeaders, record_headers
from penstock.client.values import ConsumerRecord, OffsetAndTimestamp, ProducerRecord

TWICE = RecordHeaders((("trace", b"1"), ("user", b"ann"), ("trace", b"2")))


def test_a_mapping_becomes_pairs_and_text_becomes_utf_8() -> None:
    given = {"trace": "é", "raw": b"\xff", "none": None, "view": memoryview(b"v")}
    wanted = (("trace", "é".encode()), ("raw", b"\xff"), ("none", None), ("view", b"v"))
    assert record_headers(given) == wanted  # type: ignore[arg-type]


def test_pairs_keep_their_order_and_their_duplicates() -> None:
    assert record_headers([("a", "1"), ("b", None), ("a", b"2")]) == (
        ("a", b"1"),
        ("b", None),
        ("a", b"2"),
    )


@pytest.mark.parametrize("wrong", [{"a": 1}, {b"a": b"1"}, [("a", 1.5)], "a", b"a"])
def test_what_is_no_header_is_refused_before_anything_is_sent(wrong: Any) -> None:
    with pytest.raises(TypeError, match="header"):
        ProducerRecord(topic="t", headers=wrong)


def test_of_a_name_that_is_there_twice_the_last_one_counts() -> None:
    assert TWICE["trace"] == TWICE.get("trace") == dict(TWICE)["trace"] == b"2"
    assert TWICE.get_all("trace") == [b"1", b"2"]
    assert TWICE.get_all("absent") == []


def test_headers_are_still_a_tuple_of_pairs() -> None:
    assert TWICE[0] == ("trace", b"1")
    assert TWICE[1:] == (("user", b"ann"), ("trace", b"2"))
    assert list(TWICE) == [("trace", b"1"), ("user", b"ann"), ("trace", b"2")]
    assert TWICE == (("trace", b"1"), ("user", b"ann"), ("trace", b"2"))
    assert "user" in TWICE and ("user", b"ann") in TWICE and "absent" not in TWICE


def test_a_name_that_is_not_there_is_an_error_or_the_default() -> None:
    with pytest.raises(KeyError, match="absent"):
        TWICE["absent"]
    assert TWICE.get("absent") is None
    assert TWICE.get("absent", b"x") == b"x"


def test_a_header_without_a_value_is_there() -> None:
    headers = record_headers({"mark": None})
    assert "mark" in headers and headers["mark"] is None and headers.get("mark", b"x") is None


def test_a_record_to_send_has_its_headers_as_a_record_read_has_them() -> None:
    record = ProducerRecord(topic="t", headers={"a": "1"})
    assert record.headers["a"] == b"1"
    more = dataclasses.replace(record, headers=[*record.headers, ("b", b"2")])
    assert more.headers == (("a", b"1"), ("b", b"2"))
    assert ProducerRecord(topic="t").headers is NO_HEADERS


def test_timestamp_is_another_name_of_timestamp_ms() -> None:
    record: ProducerRecord[str, str] = ProducerRecord(topic="t", timestamp=5)
    assert (record.timestamp_ms, record.timestamp) == (5, 5)
    read: ConsumerRecord[bytes, bytes] = ConsumerRecord("t", 0, 1, 7, "CreateTime", None, None)
    assert read.timestamp == read.timestamp_ms == 7
    assert OffsetAndTimestamp(1, 9).timestamp == 9
    with pytest.raises(TypeError, match="give one of them"):
        ProducerRecord(topic="t", timestamp=5, timestamp_ms=5)
