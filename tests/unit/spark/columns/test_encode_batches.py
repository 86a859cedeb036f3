"""Arrow columns to record batches: what is built must be what the records module reads."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.values import TopicPartition
from penstock.client.wire.raw_produce import OutgoingBatch, halves
from penstock.client.wire.transaction_control import ProducerIdAndEpoch
from penstock.errors import RecordTooLarge
from penstock.records.batch import check_batch, read_records
from penstock.records.compression import Codec
from penstock.spark.columns.encode import encode_headers
from penstock.spark.columns.encode_batches import BatchBuilder, SortedRows

AT = TopicPartition("t", 0)

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

Header = tuple[str, bytes | None]

Row = tuple[bytes | None, bytes | None, list[Header] | None]

some_bytes = st.one_of(st.none(), st.binary(max_size=20), st.binary(min_size=60, max_size=200))

headers = st.one_of(
    st.none(), st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary())))
)

rows_of = st.lists(st.tuples(some_bytes, some_bytes, headers), min_size=1, max_size=40)


def builder(**changes: Any) -> BatchBuilder:
    settings: dict[str, Any] = {
        "batch_bytes": 1000,
        "record_bytes_max": 100_000,
        "codec": Codec.NONE,
        "level": None,
        "identity": ProducerIdAndEpoch(7, 3),
        "is_transactional": True,
        **changes,
    }
    return BatchBuilder(**settings)


def sorted_rows(rows: list[Row], runs: list[tuple[TopicPartition, int, int]]) -> SortedRows:
    column = pa.array(
        [None if h is None else [{"key": k, "value": v} for k, v in h] for _, _, h in rows],
        HEADERS,
    )
    return SortedRows(
        keys=pa.array([row[0] for row in rows], pa.binary()),
        values=pa.array([row[1] for row in rows], pa.binary()),
        headers=encode_headers(column),
        runs=runs,
    )


def read_back(batches: list[OutgoingBatch]) -> list[Row]:
    found: list[Row] = []
    for batch in batches:
        header = check_batch(memoryview(batch.data))
        records = list(read_records(batch.data))
        assert [record.offset for record in records] == list(range(header.record_count))
        found += [(record.key, record.value, list(record.headers)) for record in records]
    return found


@given(rows_of, st.sampled_from(list(Codec)))
def test_every_row_comes_back_as_it_was(rows: list[Row], codec: Codec) -> None:
    batches = list(builder(codec=codec).build(sorted_rows(rows, [(AT, 0, len(rows))])))
    assert read_back(batches) == [(key, value, list(h or [])) for key, value, h in rows]


@given(rows_of)
def test_sequence_numbers_run_on_from_batch_to_batch_and_call_to_call(rows: list[Row]) -> None:
    build = builder(batch_bytes=300)
    batches = [
        batch for _ in range(2) for batch in build.build(sorted_rows(rows, [(AT, 0, len(rows))]))
    ]
    expected = 0
    for batch in batches:
        header = check_batch(memoryview(batch.data))
        assert (header.producer_id, header.producer_epoch) == (7, 3)
        assert header.is_transactional
        assert header.base_sequence == expected
        expected += header.record_count
    assert expected == 2 * len(rows)


@given(rows_of, st.integers(100, 2000))
def test_batches_keep_within_their_size_unless_one_record_is_larger(
    rows: list[Row], batch_bytes: int
) -> None:
    batches = builder(batch_bytes=batch_bytes).build(sorted_rows(rows, [(AT, 0, len(rows))]))
    for batch in batches:
        is_single = check_batch(memoryview(batch.data)).record_count == 1
        assert is_single or len(batch.data) <= batch_bytes


def test_each_partition_gets_its_own_batches() -> None:
    rows: list[Row] = [(None, b"%d" % n, None) for n in range(5)]
    other = TopicPartition("t", 1)
    batches = list(builder().build(sorted_rows(rows, [(AT, 0, 2), (other, 2, 5)])))
    assert [batch.at for batch in batches] == [AT, other]
    assert [row[1] for row in read_back(batches[1:])] == [b"2", b"3", b"4"]
    assert check_batch(memoryview(batches[1].data)).base_sequence == 0


def test_without_idempotence_there_is_no_producer() -> None:
    build = builder(identity=None, is_transactional=False)
    (batch,) = build.build(sorted_rows([(None, b"v", None)], [(AT, 0, 1)]))
    header = check_batch(memoryview(batch.data))
    assert (header.producer_id, header.base_sequence) == (-1, -1)
    assert not header.is_transactional


def test_a_record_larger_than_a_request_is_refused() -> None:
    rows = sorted_rows([(None, b"x" * 5000, None)], [(AT, 0, 1)])
    with pytest.raises(RecordTooLarge, match=r"larger than 4000.*max\.request\.size"):
        list(builder(record_bytes_max=4000).build(rows))


@given(rows_of.filter(lambda rows: len(rows) > 1))
def test_the_halves_of_a_batch_are_the_batch(rows: list[Row]) -> None:
    build = builder(batch_bytes=1_000_000, codec=Codec.LZ4)
    (whole,) = build.build(sorted_rows(rows, [(AT, 0, len(rows))]))
    first, second = halves(whole)
    assert read_back([first, second]) == read_back([whole])
    counts = [check_batch(memoryview(half.data)) for half in (first, second)]
    assert counts[1].base_sequence == counts[0].record_count
    assert counts[1].codec is Codec.LZ4


@given(st.lists(st.integers(0, 2**45), min_size=1, max_size=60))
def test_every_record_has_the_time_it_was_given(times: list[int]) -> None:
    rows = replace(
        sorted_rows([(b"k", b"v", None)] * len(times), [(AT, 0, len(times))]),
        times_ms=np.array(times, dtype=np.int64),
    )
    batches = list(builder(batch_bytes=200).build(rows))
    read = [record.timestamp for batch in batches for record in read_records(batch.data)]
    headers = [check_batch(memoryview(batch.data)) for batch in batches]
    assert read == times
    assert max(header.max_timestamp for header in headers) == max(times)
