"""Records of the broker itself: batches of a bounded size, each with offsets of its own."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.own_records import batches_of
from penstock.records.batch import Record, read_records, split_batches


@given(st.lists(st.integers(0, 400_000), max_size=12))
def test_every_record_is_in_one_batch_and_batches_stay_small(sizes: list[int]) -> None:
    given_records = [Record(9 + at, 5, b"k", bytes(size)) for at, size in enumerate(sizes)]
    found = []
    for batch in batches_of(given_records):
        records = list(read_records(batch))
        assert [record.offset for record in records] == list(range(len(records)))
        assert len(batch) < 510_000
        split_batches(batch)
        found += records
    assert [len(record.value or b"") for record in found] == sizes
