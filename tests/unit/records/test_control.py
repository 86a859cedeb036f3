import pytest

from penstock.errors import CorruptRecord
from penstock.records.control import ControlType, EndTransactionMarker, marker_record, read_marker
from penstock.records.record import Record


def test_a_marker_says_its_type_and_its_coordinator() -> None:
    marker = EndTransactionMarker(ControlType.COMMIT, coordinator_epoch=70_000)
    assert read_marker(marker_record(marker, offset=3, timestamp=9)) == marker


def test_control_records_of_other_kinds_are_passed_over() -> None:
    leader_change = Record(0, 0, bytes((0, 0, 0, 2)), b"anything")
    assert read_marker(leader_change) is None


def test_a_newer_marker_may_have_more_fields() -> None:
    record = Record(0, 0, bytes((0, 1, 0, 0, 9)), bytes((0, 1, 0, 0, 0, 4, 8, 8)))
    assert read_marker(record) == EndTransactionMarker(ControlType.ABORT, coordinator_epoch=4)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\0\0\0", b""),
        (b"\xff\xff\0\1", bytes(6)),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", bytes(5)),
    ],
)
def test_a_marker_cut_short_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptRecord):
        read_marker(Record(0, 0, key, value))
