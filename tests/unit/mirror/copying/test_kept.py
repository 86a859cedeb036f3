"""What of a fetch is sent on, checked against what a reader would see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecord
from penstock.mirror.copying.kept import kept_batches, reissued
from penstock.records.batch import build_batch, check_batch, control_batch, read_records
from penstock.records.compression import Codec
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.records.message_set import write_message_set
from penstock.records.record import Record

ABORT = EndTransactionMarker(ControlType.ABORT, 0)
COMMIT = EndTransactionMarker(ControlType.COMMIT, 0)


def records(*offsets: int) -> list[Record]:
    return [Record(at, 1000 + at, b"k%d" % at, b"v%d" % at, ()) for at in offsets]


def batch(*offsets: int, producer: int = -1, **more: object) -> bytes:
    return bytes(
        build_batch(
            records(*offsets),
            base_offset=offsets[0],
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=0 if producer >= 0 else -1,
            is_transactional=producer >= 0,
            **more,  # type: ignore[arg-type]
        )
    )


def marker(kind: EndTransactionMarker, offset: int, producer: int) -> bytes:
    made = control_batch(kind, producer_id=producer, producer_epoch=0, now_ms=0, base_offset=offset)
    return bytes(made)


def kept_values(
    data: bytes, offset: int = 0, aborted: list[tuple[int, int]] | None = None
) -> dict[int, bytes | None]:
    """Values by source offset, read from the batches that would be sent on."""
    found: dict[int, bytes | None] = {}
    for piece in kept_batches(memoryview(data), aborted or [], offset=offset).pieces:
        sent = reissued(piece.data, producer_id=7, producer_epoch=1, base_sequence=5)
        header = check_batch(memoryview(sent))
        assert header.record_count == header.last_offset_delta + 1 == piece.record_count
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 5)
        assert header.is_transactional and not header.is_control
        offsets = [first + n for first, count in piece.spans for n in range(count)]
        for at, record in zip(offsets, read_records(sent), strict=True):
            assert (record.timestamp, record.key) == (1000 + at, b"k%d" % at)
            found[at] = record.value
    return found


def test_markers_and_aborted_batches_stay_behind() -> None:
    data = (
        batch(0, 1)
        + batch(2, 3, producer=1)
        + batch(4, producer=2)
        + marker(ABORT, 5, 1)
        + marker(COMMIT, 6, 2)
        + batch(7, producer=1)
        + marker(COMMIT, 8, 1)
    )
    assert sorted(kept_values(data, aborted=[(1, 2)])) == [0, 1, 4, 7]
    assert kept_batches(memoryview(data), [(1, 2)], offset=0).next_offset == 9
    assert sorted(kept_values(data)) == [0, 1, 2, 3, 4, 7]  # For who reads uncommitted ones.


def test_a_fetch_that_begins_inside_a_transaction_knows_that_it_was_aborted() -> None:
    data = batch(10, 11, producer=1) + marker(ABORT, 12, 1)
    assert kept_values(data, offset=10, aborted=[(1, 2)]) == {}


@given(st.sets(st.integers(0, 40), min_size=1), st.integers(0, 45), st.sampled_from(Codec))
def test_holes_are_closed_and_remembered(kept: set[int], offset: int, codec: Codec) -> None:
    data = batch(*sorted(kept), codec=codec, last_offset_delta=41 - min(kept))
    found = kept_values(data, offset=offset)
    assert found == {at: b"v%d" % at for at in kept if at >= offset}


def test_the_times_of_a_broker_become_the_times_of_the_records() -> None:
    data = build_batch(records(0, 1), append_time_ms=5000)
    (piece,) = kept_batches(memoryview(data), [], offset=0).pieces
    assert [record.timestamp for record in read_records(piece.data)] == [5000, 5000]
    assert not check_batch(memoryview(bytes(piece.data))).is_log_append_time


def test_a_batch_that_is_cut_off_comes_again() -> None:
    data = batch(0, 1) + batch(2, 3)
    kept = kept_batches(memoryview(data[:-1]), [], offset=0)
    assert ([piece.spans for piece in kept.pieces], kept.next_offset) == ([((0, 2),)], 2)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_sent_on_as_the_new_one(magic: int) -> None:
    old = write_message_set(records(0, 1, 2), magic=magic)
    kept = kept_batches(memoryview(bytes(old) + batch(3, 4)), [], offset=1)
    sources = [span for piece in kept.pieces for span in piece.spans]
    assert [n for first, count in sources for n in range(first, first + count)] == [1, 2, 3, 4]
    values = [one.value for piece in kept.pieces for one in read_records(piece.data)]
    assert values == [b"v1", b"v2", b"v3", b"v4"]


def test_what_is_damaged_is_not_sent_on() -> None:
    data = bytearray(batch(0, 1))
    data[-1] ^= 1
    with pytest.raises(CorruptRecord):
        kept_batches(memoryview(data), [], offset=0)
