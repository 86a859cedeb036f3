"""Request and response headers, for known and unknown APIs."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as KioHeader1
from kio.schema.request_header.v2.header import RequestHeader as KioHeader2
from kio.serial import entity_writer

from penstock.protocol.apis import ApiKey, is_flexible, supported_versions
from penstock.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from penstock.protocol.primitives import MalformedMessage

UNKNOWN_KEY = 1234


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: key.name.lower())
def test_request_headers_have_the_bytes_that_kio_writes(key: ApiKey) -> None:
    for version in supported_versions(key):
        kind: Any = KioHeader2 if is_flexible(key, version) else KioHeader1
        header = kind(
            request_api_key=key, request_api_version=version, correlation_id=7, client_id="me"
        )
        buffer = io.BytesIO()
        entity_writer(kind)(buffer, header)
        assert encode_request_header(key, version, 7, "me") == buffer.getvalue()


@given(st.integers(-(2**31), 2**31 - 1), st.none() | st.text(max_size=20), st.binary(max_size=9))
def test_a_request_header_comes_back_with_the_place_of_the_body(
    correlation_id: int, client_id: str | None, body: bytes
) -> None:
    for version in (8, 9):
        header = encode_request_header(ApiKey.PRODUCE, version, correlation_id, client_id)
        expected = RequestHeader(ApiKey.PRODUCE, version, correlation_id, client_id)
        assert decode_request_header(memoryview(header + body)) == (expected, len(header))


def test_tagged_fields_in_a_request_header_are_stepped_over() -> None:
    plain = encode_request_header(ApiKey.FETCH, 12, 7, "me")
    tagged = plain[:-1] + b"\x01\x05\x02hi"
    assert decode_request_header(memoryview(tagged + b"body"))[1] == len(tagged)


def test_an_unknown_api_still_tells_its_correlation_id_and_client() -> None:
    frame = encode_request_header(UNKNOWN_KEY, 3, 99, "new") + b"whatever"
    header, _ = decode_request_header(memoryview(frame))
    assert header == RequestHeader(UNKNOWN_KEY, 3, 99, "new")


@pytest.mark.parametrize("rest", [b"", b"\x7f", b"\x7f\xff", b"\x00\x02\xc3\x28"])
def test_an_unknown_api_tells_its_correlation_id_whatever_follows(rest: bytes) -> None:
    frame = encode_request_header(UNKNOWN_KEY, 3, 99, None)[:8] + rest
    header, body = decode_request_header(memoryview(frame))
    assert (header.correlation_id, header.client_id, body) == (99, None, len(frame))


def test_a_version_from_the_future_tells_its_correlation_id() -> None:
    frame = encode_request_header(ApiKey.API_VERSIONS, 99, 5, "new") + b"\xff\xff"
    header, _ = decode_request_header(memoryview(frame))
    assert header == RequestHeader(ApiKey.API_VERSIONS, 99, 5, "new")


@pytest.mark.parametrize("end", range(13))
def test_a_header_of_a_known_api_cut_short_is_malformed(end: int) -> None:
    frame = encode_request_header(ApiKey.FETCH, 12, 7, "me")
    assert len(frame) == 13
    with pytest.raises(MalformedMessage):
        decode_request_header(memoryview(frame[:end]))


@pytest.mark.parametrize(
    ("key", "version", "expected"),
    [
        (ApiKey.FETCH, 11, b"\x00\x00\x00\x07"),
        (ApiKey.FETCH, 12, b"\x00\x00\x00\x07\x00"),
        (ApiKey.API_VERSIONS, 0, b"\x00\x00\x00\x07"),
        (ApiKey.API_VERSIONS, 3, b"\x00\x00\x00\x07"),
        (UNKNOWN_KEY, 3, b"\x00\x00\x00\x07"),
    ],
)
def test_response_headers_have_tags_in_flexible_versions_but_never_for_api_versions(
    key: int, version: int, expected: bytes
) -> None:
    assert encode_response_header(key, version, 7) == expected
    assert decode_response_header(memoryview(expected + b"b"), key, version) == (7, len(expected))


@pytest.mark.parametrize("frame", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x07"])
def test_a_response_header_cut_short_is_malformed(frame: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_response_header(memoryview(frame), ApiKey.FETCH, 12)
