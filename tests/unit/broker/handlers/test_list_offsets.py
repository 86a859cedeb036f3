"""ListOffsets: the ends of a log, and offsets by time, as each version of the API has them."""

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.handlers import list_offsets
from penstock.broker.handlers.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    offsets_before,
)
from penstock.errors import ErrorCode, KafkaStorage
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

CONSUMER = -1
DEBUGGER = -2


def wanted(timestamp: int, *, index: int = 0, epoch: int = -1, count: int = 1) -> Any:
    return ListOffsetsPartition(
        partition_index=index,
        timestamp=timestamp,
        current_leader_epoch=epoch,
        max_num_offsets=count,
    )


def ask_all(served: Any, version: int, *partitions: Any, topic: str = "t", **fields: Any) -> Any:
    topics = [ListOffsetsTopic(name=topic, partitions=list(partitions))]
    fields.setdefault("replica_id", CONSUMER)
    (answered,) = served.ask(ListOffsetsRequest(topics=topics, **fields), version).topics
    assert answered.name == topic
    return answered.partitions


def ask(served: Any, version: int, timestamp: int, **fields: Any) -> Any:
    (partition,) = ask_all(served, version, wanted(timestamp), **fields)
    return partition


@pytest.fixture
def filled(served: Any) -> Any:
    """Offsets 0 to 5 with times 100 to 600 in two batches, but 5 is older than 4."""
    served.create("t")
    served.append("t", 100, 200, 300)
    served.append("t", 400, 600, 500)
    return served


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_tells_both_ends_and_a_time(filled: Any, version: int) -> None:
    ends = [ask(filled, version, timestamp).offset for timestamp in (EARLIEST, LATEST)]
    assert ends == [0, 6]
    found = ask(filled, version, 250)
    assert (found.error_code, found.offset, found.timestamp) == (0, 2, 300)


def test_the_leader_epoch_of_what_was_found_is_told_from_version_four_on(filled: Any) -> None:
    for timestamp in (EARLIEST, LATEST, 250):
        assert ask(filled, 3, timestamp).leader_epoch == -1
        assert ask(filled, 4, timestamp).leader_epoch == 0


def test_a_time_after_every_record_has_no_offset(filled: Any) -> None:
    found = ask(filled, 11, 601)
    assert (found.error_code, found.offset, found.timestamp) == (0, -1, -1)
    assert found.leader_epoch == -1


def test_the_newest_record_is_not_always_the_last(filled: Any) -> None:
    found = ask(filled, 7, MAX_TIMESTAMP)
    assert (found.offset, found.timestamp, found.leader_epoch) == (4, 600, 0)


def test_an_empty_log_has_equal_ends_and_no_newest_record(served: Any) -> None:
    served.create("t")
    assert [ask(served, 7, mark).offset for mark in (EARLIEST, LATEST, MAX_TIMESTAMP)] == [0, 0, -1]


def test_without_tiered_storage_its_marks_are_empty(filled: Any) -> None:
    assert ask(filled, 8, EARLIEST_LOCAL).offset == 0
    for version, mark in ((9, LATEST_TIERED), (11, EARLIEST_PENDING_UPLOAD)):
        found = ask(filled, version, mark)
        assert (found.error_code, found.offset, found.leader_epoch) == (0, -1, -1)


@pytest.mark.parametrize(
    ("version", "mark"),
    [
        (6, MAX_TIMESTAMP),
        (7, EARLIEST_LOCAL),
        (8, LATEST_TIERED),
        (10, EARLIEST_PENDING_UPLOAD),
        (11, -7),
        (1, -(2**63)),
        (0, MAX_TIMESTAMP),
    ],
)
def test_a_mark_of_a_later_version_is_refused(filled: Any, version: int, mark: int) -> None:
    assert ask(filled, version, mark).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_the_start_follows_deleted_records(filled: Any) -> None:
    filled.partition("t").delete_records(2)
    assert ask(filled, 5, EARLIEST).offset == 2
    assert ask(filled, 5, 100).offset == 2


def test_readers_of_committed_records_see_the_end_before_an_open_transaction(
    filled: Any,
) -> None:
    filled.append("t", 700, producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True)
    assert ask(filled, 2, LATEST, isolation_level=0).offset == 7
    assert ask(filled, 2, LATEST, isolation_level=1).offset == 6
    assert ask(filled, 2, 650, isolation_level=0).offset == 6
    assert ask(filled, 2, 650, isolation_level=1).offset == -1


def test_a_debugger_sees_beyond_what_is_committed(filled: Any) -> None:
    filled.partition("t").log.high_watermark = 3
    assert ask(filled, 5, LATEST).offset == 3
    assert ask(filled, 5, 450).offset == -1
    assert ask(filled, 5, LATEST, replica_id=DEBUGGER).offset == 6


def test_a_new_leader_does_not_know_the_end_yet(filled: Any) -> None:
    partition = filled.partition("t")
    partition.log.assign_epoch_start(1, 6)
    partition.leader_epoch = 1
    partition.log.high_watermark = 3
    assert ask(filled, 4, LATEST).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert ask(filled, 5, LATEST).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert ask(filled, 5, 10_000).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert ask(filled, 5, EARLIEST).offset == 0
    assert ask(filled, 5, 100).offset == 0


def test_a_client_with_another_leader_epoch_is_told(filled: Any) -> None:
    (newer,) = ask_all(filled, 4, wanted(LATEST, epoch=1))
    assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    filled.partition("t").leader_epoch = 2
    (older,) = ask_all(filled, 4, wanted(LATEST, epoch=1))
    assert older.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_partition_that_is_not_there_is_told_beside_one_that_is(filled: Any) -> None:
    here, there = ask_all(filled, 5, wanted(LATEST), wanted(LATEST, index=9))
    assert (here.error_code, here.offset) == (0, 6)
    assert there.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(filled, 5, LATEST, topic="absent").error_code == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_a_partition_asked_for_twice_is_refused(filled: Any) -> None:
    first, second = ask_all(filled, 1, wanted(LATEST), wanted(EARLIEST))
    assert first.error_code == second.error_code == ErrorCode.INVALID_REQUEST


def test_the_oldest_version_lists_where_segments_start(serve: Any) -> None:
    served = serve({"internal.segment.bytes": "1024"})
    served.create("t")
    for at in range(3):
        served.append("t", *range(at * 100, at * 100 + 3))
        served.partition("t").log.roll(served.broker.now_ms())
    (newest,) = ask_all(served, 0, wanted(LATEST, count=10))
    assert newest.old_style_offsets == [9, 6, 3, 0]
    (few,) = ask_all(served, 0, wanted(LATEST, count=2))
    assert few.old_style_offsets == [9, 6]
    (oldest,) = ask_all(served, 0, wanted(EARLIEST, count=10))
    assert oldest.old_style_offsets == [0]
    (none,) = ask_all(served, 0, wanted(0, count=10))
    assert (none.error_code, none.old_style_offsets) == (0, [])


def test_the_oldest_version_goes_by_the_time_of_files(served: Any) -> None:
    served.create("t")
    served.append("t", 1)
    log = served.partition("t").log
    log.roll(served.broker.now_ms())
    os.utime(log.segments[0].log_path, (1000, 1000))
    (found,) = ask_all(served, 0, wanted(1_000_000, count=5))
    assert found.old_style_offsets == [0]


def test_the_oldest_version_bounds_consumers_by_what_is_committed(filled: Any) -> None:
    filled.partition("t").log.high_watermark = 4
    (found,) = ask_all(filled, 0, wanted(LATEST, count=5))
    assert found.old_style_offsets == [4, 0]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1),
    st.integers(-2, 60),
    st.integers(0, 9),
    st.integers(0, 60),
)
def test_old_style_offsets_descend_and_stay_within_count_and_end(
    marks: list[tuple[int, int]], timestamp: int, count: int, end: int
) -> None:
    marks.sort()
    offsets = offsets_before(marks, timestamp, count_max=count, end=end)
    assert offsets == sorted(set(offsets), reverse=True)
    assert len(offsets) <= count
    assert all(offset <= end for offset in offsets)
    assert {min(o, end) for o, _ in marks} >= set(offsets)


@pytest.mark.parametrize("version", range(12))
def test_an_error_as_a_whole_reaches_every_partition_in_every_version(version: int) -> None:
    topics = [ListOffsetsTopic(name="t", partitions=[wanted(LATEST), wanted(LATEST, index=1)])]
    response = list_offsets.error_response(ListOffsetsRequest(topics=topics), KafkaStorage())
    read = type(response).decode(response.encode(version), version)
    codes = [partition.error_code for partition in read.topics[0].partitions]
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
