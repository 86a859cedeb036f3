"""Varints, header strings and ids."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ErrorCode, ProtocolError
from penstock.protocol.primitives import (
    UVARINT_MAX,
    MalformedMessage,
    decode_nullable_string,
    decode_uvarint,
    encode_nullable_string,
    encode_uvarint,
    skip_tagged_fields,
    uuid_from_text,
    uuid_text,
)


@given(st.integers(0, UVARINT_MAX), st.binary(max_size=3))
def test_an_unsigned_varint_comes_back_whatever_follows_it(value: int, after: bytes) -> None:
    encoded = encode_uvarint(value)
    assert decode_uvarint(memoryview(encoded + after), 0) == (value, len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (UVARINT_MAX, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_varints_have_seven_bits_to_the_byte_lowest_first(value: int, encoded: bytes) -> None:
    assert encode_uvarint(value) == encoded


@pytest.mark.parametrize(
    "encoded",
    [b"", b"\x80", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80\x01"],
)
def test_a_varint_cut_short_or_wider_than_32_bits_is_malformed(encoded: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_uvarint(memoryview(encoded), 0)


@given(st.none() | st.text(max_size=50))
def test_a_header_string_comes_back(text: str | None) -> None:
    encoded = encode_nullable_string(text)
    assert decode_nullable_string(memoryview(encoded), 0) == (text, len(encoded))


@pytest.mark.parametrize("encoded", [b"", b"\x00", b"\x00\x03ab", b"\x00\x02\xc3\x28"])
def test_a_header_string_cut_short_or_not_utf8_is_malformed(encoded: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_nullable_string(memoryview(encoded), 0)


def test_a_block_of_tagged_fields_is_stepped_over() -> None:
    block = b"\x02" + b"\x00\x03abc" + b"\x81\x01\x00"
    assert skip_tagged_fields(memoryview(block + b"rest"), 0) == len(block)


@pytest.mark.parametrize("block", [b"", b"\x01", b"\x01\x00", b"\x01\x00\x05ab"])
def test_a_block_of_tagged_fields_cut_short_is_malformed(block: bytes) -> None:
    with pytest.raises(MalformedMessage):
        skip_tagged_fields(memoryview(block), 0)


def test_malformed_messages_carry_the_code_for_an_invalid_request() -> None:
    assert issubclass(MalformedMessage, ProtocolError)
    assert MalformedMessage.code is ErrorCode.INVALID_REQUEST


@given(st.binary(min_size=16, max_size=16))
def test_an_id_comes_back_from_its_text(value: bytes) -> None:
    text = uuid_text(value)
    assert len(text) == 22
    assert uuid_from_text(text) == value


def test_ids_are_printed_as_kafka_prints_them() -> None:
    value = uuid.UUID("fb7f7fbe-ffff-4b3e-9a0c-5d2a1c8e0f00").bytes
    assert uuid_text(value) == "-39_vv__Sz6aDF0qHI4PAA"
    assert uuid_text(bytes(16)) == "A" * 22


@pytest.mark.parametrize("text", ["", "abc", "A" * 21, "A" * 24, "ü" * 22])
def test_text_that_is_no_id_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        uuid_from_text(text)
