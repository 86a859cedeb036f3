"""What a follower does with one partition of its leader's answer, in the only safe order.

1.  Led by another by now, in another epoch, or at another offset than was asked from: ignored.
2.  An error: nothing is done but what the error asks for.
3.  The logs part: cut ours, and nothing else. No mark of that answer counts (KAFKA-14704).
4.  Check the batches and append them as they are.
5.  The high watermark is the leader's, as far as we have the records.
6.  The log begins no earlier than the leader's.

The fetch position is always the end of the log and the epoch of its last record, so that an answer
without records changes neither.
"""

from enum import Enum, auto
from typing import NamedTuple

from penstock.errors import CorruptRecord, ErrorCode
from penstock.protocol.messages.fetch import PartitionData
from penstock.records.batch import BatchHeader, split_batches
from penstock.replica.partition import Partition

NO_EPOCH = -1


class Position(NamedTuple):
    """What a fetch says of our log, and under which leader."""

    leader: int
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class Taken(Enum):
    """What an answer did."""

    APPENDED = auto()
    NOTHING_NEW = auto()
    CUT = auto()  # Ask again from the new end: the logs may still differ below it.
    IGNORED = auto()  # It answers a fetch that does not count any more.
    OUT_OF_RANGE = auto()  # The leader must be asked where its log begins and ends.
    FAILED = auto()  # Ask again after a pause.


def position_of(partition: Partition) -> Position:
    log = partition.log
    return Position(
        partition.leader,
        partition.leader_epoch,
        log.log_end_offset,
        log.latest_epoch,
        log.log_start_offset,
    )


def is_current(partition: Partition, asked: Position) -> bool:
    """Whether the answer still counts: same leader, same epoch, same end of our log."""
    return (
        not partition.is_leader
        and partition.leader == asked.leader
        and partition.leader_epoch == asked.leader_epoch
        and partition.log.log_end_offset == asked.fetch_offset
    )


def take_answer(
    partition: Partition, asked: Position, data: PartitionData, *, now_ms: int
) -> Taken:
    """Take on what the leader answered; raises CorruptRecord and KafkaStorage."""
    if not is_current(partition, asked):
        return Taken.IGNORED
    if data.error_code != ErrorCode.NONE:
        is_outside = data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        return Taken.OUT_OF_RANGE if is_outside else Taken.FAILED
    diverging = data.diverging_epoch
    if diverging.end_offset >= 0:
        end = cut_where_logs_part(partition, diverging.epoch, diverging.end_offset)
        if end <= data.log_start_offset:
            # What is left of ours the leader has deleted, or never had: nobody could tell which,
            # should the note of where the log starts be lost.
            partition.log.truncate_fully_and_start_at(data.log_start_offset)
        return Taken.CUT
    has_records = bool(data.records)
    if has_records:
        append_from_leader(
            partition,
            memoryview(data.records),
            leader_start_offset=data.log_start_offset,
            now_ms=now_ms,
        )
    partition.follow_high_watermark(data.high_watermark)
    follow_log_start(partition, data.log_start_offset)
    return Taken.APPENDED if has_records else Taken.NOTHING_NEW


def append_from_leader(
    partition: Partition, records: memoryview, *, leader_start_offset: int, now_ms: int
) -> None:
    log = partition.log
    end_offset = log.log_end_offset
    batches = split_batches(records)
    while batches and batches[0][0].last_offset < end_offset:  # The leader sends whole batches.
        records = records[len(batches.pop(0)[1]) :]
    if not batches:
        return
    if batches[-1][0].leader_epoch > partition.leader_epoch:
        # The answer left the leader's files after its time: they are another leader's copy by now.
        raise CorruptRecord(
            f"a batch of leader epoch {batches[-1][0].leader_epoch} came from the leader of "
            f"epoch {partition.leader_epoch}"
        )
    first = batches[0][0]
    if first.base_offset < end_offset:
        _begin_within(partition, first, leader_start_offset)
    log.append_as_follower(batches, now_ms=now_ms, together=records)


def _begin_within(partition: Partition, first: BatchHeader, leader_start_offset: int) -> None:
    """DeleteRecords may let the leader's log begin in the middle of a batch; so does ours then.

    Whatever we have below that counts no more, and need not be what the leader had there: it
    forgets its epochs with its records, and cannot tell us where our logs part.
    """
    log = partition.log
    if max(log.log_start_offset, leader_start_offset) < log.log_end_offset:
        raise CorruptRecord(
            f"a batch of [{first.base_offset}, {first.last_offset}] came for the end of {log!r}"
        )
    log.truncate_fully_and_start_at(first.base_offset)


def follow_log_start(partition: Partition, leader_start_offset: int) -> None:
    log = partition.log
    start = min(leader_start_offset, log.high_watermark)
    if start > log.log_start_offset:
        log.delete_records_before(start)


def cut_where_logs_part(partition: Partition, leader_epoch: int, leader_end_offset: int) -> int:
    """Forget what the leader does not have; the new end. There may be more to cut below it.

    The leader named the largest epoch it knows up to our last one, and where that ends. Epochs are
    cut even where the log ends already (KAFKA-10706), or we would ask the same again.
    """
    log = partition.log
    end = min(leader_end_offset, log.log_end_offset)
    if leader_epoch != NO_EPOCH:
        _, own_end = log.epoch_end_offset(leader_epoch)
        if own_end >= 0:
            end = min(end, own_end)
    log.truncate_to(end)
    return end


def settle_out_of_range(partition: Partition, leader_start: int, leader_end: int) -> None:
    """Our end is outside the leader's log: go to where it can be continued from.

    Only a leader that was elected without certainty has less than we do; then its log is the truth.
    """
    log = partition.log
    if leader_end < log.log_end_offset:
        log.truncate_to(leader_end)
    elif leader_start > log.log_end_offset:
        log.truncate_fully_and_start_at(leader_start)
