"""Formats by media type, as clients send and wish for them."""

import pytest

from penstock.rest.payloads.formats import EmbeddedFormat
from penstock.rest.v2.media import answer_media, is_plain, sent_format

AVRO = "application/vnd.kafka.avro.v2+json"
JSON = "application/vnd.kafka.json.v2+json"
BINARY = "application/vnd.kafka.binary.v2+json"
V2 = "application/vnd.kafka.v2+json"


@pytest.mark.parametrize(
    ("kind", "format_"),
    [
        (BINARY, EmbeddedFormat.BINARY),
        (V2, EmbeddedFormat.BINARY),
        (f"{JSON}; charset=utf-8", EmbeddedFormat.JSON),
        (AVRO.upper(), EmbeddedFormat.AVRO),
        ("application/vnd.kafka.jsonschema.v2+json", EmbeddedFormat.JSONSCHEMA),
        ("application/vnd.kafka.protobuf.v2+json", EmbeddedFormat.PROTOBUF),
        ("application/json", None),
        ("text/plain", None),
        (None, None),
    ],
)
def test_a_body_says_its_format(kind: str | None, format_: EmbeddedFormat | None) -> None:
    assert sent_format(kind) is format_


def test_a_body_without_records_may_have_any_type_of_the_api() -> None:
    assert all(is_plain(kind) for kind in (None, V2, AVRO, "application/json"))
    assert not is_plain("application/x-www-form-urlencoded")


@pytest.mark.parametrize(
    ("accept", "kept", "media"),
    [
        (BINARY, EmbeddedFormat.BINARY, BINARY),
        (JSON, EmbeddedFormat.BINARY, None),
        (BINARY, EmbeddedFormat.JSON, None),
        (None, EmbeddedFormat.JSON, JSON),
        ("*/*", EmbeddedFormat.AVRO, AVRO),
        ("application/json", EmbeddedFormat.JSON, JSON),
        (V2, EmbeddedFormat.JSON, V2),
        (f"{BINARY};q=0.1, {JSON}", EmbeddedFormat.JSON, JSON),
        (AVRO, EmbeddedFormat.PROTOBUF, AVRO),
        ("text/html", EmbeddedFormat.BINARY, None),
    ],
)
def test_records_come_in_the_format_they_are_read_in(
    accept: str | None, kept: EmbeddedFormat, media: str | None
) -> None:
    assert answer_media(accept, kept) == media
