"""The records in what was fetched: whole batches, without markers and what was aborted."""

from penstock.client.wire.fetched_records import committed_records
from penstock.client.wire.raw_fetch import Fetched
from penstock.records.batch import LEAD, LOG_OVERHEAD, build_batch, control_batch
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.records.record import Record


def batch(base: int, *values: bytes, producer: int = -1) -> bytes:
    records = [Record(at, 0, None, value) for at, value in enumerate(values)]
    is_transactional = producer >= 0
    made = build_batch(
        records,
        producer_id=producer,
        producer_epoch=0 if is_transactional else -1,
        base_sequence=0 if is_transactional else -1,
        is_transactional=is_transactional,
    )
    LEAD.pack_into(made, 0, base, len(made) - LOG_OVERHEAD, 0)
    return bytes(made)


def found(data: bytes, *aborted: tuple[int, int]) -> list[bytes | None]:
    fetched = Fetched(
        offset=0,
        records=memoryview(data),
        aborted=aborted,
        log_start=0,
        high_watermark=100,
        last_stable=100,
    )
    return [record.value for _, records in committed_records(fetched) for record in records]


def test_a_batch_that_is_not_whole_comes_again() -> None:
    data = batch(0, b"a", b"b") + batch(2, b"c")
    for cut in range(len(batch(2, b"c"))):
        assert found(data[: len(data) - 1 - cut]) == [b"a", b"b"]
    assert found(data) == [b"a", b"b", b"c"]


def test_what_was_aborted_is_left_out_up_to_its_marker() -> None:
    marker = control_batch(
        EndTransactionMarker(ControlType.ABORT, 0),
        producer_id=7,
        producer_epoch=0,
        now_ms=0,
        base_offset=2,
    )
    data = (
        batch(0, b"void", producer=7)
        + batch(1, b"other", producer=8)
        + bytes(marker)
        + batch(3, b"kept", producer=7)
    )
    assert found(data, (7, 0)) == [b"other", b"kept"]
