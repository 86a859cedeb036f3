"""One answer and one partition: what counts, what does not, and in which order."""

from pathlib import Path

import pytest
from tests.unit.replica.replicas import a_batch, bytes_of

from penstock.cluster.image.image import PartitionImage, PartitionState
from penstock.errors import CorruptRecord, ErrorCode
from penstock.protocol.messages.fetch import EpochEndOffset, PartitionData
from penstock.replica.following import (
    Taken,
    cut_where_logs_part,
    position_of,
    settle_out_of_range,
    take_answer,
)
from penstock.replica.partition import Partition
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log

LEADER, BROKER, OTHER = 1, 2, 3


def lead(partition: Partition, leader: int, epoch: int) -> None:
    state = PartitionState(
        leader=leader, leader_epoch=epoch, isr=(LEADER, BROKER, OTHER), min_isr=1
    )
    image = PartitionImage(replicas=(LEADER, BROKER, OTHER), state=state)
    assert partition.apply(image, {})


@pytest.fixture
def follower(tmp_path: Path) -> Partition:
    """It follows the leader of epoch 5."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    log = Log.open(directory, config=LogConfig(), now_ms=0, clean=True, report=lambda _: None)
    made = Partition(topic="orders", partition=0, topic_id=bytes(16), broker_id=BROKER, log=log)
    lead(made, LEADER, 5)
    return made


def data(*batches: bytes, high_watermark: int = 0, start: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=0,
        records=b"".join(batches),
        high_watermark=high_watermark,
        log_start_offset=start,
    )


def copied(offset: int, *values: bytes, epoch: int = 5) -> bytes:
    """A batch as it stands in the leader's log."""
    built = a_batch(*values, leader_epoch=epoch)
    built[:8] = offset.to_bytes(8, "big")
    return bytes(built)


def take(follower: Partition, answer: PartitionData) -> Taken:
    return take_answer(follower, position_of(follower), answer, now_ms=0)


def test_batches_are_appended_as_they_are_and_then_the_marks_move(follower: Partition) -> None:
    batches = copied(0, b"a", b"b"), copied(2, b"c")
    assert take(follower, data(*batches, high_watermark=9, start=1)) is Taken.APPENDED
    assert bytes_of(follower)[-len(batches[1]) :] == batches[1]
    log = follower.log
    assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (3, 3, 1)
    assert follower.lag == 6


def test_an_answer_to_an_older_question_changes_nothing(follower: Partition) -> None:  # I12
    asked = position_of(follower)
    answer = data(copied(0, b"a"), high_watermark=1)
    lead(follower, LEADER, 6)  # The same leader, another epoch.
    assert take_answer(follower, asked, answer, now_ms=0) is Taken.IGNORED
    lead(follower, BROKER, 7)
    assert take_answer(follower, position_of(follower), answer, now_ms=0) is Taken.IGNORED
    lead(follower, LEADER, 8)
    asked = position_of(follower)
    assert take_answer(follower, asked, answer, now_ms=0) is Taken.APPENDED
    assert take_answer(follower, asked, answer, now_ms=0) is Taken.IGNORED
    assert follower.log.log_end_offset == 1


def test_where_logs_part_nothing_but_the_end_moves(follower: Partition) -> None:  # KAFKA-14704
    take(follower, data(copied(0, b"a", epoch=3), copied(1, b"b", epoch=4), high_watermark=1))
    answer = data(copied(2, b"never"), high_watermark=2)
    answer.diverging_epoch = EpochEndOffset(epoch=3, end_offset=1)
    assert take(follower, answer) is Taken.CUT
    log = follower.log
    assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (1, 1, 0)
    assert log.latest_epoch == 3


def test_nothing_stays_of_a_log_that_parts_where_the_leaders_begins(follower: Partition) -> None:
    """The leader has deleted those records: ours may be others, and would come back as them."""
    take(follower, data(copied(0, b"a", epoch=3), copied(1, b"b", epoch=3), high_watermark=0))
    answer = data(high_watermark=2, start=1)
    answer.diverging_epoch = EpochEndOffset(epoch=3, end_offset=1)
    assert take(follower, answer) is Taken.CUT
    log = follower.log
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1, 1, 1)
    assert not log.epochs
    assert [path.name for path in log.dir.glob("*.log")] == ["00000000000000000001.log"]


def test_a_log_whose_leaders_begins_behind_it_within_a_batch_begins_with_that_batch(
    follower: Partition,
) -> None:
    """The leader forgot with its records in which epoch they were, and could not tell us to cut."""
    take(follower, data(copied(0, b"a", epoch=3), copied(1, b"ours", epoch=3), high_watermark=1))
    theirs = copied(1, b"x", b"y", b"z")
    with pytest.raises(CorruptRecord):
        take(follower, data(theirs, high_watermark=4, start=1))
    assert take(follower, data(theirs, high_watermark=4, start=2)) is Taken.APPENDED
    log = follower.log
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (2, 4, 4)
    assert bytes_of(follower) == theirs
    assert [entry.epoch for entry in log.epochs] == [5]


def test_an_epoch_without_records_is_cut_too(follower: Partition) -> None:  # KAFKA-10706
    take(follower, data(copied(0, b"a", epoch=3)))
    lead(follower, BROKER, 6)
    assert follower.log.latest_epoch == 6
    lead(follower, LEADER, 7)
    assert cut_where_logs_part(follower, 3, 1) == 1
    assert follower.log.latest_epoch == 3


def test_an_epoch_that_is_not_ours_cuts_at_the_end_of_ours(follower: Partition) -> None:  # KIP-279
    take(follower, data(copied(0, b"a", epoch=1), copied(1, b"b", epoch=4)))
    assert cut_where_logs_part(follower, 3, 2) == 1


def test_an_error_says_what_to_do_and_no_more(follower: Partition) -> None:
    for code, taken in (
        (ErrorCode.OFFSET_OUT_OF_RANGE, Taken.OUT_OF_RANGE),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, Taken.FAILED),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Taken.FAILED),
    ):
        answer = data(copied(0, b"a"), high_watermark=1)
        answer.error_code = int(code)
        assert take(follower, answer) is taken
    assert follower.log.log_end_offset == 0


def test_an_empty_answer_keeps_the_position(follower: Partition) -> None:  # KAFKA-15510
    take(follower, data(copied(0, b"a")))
    before = position_of(follower)
    assert take(follower, data(high_watermark=1)) is Taken.NOTHING_NEW
    assert position_of(follower) == before
    assert follower.high_watermark == 1


def test_a_broken_batch_is_refused_and_nothing_is_appended(follower: Partition) -> None:
    broken = bytearray(copied(0, b"a"))
    broken[-1] ^= 1
    with pytest.raises(CorruptRecord):
        take(follower, data(bytes(broken)))
    with pytest.raises(CorruptRecord):
        take(follower, data(copied(0, b"a", epoch=6)))  # Of an epoch the leader cannot know.
    assert follower.log.log_end_offset == 0


def test_the_high_watermark_never_goes_back(follower: Partition) -> None:  # I10
    take(follower, data(copied(0, b"a", b"b"), high_watermark=2))
    lead(follower, OTHER, 6)
    take(follower, data(high_watermark=1))
    assert follower.high_watermark == 2


def test_outside_the_leaders_log_the_leader_decides(follower: Partition) -> None:
    take(follower, data(copied(0, b"a"), copied(1, b"b"), high_watermark=1))
    settle_out_of_range(follower, 0, 1)  # It ends before us.
    assert follower.log.log_end_offset == 1
    settle_out_of_range(follower, 7, 9)  # It begins behind us (KAFKA-9491: marks too).
    log = follower.log
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (7, 7, 7)
    take(follower, data(copied(6, b"c", b"d"), high_watermark=8, start=7))  # From within a batch.
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (7, 8, 8)
