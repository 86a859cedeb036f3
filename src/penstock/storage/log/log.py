"""One partition's log: a row of segments, the last of which takes appends.

The log knows offsets and bytes. Leadership, in-sync replicas and waiting belong to
`replica/partition.py`, so all of this runs in a temporary directory without an event loop. What it
puts together lives beside it: `segment` (bytes and indexes), `recovery` (opening), `producers`
(sequence numbers and transactions), `leader_epochs`, `retention`.

An append is a write to the page cache; `flush` brings it to the disk and moves the recovery point.
One lock lets appends, reads and the chores of other threads take turns; it is never held over an
fsync, except where `flush.messages` asks for one within the append.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

from penstock.errors import (
    InconsistentTopicId,
    KafkaStorage,
    OffsetOutOfRange,
    RecordBatchTooLarge,
)
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.checkpoints import read_topic_id, write_topic_id
from penstock.storage.directories.disk_room import DiskRoom, is_no_room
from penstock.storage.directories.names import DELETE, STRAY, leaving_name, parse_log_name
from penstock.storage.log.appending import (
    Append,
    Appended,
    Batches,
    gather_as_follower,
    gather_as_leader,
)
from penstock.storage.log.config import LONG_MAX, LogConfig
from penstock.storage.log.flushing import carry_out, gather, settle
from penstock.storage.log.leader_epochs import EpochStart
from penstock.storage.log.recovery import Loading, load_log, reindex
from penstock.storage.log.refused_batches import RefusedBatches
from penstock.storage.log.removal import DeletedSegment, leave, retain
from penstock.storage.log.rolling import roll, split_at_rolls
from penstock.storage.log.state import LogState
from penstock.storage.log.swap import swap
from penstock.storage.log.time_search import TimedBatch, TimedSegment
from penstock.storage.log.truncation import restart_at, truncate_to
from penstock.storage.producers.producers import ProducerEntry, SequencedBatch
from penstock.storage.segments.file_slice import EMPTY
from penstock.storage.segments.files import has_records
from penstock.storage.segments.row import SegmentRow
from penstock.storage.segments.segment import INT_MAX, CorruptIndex, ReadResult, Segment
from penstock.storage.segments.transaction_index import AbortedTransaction

__all__ = [
    "AbortedTransaction",
    "Appended",
    "DeletedSegment",
    "Log",
    "ReadResult",
    "TopicPartition",
]

Found = TypeVar("Found")

_ANOTHERS: Final = "{} belongs to another topic of the same name"


class Log(LogState):
    """The log of one partition on one broker."""

    def __init__(
        self,
        directory: Path,
        topic_partition: TopicPartition,
        topic_id: bytes,
        loading: Loading,
    ) -> None:
        super().__init__(load_log(loading), loading.report)
        self.dir = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.room = DiskRoom(directory.parent)
        self._lock = Lock()
        self._refused = RefusedBatches()
        self._unflushed_since_ms = loading.now_ms
        self.is_closed = False  # True: flushed to its end, and nothing came after.
        self.reconfigure(loading.config)

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        config: LogConfig,
        now_ms: int,
        clean: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        topic_id: bytes | None = None,  # None: whatever the directory says.
        report: Callable[[str], None],
    ) -> "Log":
        """Open the log of a partition's directory, which exists; see `recovery.py`."""
        topic_partition = parse_log_name(directory.name)
        if topic_partition is None:
            raise ValueError(f"{directory.name} is not the name of a partition's directory")
        known_id = read_topic_id(directory)
        if known_id is None and topic_id is not None:
            # The first flush of the log brings this to the disk, too. If the log has records but no
            # recovery point, that flush may be over already; then the file is flushed now.
            is_old = recovery_point == 0 and has_records(directory)
            write_topic_id(directory, topic_id, is_synced=is_old)
            known_id = topic_id
        if topic_id is not None and known_id != topic_id:
            raise InconsistentTopicId(_ANOTHERS.format(directory))
        loading = Loading(
            directory=directory,
            config=config,
            now_ms=now_ms,
            is_clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            report=report,
        )
        return cls(directory, topic_partition, known_id or bytes(16), loading)

    def check_topic(self, topic_id: bytes) -> None:
        """Raise InconsistentTopicId if the log is of an older topic of the name."""
        if self.topic_id != topic_id:
            raise InconsistentTopicId(_ANOTHERS.format(self.dir))

    def __repr__(self) -> str:
        return f"Log({self.dir}, [{self.log_start_offset}, {self.log_end_offset}))"

    def reconfigure(self, config: LogConfig) -> None:
        """Settings of the topic changed; segments that exist keep their index sizes."""
        self.config = config
        self._is_append_time = config.is_append_time

    # Appending

    def append_as_leader(
        self,
        batches: Batches,
        *,
        leader_epoch: int,
        now_ms: int,
        verify_producer: bool = True,
        transaction_version: int = 0,
    ) -> Appended:
        """Give batches their offsets and write them, all or none; they are stamped in place.

        Length, magic and CRC are checked already. Coordinators write without sequence numbers
        (`verify_producer=False`); from transaction version 2 on, markers bring a new epoch.
        """
        with self._lock:
            if self.failure is not None:
                self.health()
            if self._refused.awaited:
                self._refused.check(batches)
            config = self.config
            append = Append(self.log_end_offset, self.producer_state.table)
            append_ms = now_ms if self._is_append_time else None
            gather_as_leader(
                append,
                batches,
                leader_epoch=leader_epoch,
                append_ms=append_ms,
                bytes_max=config.max_message_bytes,
                verify_producer=verify_producer,
                transaction_version=transaction_version,
            )
            if append.duplicate is not None:
                return self._duplicate(append.duplicate)
            if append.size > config.segment_bytes:
                raise RecordBatchTooLarge(
                    f"{append.size} bytes do not fit a segment of {config.segment_bytes}"
                )
            if leader_epoch > self.epoch_history.latest:
                append.epochs.append((leader_epoch, append.first_offset))
            try:
                self._write(append, now_ms)
            except KafkaStorage:
                self._refused.note(batches)
                raise
            return Appended(
                append.first_offset, append.next_offset - 1, append_ms, self.log_start_offset
            )

    def append_as_follower(
        self, batches: Batches, *, now_ms: int, together: memoryview | None = None
    ) -> Appended:
        """Write batches whose offsets the leader gave; those written before a failure stay.

        `together` is the memory they lie in one after the other, where they do: one large write
        costs less than many small ones.
        """
        with self._lock:
            self.health()
            first_offset = batches[0][0].base_offset if batches else self.log_end_offset
            at = 0
            for some in split_at_rolls(self, batches, now_ms):
                append = Append(self.log_end_offset, self.producer_state.table)
                gather_as_follower(append, some, self.epoch_history.latest)
                if together is not None:
                    append.buffers = [together[at : at + append.size]]
                    at += append.size
                self._write(append, now_ms)
            return Appended(first_offset, self.log_end_offset - 1, None, self.log_start_offset)

    def _duplicate(self, known: SequencedBatch) -> Appended:
        return Appended(
            known.first_offset,
            known.last_offset,
            known.timestamp if self._is_append_time else None,
            self.log_start_offset,
            is_duplicate=True,
        )

    def _write(self, append: Append, now_ms: int) -> None:
        """Write an append into the right segment; a failure leaves everything as it was."""
        if not append.buffers:
            return
        epochs, update = self.epoch_history, append.update
        known_epochs = epochs.entries
        segment = self.row.active
        aborted_count = segment.transactions.count
        last_offset = append.next_offset - 1
        if self.room.is_full:
            self.room.check(self.topic_partition, append.size)
        try:
            if segment.must_roll(
                append.size, last_offset, append.largest_timestamp, now_ms, self.config
            ):
                segment = roll(self, self._next_base(append), now_ms)
                aborted_count = 0
            for epoch, start_offset in append.epochs:
                epochs.assign(epoch, start_offset, is_synced=False)  # The batches say it too.
            if update is not None and update.aborted:
                segment.transactions.append(update.aborted)
            segment.append(append.buffers, append.size, append.placed)
        except OSError as error:
            self._undo(segment, aborted_count, known_epochs)
            if is_no_room(error):
                raise self.room.refuse(self.topic_partition, append.size) from error
            raise self.refusal("cannot be written", error) from error
        self._note_append(append, now_ms)

    def _next_base(self, append: Append) -> int:
        """The name of the next segment; recovery takes a gap in front of it for lost records."""
        end_offset = self._end_of_records()
        is_too_far = append.next_offset - 1 - end_offset > INT_MAX
        return append.first_offset if is_too_far else end_offset

    def _end_of_records(self) -> int:
        """The offset after the last record, which can lie before the log's end.

        A truncation can end the log amid offsets without records. The next segment is named after
        the last record's end, so that recovery sees no hole between the two. Compaction leaves
        such holes on purpose: there the name is the log's end, which is known from it later.
        """
        if self.config.is_compacted:
            return self.log_end_offset
        return self._find(lambda _: self.row.active.next_offset())

    def _undo(self, segment: Segment, aborted_count: int, epochs: tuple[EpochStart, ...]) -> None:
        self.epoch_history.restore(epochs)
        with suppress(OSError):
            segment.transactions.truncate(aborted_count)

    def _note_append(self, append: Append, now_ms: int) -> None:
        if self.recovery_point == self.log_end_offset:
            self._unflushed_since_ms = now_ms
        end_offset = self.log_end_offset = append.next_offset
        if append.update is not None:
            append.update.apply(end_offset, self.high_watermark)
        else:
            append.table.end_offset = end_offset
        if end_offset - self.recovery_point >= self.config.flush_messages:
            self._flush_now()

    # Rolling

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless the active one is empty."""
        with self._lock, self._storage_errors():
            if self.row.active.size:
                base_offset = self._end_of_records()
                self.room.with_room(lambda: roll(self, base_offset, now_ms))

    # Reading

    def read(self, offset: int, *, bytes_max: int, end_offset: int, min_one: bool) -> ReadResult:
        """Whole batches of one segment from `offset` on, none of `end_offset` or above.

        At most `bytes_max`, except that a first batch larger than that comes with `min_one`.
        """
        with self._lock:
            log_end_offset = self.log_end_offset
            if not self.log_start_offset <= offset <= log_end_offset:
                raise OffsetOutOfRange(
                    f"offset {offset} is outside [{self.log_start_offset}, {log_end_offset}]"
                )
            end_offset = min(end_offset, log_end_offset)
            if offset >= end_offset:
                return ReadResult(EMPTY, offset)
            return self._find(
                lambda row: row.read(
                    offset,
                    bytes_max=bytes_max,
                    end_offset=end_offset,
                    log_end_offset=log_end_offset,
                    min_one=min_one,
                )
            )

    def batch_as_new_as(self, timestamp: int, from_offset: int) -> TimedBatch | None:
        """The first batch from an offset on that says to be as new as a timestamp."""
        with self._lock:
            return self._find(lambda row: row.batch_as_new_as(timestamp, from_offset))

    def segment_newer_than(self, timestamp: int, from_offset: int) -> TimedSegment | None:
        """The first segment from an offset on that says to be newer than a timestamp."""
        with self._lock:
            end = self.log_end_offset
            return self._find(lambda row: row.segment_newer_than(timestamp, from_offset, end))

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from `start` up to before `end`."""
        with self._lock:
            return self._find(lambda row: row.aborted_transactions(start, end))

    def _find(self, look: Callable[[SegmentRow], Found]) -> Found:
        """Look something up; an index that proves wrong is built anew, and asked again."""
        try:
            try:
                return look(self.row)
            except CorruptIndex as error:
                self.report(f"{error}; they are built anew")
                reindex(error.segment)
                if error.segment is not self.row.active:
                    error.segment.close_for_append()
                return look(self.row)
        except OSError as error:
            raise KafkaStorage(f"{self.topic_partition} cannot be read: {error}") from error

    @property
    def last_stable_offset(self) -> int:
        """The last stable offset: readers of committed records stop before open transactions."""
        table = self.producer_state.table
        high_watermark = self.high_watermark
        if not table.open and not table.completed:
            return high_watermark
        unstable = table.first_unstable(high_watermark)
        if unstable is None:
            return high_watermark
        return min(max(unstable, self.log_start_offset), high_watermark)

    @property
    def size_bytes(self) -> int:
        return self.row.size_bytes

    @property
    def active_size_bytes(self) -> int:
        return self.row.active.size

    def segment_marks(self) -> list[tuple[int, int]]:
        """Where each segment begins, and when its file was last written."""
        return [(segment.base_offset, segment.modified_ms()) for segment in self.row]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments in order, the active one last; for the cleaner and for tools."""
        return self.row.segments

    # Leader epochs

    @property
    def latest_epoch(self) -> int:
        return self.epoch_history.latest

    @property
    def earliest_epoch(self) -> int:
        return self.epoch_history.earliest

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        return self.epoch_history.entries

    def epoch_of(self, offset: int) -> int:
        """The leader epoch an offset was written in; -1: not known."""
        return self.epoch_history.epoch_of(offset)

    def epoch_start_offset(self, epoch: int) -> int:
        """Where a leader epoch began; the log's end, if it wrote nothing yet."""
        return self.epoch_history.start_of(epoch, self.log_end_offset)

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and where it ends; (-1, -1): unknown here."""
        return self.epoch_history.end_of(epoch, self.log_end_offset)

    def assign_epoch_start(self, epoch: int, offset: int, *, is_synced: bool = True) -> None:
        """Note that a leader of this epoch writes from this offset on; flushed if `is_synced`."""
        with self._lock, self._storage_errors():
            self.room.with_room(
                lambda: self.epoch_history.assign(epoch, offset, is_synced=is_synced)
            )

    # Producers

    def producers(self) -> list[ProducerEntry]:
        """What is known of every producer, for DescribeProducers."""
        return list(self.producer_state.table.entries.values())

    def remove_expired_producers(self, now_ms: int) -> int:
        """Forget producers that were idle too long; how many."""
        with self._lock:
            table = self.producer_state.table
            return table.remove_expired(now_ms, self.config.producer_id_expiration_ms)

    # Flushing

    def is_flush_due(self, now_ms: int) -> bool:
        """Whether records wait longer than `flush.ms` allows."""
        waits = self.log_end_offset > self.recovery_point
        return waits and now_ms - self._unflushed_since_ms >= self.config.flush_ms

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether closed segments wait for `flush(closed_only=True)`; a roll leaves that to you."""
        return self.recovery_point < self.row.active.base_offset

    def flush(self, *, closed_only: bool = False) -> None:
        """Bring records to the disk; may run in another thread while appends go on."""
        with self._lock, self._storage_errors():
            self.health()
            work = self.room.with_room(lambda: gather(self, closed_only=closed_only))
        carry_out(self, work)
        with self._lock:
            settle(self, work)

    def _flush_now(self) -> None:
        """With the lock held: nothing may come in between."""
        with self._storage_errors():
            work = self.room.with_room(lambda: gather(self, closed_only=False))
        carry_out(self, work)
        settle(self, work)

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.refusal("cannot be changed", error) from error

    # Truncating

    def truncate_to(self, offset: int) -> None:
        """Forget everything from an offset on, as a follower does that parted from its leader."""
        with self._lock, self._storage_errors():
            self.health()
            self._find(lambda _: self.room.with_room(lambda: truncate_to(self, offset)))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget everything and go on at another offset."""
        with self._lock, self._storage_errors():
            self.health()
            self.room.with_room(lambda: restart_at(self, offset))

    # Deleting

    def delete_records_before(self, offset: int) -> None:
        """Records before the offset are gone for readers; their files go with retention."""
        with self._lock, self._storage_errors():
            self.health()
            if not 0 <= offset <= self.high_watermark:
                raise OffsetOutOfRange(
                    f"records can be deleted up to {self.high_watermark}, not to {offset}"
                )
            if offset > self.log_start_offset:
                self.room.with_room(lambda: self.starts_at(offset))

    def retain(self, now_ms: int, *, count_max: int | None = None) -> list[DeletedSegment]:
        """Take out the segments that are too old, too many, or before the log's start.

        With `count_max` only so many of them: everybody waits while they are renamed.
        """
        with self._lock, self._storage_errors():
            if self.failure is not None:
                return []
            take_out = partial(retain, self, now_ms, count_max=count_max)
            return self._find(lambda _: self.room.with_room(take_out))

    def delete_expired_files(self, now_ms: int, *, count_max: int | None = None) -> int:
        """Remove the files of deleted segments whose delay is over; how many.

        On a full disk none is granted: whoever holds a slice of a file keeps it open anyway.
        """
        if not self.doomed:
            return 0
        with self._lock:
            due_ms = LONG_MAX if self.room.is_full else now_ms
            return self.doomed.remove_due(due_ms, count_max=count_max)

    def give_back_reserved(self) -> None:
        """Free the blocks that were reserved for appends and not written: the disk is full."""
        with self._lock, self._storage_errors():
            if self.failure is None:
                self.row.active.give_back_reserved()

    # Replacing, for the cleaner

    def replace_segments(
        self, new: Sequence[Segment], old: Sequence[Segment], *, now_ms: int
    ) -> bool:
        """Put cleaned segments (`.cleaned`, closed) in the place of others; see `swap.py`."""
        with self._storage_errors():
            due_ms = now_ms + self.config.file_delete_delay_ms
            return swap(self, self._lock, new, old, due_ms=due_ms)

    # Closing

    def close(self) -> None:
        """Flush everything and let the files go; the next start need not read the log."""
        with self._lock:
            if self.failure is not None:
                return
            with self._storage_errors():
                self.room.with_room(self._finish_files)
            self._flush_now()
            self.is_closed = True
            self.failure = "it was closed"

    def _finish_files(self) -> None:
        self.row.active.close_for_append()
        self.producer_state.table.end_offset = self.log_end_offset
        if self.log_end_offset > self.log_start_offset:  # An empty log has no producers.
            self.producer_state.take_snapshot()

    def rename_for_delete(self) -> Path:
        """Give the directory a name that says it is deleted; the log takes nothing any more."""
        with self._lock, self._storage_errors():
            name = leaving_name(self.topic_partition, DELETE)
            self.room.with_room(lambda: leave(self, self.dir.with_name(name)))
            self.failure = "it was deleted"
            return self.dir

    def set_aside(self) -> Path:
        """Give the directory a name that says no topic owns it; the log takes nothing any more."""
        with self._lock, self._storage_errors():
            with suppress(OSError):
                self.row.active.close_for_append()  # It may stay for long: no space is reserved.
            name = leaving_name(self.topic_partition, STRAY)
            self.room.with_room(lambda: leave(self, self.dir.with_name(name)))
            self.failure = "it belongs to no topic"
            return self.dir
