import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecord
from penstock.records.record import (
    INT64_MAX,
    INT64_MIN,
    Record,
    decode_records,
    encode_records,
    varint,
)

BODY = bytes((0, 0, 0, 1, 1, 0))  # No key, no value, no headers.


def decoded(payload: bytes, *, record_count: int = 1, base_timestamp: int = 0) -> list[Record]:
    return list(
        decode_records(
            payload,
            record_count=record_count,
            base_offset=0,
            last_offset_delta=100,
            base_timestamp=base_timestamp,
            append_time_ms=None,
        )
    )


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (8191, "fe7f"),
        (8192, "808001"),
        ((1 << 31) - 1, "feffffff0f"),
        (-(1 << 31), "ffffffff0f"),
        (INT64_MIN, "ffffffffffffffffff01"),
    ],
)
def test_varints_are_zigzag_with_seven_bits_to_a_byte(number: int, encoded: str) -> None:
    assert varint(number).hex() == encoded


@given(st.integers(INT64_MIN, INT64_MAX), st.lists(st.integers(INT64_MIN, INT64_MAX), min_size=1))
def test_any_timestamps_come_back_even_where_their_distance_overflows(
    base_timestamp: int, stamps: list[int]
) -> None:
    records = [Record(i, stamp, None, None) for i, stamp in enumerate(stamps)]
    encoded = encode_records(records, base_offset=0, base_timestamp=base_timestamp)
    assert (encoded.record_count, encoded.max_timestamp) == (len(stamps), max(stamps))
    if len(stamps) <= 101:
        back = decoded(
            bytes(encoded.payload), record_count=len(stamps), base_timestamp=base_timestamp
        )
        assert back == records


def test_header_names_that_are_not_utf8_survive_a_rewrite() -> None:
    body = bytes((0, 0, 0, 1, 1)) + varint(1) + varint(2) + b"\xff\xfe" + varint(-1)
    payload = varint(len(body)) + body
    encoded = encode_records(decoded(payload), base_offset=0, base_timestamp=0)
    assert bytes(encoded.payload) == payload


def test_offsets_that_do_not_ascend_are_a_programming_error() -> None:
    records = [Record(5, 0, None, None), Record(5, 0, None, None)]
    with pytest.raises(ValueError, match="does not follow"):
        encode_records(records, base_offset=0, base_timestamp=0)
    with pytest.raises(ValueError, match="does not follow"):
        encode_records(records[:1], base_offset=6, base_timestamp=0)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (varint(-3) + BODY, "negative length"),
        (varint(7) + BODY, "beyond its batch"),
        (varint(5) + BODY, "does not fill"),
        (varint(6) + BODY + b"\0", "follow the last record"),
        (b"", "before their count"),
        (b"\x80" * 5 + b"\1" + BODY, "longer than 5"),
        (b"\xff\xff\xff\xff\x7f" + BODY, "larger than its type"),
        (varint(15) + b"\0" + b"\x80" * 10 + b"\1\0\1\1\0", "longer than 10"),
        (varint(6) + b"\0\0\x01\1\1\0", "outside its batch"),
        (varint(7) + b"\0\0" + varint(101) + b"\1\1\0", "outside its batch"),
        (varint(6) + b"\0\0\0\x03\1\0", "key has a negative"),
        (varint(6) + b"\0\0\0\x08\1\0", "key reaches beyond"),
        (varint(6) + b"\0\0\0\1\x03\0", "value has a negative"),
        (varint(6) + b"\0\0\0\1\x08\0", "value reaches beyond"),
        (varint(6) + b"\0\0\0\1\1\1", "negative number of headers"),
        (varint(8) + b"\0\0\0\1\1\2\1\1", "header's name"),
        (varint(8) + b"\0\0\0\1\1\2\0\3", "header's value"),
        (varint(8) + b"\0\0\0\1\1\2\0\x10", "header's value"),
        (varint(7) + b"\0\0\0\1\1" + varint(5000), "before their count"),
    ],
)
def test_a_malformed_record_is_corrupt(payload: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecord, match=reason):
        decoded(payload)


def test_a_batch_at_the_end_of_all_offsets_is_corrupt() -> None:
    with pytest.raises(CorruptRecord, match="no room"):
        list(
            decode_records(
                varint(6) + BODY,
                record_count=1,
                base_offset=INT64_MAX,
                last_offset_delta=1,
                base_timestamp=0,
                append_time_ms=None,
            )
        )
