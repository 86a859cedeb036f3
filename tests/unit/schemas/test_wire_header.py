"""The header in front of values, and Protobuf's list behind it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.schemas.errors import DecodeError, EncodeError
from penstock.schemas.wire_header import (
    HEADER_BYTES,
    read_header,
    read_message_indexes,
    write_header,
    write_message_indexes,
)

PATHS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=10)


@given(st.integers(0, 2**31 - 1), st.binary())
def test_a_schema_id_comes_back(schema_id: int, payload: bytes) -> None:
    header = write_header(schema_id)
    assert len(header) == HEADER_BYTES
    assert read_header(header + payload) == schema_id


def test_the_header_is_a_zero_and_a_big_endian_number() -> None:
    assert write_header(0x01020304) == b"\x00\x01\x02\x03\x04"


@given(PATHS, st.binary())
def test_message_indexes_come_back_with_the_place_of_the_message(
    path: list[int], payload: bytes
) -> None:
    written = write_header(7) + write_message_indexes(path)
    found = read_message_indexes(written + payload)
    assert found == (tuple(path), len(written))


def test_message_indexes_are_written_as_other_serializers_write_them() -> None:
    assert write_message_indexes([0]) == b"\x00"
    assert write_message_indexes([1, 0]) == b"\x04\x02\x00"
    assert write_message_indexes([64]) == b"\x02\x80\x01"


def test_the_first_message_may_be_written_in_full() -> None:
    assert read_message_indexes(b"\x02\x00rest", 0) == ((0,), 2)


@given(st.binary(max_size=20))
def test_any_bytes_give_indexes_or_a_decode_error(data: bytes) -> None:
    try:
        path, at = read_message_indexes(data, 0)
    except DecodeError:
        return
    assert path and all(index >= 0 for index in path) and 0 < at <= len(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are too few"),
        (b"\x00\x00\x00\x01", "4 bytes are too few"),
        (b"\x01\x00\x00\x00\x01", "begins with byte 1"),
        (b'{"id": 1}', "begins with byte 123"),
        (b"\x00\xff\xff\xff\xff", "id -1"),
    ],
)
def test_a_value_without_a_header_says_what_is_wrong(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        read_header(data)


@pytest.mark.parametrize("schema_id", [-1, 2**31])
def test_an_id_that_does_not_fit_is_refused(schema_id: int) -> None:
    with pytest.raises(EncodeError, match=str(schema_id)):
        write_header(schema_id)


@pytest.mark.parametrize("path", [[], [-1], [0, -5]])
def test_a_path_to_nowhere_is_refused(path: list[int]) -> None:
    with pytest.raises(EncodeError, match="no message"):
        write_message_indexes(path)
