"""Reading keys and splicing records, against the codec that decodes whole records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecord
from penstock.native import NATIVE, NativeModule
from penstock.records.batch import HEADER_BYTES, build_batch, read_header, read_records, seal
from penstock.records.record import Record
from penstock.storage.compaction.scan import scan_keys, splice

BASE = 1_000_000
# Both ways; where native code was not built, the one of Python twice.
both = pytest.mark.parametrize("native", [None, NATIVE], ids=["python", "native"])

parts = st.one_of(st.none(), st.binary(max_size=20), st.binary(min_size=60, max_size=200))
record_lists = st.lists(
    st.tuples(
        st.integers(1, 9_000),  # Distance to the offset before.
        st.integers(-(2**40), 2**40),
        parts,
        parts,
        st.lists(st.tuples(st.text(max_size=5), parts), max_size=2),
    ),
    min_size=1,
    max_size=20,
)


def made(drawn: list[tuple[int, int, bytes | None, bytes | None, list[object]]]) -> list[Record]:
    records, offset = [], BASE - 1
    for distance, timestamp, key, value, headers in drawn:
        offset += distance
        records.append(Record(offset, timestamp, key, value, tuple(headers)))  # type: ignore[arg-type]
    return records


@both
@given(record_lists)
def test_keys_offsets_and_tombstones_are_those_of_the_records(
    native: NativeModule | None, drawn: list[tuple]
) -> None:  # type: ignore[type-arg]
    records = made(drawn)
    batch = build_batch(records, base_offset=BASE)
    found = scan_keys(
        bytes(batch[HEADER_BYTES:]), record_count=len(records), base_offset=BASE, native=native
    )
    keyed = [record for record in records if record.key is not None]
    assert found.keys == [record.key for record in keyed]
    assert found.offsets == [record.offset for record in keyed]
    assert found.tombstones == [record.offset for record in keyed if record.value is None]


@both
@given(record_lists, st.data())
def test_spliced_records_are_what_they_were(
    native: NativeModule | None, drawn: list[tuple], data: st.DataObject
) -> None:  # type: ignore[type-arg]
    records = made(drawn)
    kept = data.draw(st.sets(st.sampled_from([record.offset for record in records])))
    batch = build_batch(records, base_offset=BASE)
    header = read_header(batch)
    found = splice(
        bytes(batch[HEADER_BYTES:]),
        kept,
        record_count=len(records),
        base_offset=BASE,
        base_timestamp=header.base_timestamp,
        native=native,
    )
    staying = [record for record in records if record.offset in kept]
    assert found.record_count == len(staying)
    if staying:
        assert found.max_timestamp == max(record.timestamp for record in staying)
        smaller = seal(header._replace(record_count=len(staying)), found.payload)
        assert list(read_records(smaller)) == staying


@both
@given(st.binary(max_size=80), st.integers(0, 5))
def test_bytes_that_are_no_records_are_called_corrupt(
    native: NativeModule | None, data: bytes, record_count: int
) -> None:
    for read in (
        lambda: scan_keys(data, record_count=record_count, base_offset=0, native=native),
        lambda: splice(
            data, set(), record_count=record_count, base_offset=0, base_timestamp=0, native=native
        ),
    ):
        try:
            read()
        except CorruptRecord:
            continue  # Nothing else may come out of it.


@both
def test_a_count_that_is_too_small_or_too_large_is_noticed(native: NativeModule | None) -> None:
    payload = bytes(
        build_batch([Record(0, 0, b"k", b"v"), Record(1, 0, b"k", b"v")])[HEADER_BYTES:]
    )
    for record_count in (0, 1, 3):
        with pytest.raises(CorruptRecord):
            scan_keys(payload, record_count=record_count, base_offset=0, native=native)


@both
def test_a_key_longer_than_its_record_is_noticed(native: NativeModule | None) -> None:
    payload = bytearray(build_batch([Record(0, 0, b"k", b"v")])[HEADER_BYTES:])
    payload[4] = 60  # The length of the key, doubled.
    with pytest.raises(CorruptRecord, match="key"):
        scan_keys(bytes(payload), record_count=1, base_offset=0, native=native)
