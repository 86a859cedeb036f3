"""A batch without some records: what stays keeps offsets and bytes, and the header its numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.records.samples import headers, optional_bytes, timestamps

from penstock.records.batch import Record, build_batch, check_batch, read_header, read_records
from penstock.records.compression import Codec
from penstock.records.gaps import leave_out

rows = st.lists(
    st.tuples(timestamps, optional_bytes, optional_bytes, headers), min_size=1, max_size=20
)


@given(rows, st.data(), st.sampled_from(Codec))
def test_what_is_kept_is_as_it_was_at_the_offsets_it_had(
    given_rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    data: st.DataObject,
    codec: Codec,
) -> None:
    records = [Record(40 + at, *row) for at, row in enumerate(given_rows)]
    dropped = data.draw(st.sets(st.integers(0, len(records) - 1)))
    whole = build_batch(
        records, base_offset=40, codec=codec, producer_id=9, producer_epoch=2, base_sequence=77
    )
    left = leave_out(whole, dropped)
    kept = [record for at, record in enumerate(records) if at not in dropped]
    assert list(read_records(left)) == kept
    before, after = read_header(whole), check_batch(memoryview(left))
    assert (after.base_offset, after.last_offset) == (before.base_offset, before.last_offset)
    assert (after.base_sequence, after.last_sequence) == (77, before.last_sequence)
    assert (after.producer_id, after.producer_epoch) == (9, 2)
    assert after.record_count == len(kept)
    if kept:
        assert after.max_timestamp == max(record.timestamp for record in kept)
        assert after.codec is codec


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_of_a_transaction_stays_one_even_without_records(codec: Codec) -> None:
    record = Record(0, 5, b"k", b"v")
    whole = build_batch([record], codec=codec, producer_id=9, is_transactional=True)
    left = check_batch(memoryview(leave_out(whole, {0})))
    assert left.is_transactional and left.record_count == 0
