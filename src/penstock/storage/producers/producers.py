"""What a partition remembers of its producers, and the rules a batch of theirs must keep.

Idempotence: a producer numbers its records, and the last five batches of each producer are known,
so a batch sent twice is recognised and one that skips a number is refused. Transactions: a
producer's first transactional batch opens one, a marker ends it. Both follow from the log alone;
`ProducerTable` is a function of the batches below its `end_offset`. Which files keep it over a
restart is `kept.py`.

An append first gathers a `ProducerUpdate`, which refuses what breaks the rules, and applies it only
once the bytes are written, so that a failed write changes nothing here.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from penstock.records.batch import CONTROL, TRANSACTIONAL, BatchHeader, read_records
from penstock.records.control import ControlType, EndTransactionMarker, read_marker
from penstock.storage.segments.transaction_index import AbortedTransaction

BATCHES_KEPT: Final = 5
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
_SEQUENCE_MASK: Final = 0x7FFFFFFF


class SequencedBatch(NamedTuple):
    """One batch of a producer: its last sequence number and offset, and how many came before."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return self.last_sequence - self.offset_delta & _SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry(NamedTuple):
    """All that is known of one producer in one partition."""

    producer_id: int
    producer_epoch: int  # -1: nothing but the id is known.
    coordinator_epoch: int  # -1: no marker was written yet.
    last_timestamp: int
    open_since: int | None  # First offset of the open transaction; None: none is open.
    batches: tuple[SequencedBatch, ...]  # Of this epoch, oldest first, at most five.

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class CompletedTransaction(NamedTuple):
    """A transaction from its first batch to its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerTable:
    """Every producer of a partition, and the transactions that hold readers back."""

    __slots__ = ("completed", "end_offset", "entries", "open")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.open: dict[int, int] = {}  # First offset -> producer id, in the order of offsets.
        self.completed: dict[int, int] = {}  # First -> last offset; see `first_unstable`.
        self.end_offset = 0

    def load(self, entries: Iterable[ProducerEntry], end_offset: int) -> None:
        """Begin with the entries of a snapshot."""
        self.entries = {entry.producer_id: entry for entry in entries}
        opened = ((e.open_since, e.producer_id) for e in self.entries.values())
        self.open = dict(sorted((since, pid) for since, pid in opened if since is not None))
        self.completed = {}
        self.end_offset = end_offset

    def first_unstable(self, high_watermark: int) -> int | None:
        """The first offset whose fate is open, or decided by a marker not yet replicated."""
        first = next(iter(self.open), None)
        for first_offset, last_offset in self.completed.items():
            if last_offset >= high_watermark and (first is None or first_offset < first):
                first = first_offset
        return first

    def forget_completed(self, high_watermark: int) -> None:
        """Drop the completed transactions whose marker every reader may see."""
        done = [first for first, last in self.completed.items() if last < high_watermark]
        for first in done:
            del self.completed[first]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers idle for long, never one with an open transaction."""
        expired = [pid for pid, e in self.entries.items() if is_expired(e, now_ms, expiration_ms)]
        for pid in expired:
            del self.entries[pid]
        return len(expired)

    def replay(self, header: BatchHeader, batch: memoryview | None) -> list[AbortedTransaction]:
        """Take in a batch that is in the log already; the body is read of control batches only."""
        if header.producer_id < 0:
            self.end_offset = header.next_offset
            return []
        update = ProducerUpdate(self, is_replay=True)
        if header.is_control:
            update.add_control(header, batch, header.base_offset)
        else:
            update.add(header, header.base_offset, header.max_timestamp)
        update.apply(header.next_offset)
        return update.aborted


def is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    return entry.open_since is None and now_ms - entry.last_timestamp >= expiration_ms


class ProducerUpdate:
    """What one append changes, held back until its bytes are written."""

    __slots__ = ("_completed", "_entries", "_is_replay", "_opened", "_table", "aborted")

    def __init__(self, table: ProducerTable, *, is_replay: bool = False) -> None:
        self._table = table
        self._is_replay = is_replay  # The leader checked already: refuse nothing.
        self._entries: dict[int, ProducerEntry] = {}
        self._opened: dict[int, int] = {}
        self._completed: list[CompletedTransaction] = []
        self.aborted: list[AbortedTransaction] = []

    def duplicate_of(self, header: BatchHeader) -> SequencedBatch | None:
        """The batch in the log that this one repeats."""
        entry = self._table.entries.get(header.producer_id)
        if entry is None or entry.producer_epoch != header.producer_epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for known in entry.batches:
            if known.last_sequence == last and known.first_sequence == first:
                return known
        return None

    def add(
        self,
        header: BatchHeader,
        base_offset: int,
        timestamp: int,
        *,
        is_sequence_checked: bool = False,
    ) -> None:
        """A batch of data; coordinators write without sequence numbers."""
        producer_id, epoch = header.producer_id, header.producer_epoch
        entry = self._current(producer_id)
        if not self._is_replay:
            _check_epoch(entry, epoch, base_offset)
            if is_sequence_checked:
                _check_sequence(entry, header, base_offset)
        delta = header.last_offset_delta
        batch = SequencedBatch(header.last_sequence, base_offset + delta, delta, timestamp)
        kept = entry.batches if epoch == entry.producer_epoch else ()
        self._entries[producer_id] = ProducerEntry(
            producer_id,
            epoch,
            entry.coordinator_epoch,
            timestamp,
            self._open_since(entry, header, base_offset),
            (*kept, batch)[-BATCHES_KEPT:],
        )

    def _open_since(self, entry: ProducerEntry, header: BatchHeader, offset: int) -> int | None:
        is_transactional = header.attributes & TRANSACTIONAL
        if entry.open_since is not None:
            if not is_transactional and not self._is_replay:
                raise InvalidTxnState(
                    f"producer {entry.producer_id} has a transaction open since offset "
                    f"{entry.open_since} and sent a batch outside of it"
                )
            return entry.open_since
        if not is_transactional:
            return None
        self._opened[offset] = entry.producer_id
        return offset

    def add_control(
        self,
        header: BatchHeader,
        batch: memoryview | None,
        offset: int,
        *,
        transaction_version: int = 0,
    ) -> None:
        """A marker, which ends the producer's transaction; other control records change nothing."""
        marker = _marker(header, batch)
        if marker is None:
            return
        entry = self._current(header.producer_id)
        if not self._is_replay:
            _check_marker_epoch(entry, header.producer_epoch, offset, transaction_version)
            _check_coordinator(entry, marker, offset)
        if entry.open_since is not None:
            is_aborted = marker.type is ControlType.ABORT
            self._complete(
                CompletedTransaction(entry.producer_id, entry.open_since, offset, is_aborted)
            )
        kept = entry.batches if header.producer_epoch == entry.producer_epoch else ()
        self._entries[header.producer_id] = ProducerEntry(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            header.max_timestamp,
            None,
            kept,
        )

    def _complete(self, done: CompletedTransaction) -> None:
        self._completed.append(done)
        if done.is_aborted:
            stable = self._first_open_besides(done)
            self.aborted.append(
                AbortedTransaction(
                    done.producer_id,
                    done.first_offset,
                    done.last_offset,
                    done.last_offset + 1 if stable is None else stable,
                )
            )

    def _first_open_besides(self, done: CompletedTransaction) -> int | None:
        ended = {transaction.first_offset for transaction in self._completed}
        for opened in (self._table.open, self._opened):
            for first_offset, producer_id in opened.items():
                if producer_id != done.producer_id and first_offset not in ended:
                    return first_offset
        return None

    def apply(self, end_offset: int, high_watermark: int | None = None) -> None:
        """The bytes are in the log; None: no high watermark is known while replaying."""
        table = self._table
        table.entries.update(self._entries)
        table.end_offset = end_offset
        if self._opened:
            table.open.update(self._opened)
        if self._completed:
            for done in self._completed:
                table.open.pop(done.first_offset, None)
                table.completed[done.first_offset] = done.last_offset
            if high_watermark is not None:
                table.forget_completed(high_watermark)

    def _current(self, producer_id: int) -> ProducerEntry:
        entry = self._entries.get(producer_id) or self._table.entries.get(producer_id)
        if entry is None:
            return ProducerEntry(producer_id, NO_EPOCH, NO_EPOCH, -1, None, ())
        return entry


def _check_epoch(entry: ProducerEntry, epoch: int, offset: int) -> None:
    if epoch < entry.producer_epoch:
        raise InvalidProducerEpoch(
            f"producer {entry.producer_id} wrote with epoch {epoch} at offset {offset}; "
            f"its epoch is {entry.producer_epoch} by now"
        )


def _check_sequence(entry: ProducerEntry, header: BatchHeader, offset: int) -> None:
    """The next number, or 0 with a new epoch; any number from a producer not known here."""
    if entry.producer_epoch == NO_EPOCH:
        return
    wanted = 0
    if header.producer_epoch == entry.producer_epoch:
        wanted = entry.last_sequence + 1 & _SEQUENCE_MASK
    if header.base_sequence != wanted:
        raise OutOfOrderSequence(
            f"producer {entry.producer_id} sent sequence number {header.base_sequence} for offset "
            f"{offset} where {wanted} comes next (epoch {header.producer_epoch})"
        )


def _check_marker_epoch(
    entry: ProducerEntry, epoch: int, offset: int, transaction_version: int
) -> None:
    """From transaction version 2 on a marker has a new epoch (KIP-890), or is a known one again."""
    _check_epoch(entry, epoch, offset)
    if transaction_version >= 2 and epoch == entry.producer_epoch and entry.open_since is not None:
        raise InvalidProducerEpoch(
            f"a marker for producer {entry.producer_id} has epoch {epoch}, which its transaction "
            f"at offset {entry.open_since} still uses"
        )


def _check_coordinator(entry: ProducerEntry, marker: EndTransactionMarker, offset: int) -> None:
    if marker.coordinator_epoch < entry.coordinator_epoch:
        raise TransactionCoordinatorFenced(
            f"a coordinator of epoch {marker.coordinator_epoch} wrote a marker for producer "
            f"{entry.producer_id} at offset {offset}; epoch {entry.coordinator_epoch} did already"
        )


def _marker(header: BatchHeader, batch: memoryview | None) -> EndTransactionMarker | None:
    """The marker in a control batch; None: compaction took it, or it is of another kind."""
    if not header.record_count or batch is None or not header.attributes & CONTROL:
        return None
    return read_marker(next(iter(read_records(batch))))
