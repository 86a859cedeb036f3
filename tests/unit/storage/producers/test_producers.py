"""Sequence numbers and transactions: who may write what, and what readers may see."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.storage.made import append, batch, fill, marker, new_log, read_values, reopened

from penstock.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    ProtocolError,
    TransactionCoordinatorFenced,
)
from penstock.records.batch import BatchHeader
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Appended, Log
from penstock.storage.producers.producers import ProducerTable, ProducerUpdate

SEQUENCE_MAX = 2**31 - 1


def send(log: Log, sequence: int, *, epoch: int = 0, count: int = 1, pid: int = 7) -> Appended:
    return append(log, batch([b"v"] * count, producer=(pid, epoch, sequence)))


def send_in_transaction(log: Log, sequence: int, *, epoch: int = 0, pid: int = 7) -> Appended:
    one = batch(producer=(pid, epoch, sequence), is_transactional=True)
    return log.append_as_leader([one], leader_epoch=0, now_ms=0)


def end(log: Log, pid: int = 7, *, epoch: int = 0, version: int = 0, **more: int) -> Appended:
    one = marker(pid, epoch, **more)  # type: ignore[arg-type]
    return log.append_as_leader(
        [one], leader_epoch=0, now_ms=0, verify_producer=False, transaction_version=version
    )


# Sequence numbers


def test_a_batch_sent_again_is_answered_with_its_first_offsets_and_not_stored(
    log_dir: Path,
) -> None:
    log = new_log(log_dir)
    first = send(log, 0, count=3)
    fill(log, 2)
    again = send(log, 0, count=3)
    assert again == first._replace(is_duplicate=True)
    assert log.log_end_offset == 5


def test_the_last_five_batches_are_known_and_no_older_one(log_dir: Path) -> None:
    log = new_log(log_dir)
    sent = [send(log, sequence) for sequence in range(7)]
    for sequence in range(2, 7):
        again = send(log, sequence)
        assert (again.base_offset, again.is_duplicate) == (sent[sequence].base_offset, True)
    for sequence in (0, 1):
        with pytest.raises(OutOfOrderSequence):
            send(log, sequence)


def test_a_duplicate_under_append_time_gets_its_first_time_back(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(message_timestamp_type="LogAppendTime"))
    one = ([b"v"], (7, 0, 0))
    append(log, batch(one[0], producer=one[1]), now_ms=100)
    again = append(log, batch(one[0], producer=one[1]), now_ms=200)
    assert (again.is_duplicate, again.log_append_ms) == (True, 100)


def test_a_gap_in_the_sequence_is_refused_and_nothing_is_stored(log_dir: Path) -> None:
    log = new_log(log_dir)
    send(log, 0)
    with pytest.raises(OutOfOrderSequence):
        send(log, 2)
    assert log.log_end_offset == 1
    send(log, 1)


def test_sequence_numbers_begin_again_after_the_largest(log_dir: Path) -> None:
    log = new_log(log_dir)
    send(log, SEQUENCE_MAX - 1, count=2)
    wrapped = send(log, 0, count=2)
    assert wrapped.base_offset == 2
    send(log, 2)
    over = batch([b"v"] * 4, producer=(8, 0, SEQUENCE_MAX - 1))
    append(log, over)
    again = append(log, batch([b"v"] * 4, producer=(8, 0, SEQUENCE_MAX - 1)))
    assert again.is_duplicate
    send(log, 2, pid=8)


def test_a_producer_nobody_knows_may_begin_anywhere(log_dir: Path) -> None:
    """Its records may have been deleted here, as with Apache Kafka since 2.4."""
    log = new_log(log_dir)
    send(log, 41)
    send(log, 42)


def test_a_new_epoch_begins_with_zero_and_fences_the_old(log_dir: Path) -> None:
    log = new_log(log_dir)
    send(log, 0)
    with pytest.raises(OutOfOrderSequence):
        send(log, 1, epoch=1)
    send(log, 0, epoch=1)
    with pytest.raises(InvalidProducerEpoch):
        send(log, 1, epoch=0)


def test_several_batches_of_a_producer_in_one_append_follow_each_other(log_dir: Path) -> None:
    log = new_log(log_dir)
    append(log, *[batch(producer=(7, 0, sequence)) for sequence in range(3)])
    with pytest.raises(OutOfOrderSequence):
        append(log, batch(producer=(7, 0, 3)), batch(producer=(7, 0, 5)))
    assert log.log_end_offset == 3
    send(log, 3)


class SequenceModel:
    """The rules for one producer, written down as plainly as possible."""

    def __init__(self) -> None:
        self.epoch = -1
        self.sent: list[tuple[int, int, int]] = []  # First sequence, count, offset.
        self.end = 0

    def send(self, epoch: int, sequence: int, count: int) -> int | None:
        """The offset, or None where the batch must be refused."""
        if epoch == self.epoch:
            for first, known, offset in self.sent[-5:]:
                if (first, known) == (sequence, count):
                    return offset
        if epoch < self.epoch:
            return None
        if self.epoch >= 0:
            wanted = 0
            if epoch == self.epoch:
                first, known, _ = self.sent[-1]
                wanted = (first + known) % 2**31
            if sequence != wanted:
                return None
        if epoch != self.epoch:
            self.sent = []
        self.epoch = epoch
        self.sent.append((sequence, count, self.end))
        self.end += count
        return self.end - count


@settings(max_examples=150, deadline=None)
@given(
    sends=st.lists(
        st.tuples(
            st.integers(0, 2),
            st.one_of(st.integers(0, 8), st.integers(SEQUENCE_MAX - 3, SEQUENCE_MAX)),
            st.integers(1, 3),
        ),
        max_size=40,
    )
)
def test_sequences_are_judged_as_the_model_does(sends: list[tuple[int, int, int]]) -> None:
    model, table = SequenceModel(), ProducerTable()
    for epoch, sequence, count in sends:
        expected = model.send(epoch, sequence, count)
        assert _judge(table, epoch, sequence, count) == expected


def _judge(table: ProducerTable, epoch: int, sequence: int, count: int) -> int | None:
    header = BatchHeader(0, 100, 0, 2, 0, 0, count - 1, 0, 0, 7, epoch, sequence, count)
    update = ProducerUpdate(table)
    known = update.duplicate_of(header)
    if known is not None:
        return known.first_offset
    offset = table.end_offset
    try:
        update.add(header, offset, 0, is_sequence_checked=True)
    except ProtocolError:
        return None
    update.apply(offset + count)
    return offset


# Transactions


def test_an_open_transaction_holds_back_readers_of_committed_records(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 2)
    send_in_transaction(log, 0)
    fill(log, 2)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 2
    end(log)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == log.log_end_offset == 6


def test_an_ended_transaction_holds_until_its_marker_is_replicated(log_dir: Path) -> None:
    log = new_log(log_dir)
    send_in_transaction(log, 0)
    end(log)
    fill_end = log.log_end_offset
    log.high_watermark = 1
    assert log.last_stable_offset == 0
    log.high_watermark = fill_end
    assert log.last_stable_offset == 2


def test_the_earliest_open_transaction_decides(log_dir: Path) -> None:
    log = new_log(log_dir)
    send_in_transaction(log, 0, pid=1)
    send_in_transaction(log, 0, pid=2)
    end(log, 1)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 1
    end(log, 2)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 4


def test_aborted_transactions_are_listed_for_what_is_read(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(segment_bytes=400))
    send_in_transaction(log, 0, pid=1)
    send_in_transaction(log, 0, pid=2)
    send_in_transaction(log, 0, pid=3)
    end(log, 1, is_commit=False)
    end(log, 2, is_commit=True)
    fill(log, 5)
    end(log, 3, is_commit=False)
    log.high_watermark = log.log_end_offset
    assert log.aborted_transactions(0, 100) == [(1, 0, 3, 1), (3, 2, 10, 11)]
    assert log.aborted_transactions(4, 100) == [(3, 2, 10, 11)]
    assert log.aborted_transactions(0, 2) == [(1, 0, 3, 1)]
    assert log.aborted_transactions(11, 100) == []
    recovered = reopened(log)
    assert recovered.aborted_transactions(0, 100) == [(1, 0, 3, 1), (3, 2, 10, 11)]


def test_a_marker_of_an_older_coordinator_is_refused(log_dir: Path) -> None:
    log = new_log(log_dir)
    send_in_transaction(log, 0)
    end(log, coordinator_epoch=5)
    send_in_transaction(log, 1)
    with pytest.raises(TransactionCoordinatorFenced):
        end(log, coordinator_epoch=4)
    assert log.log_end_offset == 3
    end(log, coordinator_epoch=5)


def test_a_marker_of_an_older_epoch_is_refused(log_dir: Path) -> None:
    log = new_log(log_dir)
    send_in_transaction(log, 0, epoch=2)
    with pytest.raises(InvalidProducerEpoch):
        end(log, epoch=1)
    end(log, epoch=3)
    with pytest.raises(InvalidProducerEpoch):
        send_in_transaction(log, 1, epoch=2)


def test_a_marker_of_transaction_version_two_brings_a_new_epoch(log_dir: Path) -> None:
    log = new_log(log_dir)
    send_in_transaction(log, 0)
    with pytest.raises(InvalidProducerEpoch):
        end(log, epoch=0, version=2)
    end(log, epoch=1, version=2)
    end(log, epoch=1, version=2)  # The coordinator may not have seen our answer.
    send_in_transaction(log, 0, epoch=1)


def test_a_plain_batch_inside_an_open_transaction_is_refused(log_dir: Path) -> None:
    log = new_log(log_dir)
    send_in_transaction(log, 0)
    with pytest.raises(InvalidTxnState):
        send(log, 1)


def test_truncation_brings_back_the_producers_of_that_point(log_dir: Path) -> None:
    log = new_log(log_dir)
    for sequence in range(6):
        send(log, sequence)
    send_in_transaction(log, 0, pid=9)
    end(log, 9, is_commit=False)
    log.truncate_to(7)
    assert [entry.last_sequence for entry in log.producers()] == [5, 0]
    assert log.producers()[1].open_since == 6
    assert log.aborted_transactions(0, 100) == []
    log.truncate_to(3)
    assert [(e.producer_id, e.last_sequence) for e in log.producers()] == [(7, 2)]
    assert send(log, 2).is_duplicate
    send(log, 3)


def test_a_retry_after_a_kill_is_still_recognised_behind_a_roll(log_dir: Path) -> None:
    """The snapshot of the roll knows one batch only, and a producer may retry five."""
    log = new_log(log_dir)
    for sequence in range(4):
        send(log, sequence)
    log.roll(now_ms=0)
    send(log, 4)
    recovered = reopened(log)
    for sequence in range(5):
        assert send(recovered, sequence).is_duplicate


def test_after_a_clean_restart_the_last_batch_is_known(log_dir: Path) -> None:
    log = new_log(log_dir)
    for sequence in range(3):
        send(log, sequence)
    send_in_transaction(log, 0, pid=9)
    log = reopened(log, clean=True)
    log.high_watermark = log.log_end_offset
    assert send(log, 2).is_duplicate
    assert log.last_stable_offset == 3
    end(log, 9)
    send(log, 3)


def test_idle_producers_are_forgotten_unless_a_transaction_is_open(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(producer_id_expiration_ms=100))
    send(log, 0, pid=7)
    send_in_transaction(log, 0, pid=8)
    assert log.remove_expired_producers(1_099) == 0
    assert log.remove_expired_producers(1_100) == 1
    assert [entry.producer_id for entry in log.producers()] == [8]
    send(log, 17, pid=7)


def test_a_snapshot_is_taken_at_each_roll_and_goes_with_its_segment(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(retention_ms=1))
    for sequence in range(3):
        send(log, sequence)
        log.roll(now_ms=0)
    names = sorted(path.name for path in log.dir.glob("*.snapshot"))
    assert names == [f"{offset:020d}.snapshot" for offset in (1, 2, 3)]
    log.high_watermark = 2
    log.retain(now_ms=10**9)
    names = sorted(path.name for path in log.dir.glob("*.snapshot"))
    assert names == [f"{offset:020d}.snapshot" for offset in (2, 3)]


def test_followers_learn_the_same_producers_as_their_leader(log_dir: Path) -> None:
    leader = new_log(log_dir, name="leader-0")
    for sequence in range(3):
        send(leader, sequence)
    send_in_transaction(leader, 0, pid=9)
    end(leader, 9, is_commit=False)
    send_in_transaction(leader, 1, pid=9)
    follower = new_log(log_dir, name="follower-0")
    from tests.unit.storage.made import read_batches

    follower.append_as_follower(read_batches(leader), now_ms=0)
    assert follower.producers() == leader.producers()
    assert follower.aborted_transactions(0, 99) == leader.aborted_transactions(0, 99)
    assert read_values(follower) == read_values(leader)
