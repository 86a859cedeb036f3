"""A batch that cannot be read costs its own records, and none before or after it."""

from typing import Any

import cramjam
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import batches as packed

from penstock.client.values import TopicPartition
from penstock.errors import CorruptRecord
from penstock.records.batch import Record, build_batch, read_header, seal
from penstock.records.compression import Codec
from penstock.schemas.dead_letters import cause_of
from penstock.spark.columns import batch_walk
from penstock.spark.columns.arrow_records import FetchDecoder, arrow_schema, decode
from penstock.spark.columns.batch_walk import Damaged, offset_after
from penstock.spark.formats.dead_letter_rows import DeadLetter
from penstock.spark.formats.decoding import ColumnDecoding
from penstock.spark.formats.raw_format import Raw
from penstock.spark.options import OptionError, read_options
from penstock.spark.schema import COLUMNS
from penstock.spark.source.unreadable import UnreadableBatch, marker_row, unreadable

GZIP, ZSTD = 1, 4
PARTITION = TopicPartition("t", 3)
MINIMUM = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}


def unzippable(base: int, count: int) -> bytes:
    return placed(packed.batch([b""] * count, attributes=GZIP, records=b"\x1f\x8bno"), base)


def placed(batch: bytes, base: int) -> bytes:
    """At its offset; the checksum does not cover it."""
    return base.to_bytes(8, "big") + batch[8:]


def bad_header(base: int, count: int) -> bytes:
    """The last record's header does not fill it: only a look at the headers finds that."""
    records = [Record(base + n, 7, None, b"v", (("h", b"x"),)) for n in range(count)]
    whole = bytes(build_batch(records, base_offset=base))
    return bytes(seal(read_header(whole), whole[packed.HEADER_BYTES : -3] + b"\x02h\x00"))


def cut(base: int, count: int) -> bytes:
    whole = bytes(build_batch([Record(base, 7, None, b"value")], base_offset=base))
    header = read_header(whole)._replace(record_count=count, last_offset_delta=count - 1)
    return bytes(seal(header, whole[packed.HEADER_BYTES :]))


def good(base: int, count: int, codec: Codec = Codec.NONE) -> bytes:
    records = [Record(base + n, 7, None, b"%d" % (base + n)) for n in range(count)]
    return bytes(build_batch(records, base_offset=base, codec=codec))


KINDS: dict[str, Any] = {
    "good": good,
    "zipped": lambda base, count: good(base, count, Codec.ZSTD),
    "unzippable": unzippable,
    "bad header": bad_header,
    "cut": lambda base, count: cut(base, max(count, 2)),
}


def found_in(data: bytes, **options: Any) -> tuple[list[int], list[tuple[int, int]]]:
    """Offsets of the rows, and first and last of the batches that cannot be read."""
    decoder = FetchDecoder("t", 3, COLUMNS, rows_per_batch=options.pop("rows_per_batch", 3))
    rows: list[int] = []
    bad: list[tuple[int, int]] = []
    for one in decoder.decode(memoryview(data), **options).batches:
        if isinstance(one, Damaged):
            span = one.span
            bad.append((span.base_offset, span.base_offset + span.last_offset_delta))
        else:
            rows += one.column("offset").to_pylist()
    return rows, bad


@given(
    st.lists(st.tuples(st.sampled_from(list(KINDS)), st.integers(1, 5)), min_size=1, max_size=12),
    st.integers(0, 20),
    st.integers(1, 50),
    st.integers(1, 9),
)
def test_all_records_of_good_batches_come_and_bad_batches_are_named(
    drawn: list[tuple[str, int]], start: int, size: int, rows_per_batch: int
) -> None:
    data, base, rows, bad = b"", 0, [], []
    for kind, count in drawn:
        count = max(count, 2) if kind == "cut" else count
        data += KINDS[kind](base, count)
        if kind in ("good", "zipped"):
            rows += range(base, base + count)
        else:
            bad.append((base, base + count - 1))
        base += count
    found, damaged = found_in(data, rows_per_batch=rows_per_batch)
    assert (found, damaged) == (rows, bad)
    end = start + size
    within, _ = found_in(data, start=start, end=end, rows_per_batch=rows_per_batch)
    assert within == [at for at in rows if start <= at < end]
    assert offset_after(memoryview(data)) == base


def test_a_batch_that_is_too_large_is_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_walk, "DECOMPRESSED_BYTES_MAX", 10_000)
    bomb = bytes(cramjam.zstd.compress(bytes(10_001)))
    data = good(0, 2) + placed(packed.batch([b""], attributes=ZSTD, records=bomb), 2) + good(3, 1)
    assert found_in(data) == ([0, 1, 3], [(2, 2)])
    with pytest.raises(CorruptRecord, match=r"the batch at offset 2: .* more than"):
        decode(memoryview(data), topic="t", partition=3)


def test_batches_are_decompressed_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_walk, "_JOINED_BYTES_MAX", 30)
    data = b"".join(good(3 * n, 3, Codec.LZ4) for n in range(5))
    parts = list(batch_walk.walk(memoryview(data)).parts)
    assert len(parts) > 2
    assert found_in(data) == (list(range(15)), [])


def test_a_wrong_checksum_is_no_batch_to_set_aside() -> None:
    data = bytearray(good(0, 1))
    data[-1] ^= 1
    with pytest.raises(CorruptRecord, match="CRC"):
        found_in(bytes(data))


def unread(first: int = 4, last: int = 9) -> UnreadableBatch:
    damaged = damaged_of(unzippable(4, 6))._replace(reason="damaged")
    found = unreadable(damaged, PARTITION, first, last + 1)
    assert found is not None
    return found


def damaged_of(data: bytes) -> Damaged:
    """The one batch of the data that cannot be read."""
    decoded = FetchDecoder("t", 3, COLUMNS).decode(memoryview(data)).batches
    (found,) = [one for one in decoded if isinstance(one, Damaged)]
    return found


@pytest.mark.parametrize("kind", ["unzippable", "bad header", "cut"])
def test_the_bytes_of_such_a_batch_are_those_that_the_broker_has(kind: str) -> None:
    bad = KINDS[kind](2, 3)
    for data in (good(0, 2) + bad + good(5, 1), good(0, 2, Codec.LZ4) + bad + good(5, 1)):
        found = unreadable(damaged_of(data), PARTITION, 0, 9)
        assert found is not None
        assert bytes(found.stored) == bad


def test_each_range_answers_for_its_own_offsets_of_a_batch() -> None:
    assert (unread().first_offset, unread().last_offset) == (4, 9)
    assert (unread(0, 6).first_offset, unread(0, 6).last_offset) == (4, 6)
    assert (unread(7, 99).first_offset, unread(7, 99).last_offset) == (7, 9)
    damaged = damaged_of(unzippable(4, 6))
    assert unreadable(damaged, PARTITION, 0, 4) is None
    assert unreadable(damaged, PARTITION, 10, 12) is None


def test_the_row_in_its_place_says_so_in_its_headers() -> None:
    row = marker_row(unread(), COLUMNS)
    assert row.schema == arrow_schema(COLUMNS)
    (told,) = row.to_pylist()
    assert (told["key"], told["value"], told["offset"]) == (None, None, 4)
    cause = cause_of((one["key"], one["value"]) for one in told["headers"])
    assert (cause.origin, cause.stage) == ("t-3@4..9", "KAFKA_CONSUME")
    assert "t-3 with the offsets 4 to 9 cannot be read: damaged" in str(cause.message)


def test_decoding_makes_a_dead_letter_of_it_and_of_no_tombstone() -> None:
    letter = DeadLetter("dead", pipeline="p")
    decoding = ColumnDecoding(
        formats={"value": Raw("string")}, on_error="dead-letter", dead_letter=letter
    )
    row = marker_row(unread(), COLUMNS)
    elsewhere = row.set_column(4, "offset", pa.array([5], pa.int64()))
    no_headers = marker_row(unread(), COLUMNS[:-1])
    decoders = {"value": Raw("string").decoder()}
    (dead,) = decoding.decoded(row, decoders)["dead_letter"].to_pylist()
    assert (dead["topic"], dead["key"], dead["value"]) == ("dead", None, None)
    cause = cause_of((one["key"], one["value"]) for one in dead["headers"])
    assert (cause.origin, cause.pipeline) == ("t-3@4..9", "p")
    for other in (elsewhere, no_headers):
        assert decoding.decoded(other, decoders)["dead_letter"].to_pylist() == [None]


def test_the_choice_is_an_option_of_the_source() -> None:
    assert read_options(MINIMUM, streaming=True).on_unreadable_batch == "fail"
    chosen = read_options({**MINIMUM, "onUnreadableBatch": "Skip"}, streaming=False)
    assert chosen.on_unreadable_batch == "skip"
    with pytest.raises(OptionError, match="onUnreadableBatch"):
        read_options({**MINIMUM, "onUnreadableBatch": "drop"}, streaming=True)
