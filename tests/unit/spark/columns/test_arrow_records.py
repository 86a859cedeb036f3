"""Columns must hold what the plain record decoder reads, for whatever a producer may write."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecord
from penstock.records.batch import Record, build_batch, control_batch, read_header, seal
from penstock.records.compression import Codec
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.records.message_set import write_message_set
from penstock.records.record import varint
from penstock.spark.columns.arrow_records import arrow_schema, decode
from penstock.spark.columns.batch_walk import offset_after
from penstock.spark.schema import COLUMNS

FIRST_MS = 1_700_000_000_000
octets = st.one_of(st.none(), st.binary(max_size=40), st.binary(min_size=200, max_size=300))
headers = st.lists(st.tuples(st.text(max_size=20), octets), max_size=3).map(tuple)
gaps = st.integers(1, 300)
times_ms = st.integers(FIRST_MS, FIRST_MS + 200) | st.integers(-(9 * 10**15), 9 * 10**15)
contents = st.lists(st.tuples(gaps, times_ms, octets, octets, headers), min_size=1)


def records_of(drawn: list[Any], base: int) -> list[Record]:
    records, offset = [], base
    for gap, timestamp, key, value, heads in drawn:
        records.append(Record(offset, timestamp, key, value, heads))
        offset += gap
    return records


def rows(data: bytes, **options: Any) -> list[tuple[Any, ...]]:
    """What a decode gives, as records: offset, ms, key, value, headers."""
    batches = decode(memoryview(data), topic="t", partition=3, columns=COLUMNS, **options)
    table = pa.Table.from_batches(batches, schema=arrow_schema(COLUMNS))
    assert table.schema == arrow_schema(COLUMNS)
    found = table.set_column(5, "timestamp", table["timestamp"].cast(pa.int64())).to_pylist()
    assert all((row["topic"], row["partition"]) == ("t", 3) for row in found)
    return [
        (
            row["offset"],
            row["timestamp"] // 1000,
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in found
    ]


@given(st.lists(contents, min_size=1, max_size=4), st.sampled_from(Codec), st.integers(1, 7))
def test_columns_hold_what_the_records_hold(
    batches: list[Any], codec: Codec, rows_per_batch: int
) -> None:
    data, expected, base = b"", [], 5
    for drawn in batches:
        records = records_of(drawn, base)
        data += build_batch(records, base_offset=base, codec=codec)
        expected += [tuple(record) for record in records]
        base = records[-1].offset + 1
    assert rows(data, rows_per_batch=rows_per_batch) == expected
    assert offset_after(memoryview(data)) == base


@given(st.lists(st.lists(st.binary(max_size=200), min_size=1, max_size=5), min_size=60))
def test_many_small_batches_are_followed_in_step(drawn: list[list[bytes]]) -> None:
    data, expected = b"", []
    for values in drawn:
        base = len(expected)
        records = [Record(base + n, 7, None, value) for n, value in enumerate(values)]
        data += build_batch(records, base_offset=base)
        expected += [tuple(record) for record in records]
    assert rows(data) == expected


def test_one_bad_batch_among_many_is_named() -> None:
    good = bytes(build_batch([Record(0, 0, None, b"")]))
    header = read_header(good)._replace(record_count=1, base_offset=77)
    bad = bytes(seal(header, varint(2) + b"\0\0" + varint(0)))
    with pytest.raises(CorruptRecord, match="batch at offset 77 do not fill it"):
        rows(good * 50 + bad + good * 50)


@given(contents, st.integers(0, 2000), st.integers(0, 2000))
def test_only_offsets_within_the_range_come_out(drawn: list[Any], start: int, end: int) -> None:
    records = records_of(drawn, 0)
    found = rows(bytes(build_batch(records)), start=start, end=end)
    assert found == [tuple(r) for r in records if start <= r.offset < end]


def test_plain_compressed_and_old_batches_may_follow_each_other() -> None:
    def run(base: int) -> list[Record]:
        return [Record(base + n, FIRST_MS, None, b"%d" % (base + n)) for n in range(3)]

    data = bytes(build_batch(run(0)))
    data += build_batch(run(3), base_offset=3, codec=Codec.ZSTD)
    data += write_message_set(run(6), magic=1)
    data += write_message_set(run(9), magic=1, codec=Codec.GZIP)
    assert [row[3] for row in rows(data)] == [b"%d" % n for n in range(12)]
    assert offset_after(memoryview(data)) == 12


def test_a_batch_cut_off_at_the_end_waits_for_the_next_fetch() -> None:
    whole = bytes(build_batch([Record(0, 0, None, b"a")]))
    rest = bytes(build_batch([Record(1, 0, None, b"b")], base_offset=1))
    for size in range(len(rest)):
        assert [row[0] for row in rows(whole + rest[:size])] == [0]
        assert offset_after(memoryview(whole + rest[:size])) == 1


def test_the_brokers_time_replaces_the_producers_where_the_batch_says_so() -> None:
    data = bytes(build_batch([Record(n, n, None, b"") for n in range(2)], append_time_ms=77))
    (batch,) = decode(memoryview(data), topic="t", partition=0)
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [77_000, 77_000]
    assert batch.column("timestampType").to_pylist() == [1, 1]


@pytest.mark.parametrize("extreme", [2**63 - 1, -(2**63)])
def test_times_beyond_what_spark_can_hold_stop_at_its_limit(extreme: int) -> None:
    data = bytes(build_batch([Record(0, extreme, None, b""), Record(1, 5, None, b"")]))
    limit = (2**63 - 1) // 1000
    assert [row[1] for row in rows(data)] == [limit if extreme > 0 else -limit, 5]


def transaction(base: int, producer_id: int, **options: Any) -> bytes:
    record = Record(base, 0, None, b"%d" % producer_id)
    return bytes(
        build_batch(
            [record], base_offset=base, producer_id=producer_id, producer_epoch=0, **options
        )
    )


def marker(base: int, producer_id: int, kind: ControlType) -> bytes:
    end = EndTransactionMarker(kind, 0)
    return bytes(
        control_batch(end, producer_id=producer_id, producer_epoch=0, now_ms=0, base_offset=base)
    )


def test_aborted_transactions_and_markers_are_dropped() -> None:
    data = transaction(0, 7, is_transactional=True)  # Aborted below.
    data += transaction(1, 8, is_transactional=True)  # Committed below.
    data += transaction(2, 7)  # Not part of a transaction.
    data += marker(3, 7, ControlType.ABORT)
    data += marker(4, 8, ControlType.COMMIT)
    data += transaction(5, 7, is_transactional=True)  # The next transaction is another one.
    data += marker(6, 7, ControlType.COMMIT)
    assert [row[0] for row in rows(data, aborted=[(7, 0)])] == [1, 2, 5]
    assert [row[0] for row in rows(data)] == [0, 1, 2, 5]
    assert offset_after(memoryview(data)) == 7


def test_a_wrong_checksum_is_noticed() -> None:
    data = bytearray(build_batch([Record(0, 0, None, b"value")]))
    data[-2] ^= 1
    with pytest.raises(CorruptRecord, match="CRC of the batch at offset 0"):
        rows(bytes(data))


@given(st.binary(max_size=60), st.integers(1, 5))
def test_senseless_records_behind_a_right_checksum_are_refused(payload: bytes, count: int) -> None:
    header = read_header(bytes(build_batch([Record(0, 0, None, b"")])))
    batch = seal(header._replace(record_count=count, last_offset_delta=count), payload)
    try:
        found = rows(bytes(batch))
    except CorruptRecord:
        return
    assert len(found) == count  # By chance it makes sense, and then it fills the batch.


@pytest.mark.parametrize("size", [2**31, 2**40, 2**62, -(2**62), -2])
def test_lengths_beyond_all_memory_are_refused(size: int) -> None:
    tail = varint(0) + varint(0) + varint(size) + b"key"
    body = b"\0" + tail + varint(1) + b"v" + varint(0)
    header = read_header(bytes(build_batch([Record(0, 0, None, b"")])))
    with pytest.raises(CorruptRecord):
        rows(bytes(seal(header, varint(len(body)) + body)))


def test_header_names_that_are_no_text_stay_readable() -> None:
    record = Record(0, 0, None, b"v", (("\udcff", b"1"),))
    assert rows(bytes(build_batch([record])))[0][4] == (("\ufffd", b"1"),)


def test_the_schema_is_the_one_that_spark_expects() -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    from penstock.spark.data_source import spark_schema

    assert to_arrow_schema(spark_schema(COLUMNS), timezone="UTC").equals(arrow_schema(COLUMNS))
