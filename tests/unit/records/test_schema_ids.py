"""Schema ids read without decoding say the same as records decoded, and bad bytes only refuse."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.records.samples import mutations

from penstock.errors import CorruptRecord
from penstock.records.batch import HEADER_BYTES, Record, build_batch
from penstock.records.schema_ids import NO_HEADER, NULL, read_schema_ids

framed = st.tuples(st.integers(-5, 2**31 - 1), st.binary(max_size=300)).map(
    lambda pair: struct.pack(">bi", 0, pair[0]) + pair[1]
)
sides = st.none() | framed | st.binary(max_size=200)
rows = st.lists(st.tuples(sides, sides, st.integers(0, 1 << 42)), min_size=1, max_size=90)


def expected(data: bytes | None) -> int:
    if data is None:
        return NULL
    if len(data) < 5 or data[0]:
        return NO_HEADER
    found = int.from_bytes(data[1:5], "big", signed=True)
    return found if found >= 0 else NO_HEADER


@given(rows, st.booleans())
def test_every_record_gives_the_id_in_front_of_its_key_or_value(
    given_rows: list[tuple[bytes | None, bytes | None, int]], is_key: bool
) -> None:
    records = [Record(at, ms, key, value) for at, (key, value, ms) in enumerate(given_rows)]
    payload = bytes(build_batch(records)[HEADER_BYTES:])
    found = read_schema_ids(payload, len(records), is_key=is_key)
    assert found == [expected(r.key if is_key else r.value) for r in records]


def test_damaged_records_are_refused_and_never_crash() -> None:
    records = [Record(at, 5, b"k", b"\0\0\0\0\7" + b"v" * 70) for at in range(5)]
    payload = bytes(build_batch(records)[HEADER_BYTES:])
    for damaged in mutations(payload, count=3000, seed=14):
        for is_key in (False, True):
            try:
                assert len(read_schema_ids(bytes(damaged), 5, is_key=is_key)) == 5
            except CorruptRecord:
                continue


@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_count_is_refused(count: int) -> None:
    payload = bytes(build_batch([Record(0, 0, None, b""), Record(1, 0, None, b"")])[HEADER_BYTES:])
    with pytest.raises(CorruptRecord):
        read_schema_ids(payload, count, is_key=False)


def test_offsets_with_gaps_are_refused() -> None:
    payload = bytes(build_batch([Record(0, 0, None, b""), Record(2, 0, None, b"")])[HEADER_BYTES:])
    with pytest.raises(CorruptRecord, match="record 1 of a batch has the offset delta 2"):
        read_schema_ids(payload, 2, is_key=False)
