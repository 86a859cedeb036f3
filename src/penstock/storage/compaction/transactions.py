"""Which transactions compaction has seen data of, as it goes through a log from start to end.

Records of aborted transactions go. A marker goes only when nothing of its transaction is left in
front of it, so that no reader takes up records whose fate it cannot learn (KAFKA-14055); markers
therefore never pass through the map of keys. What is fed to this must come in the order of
offsets, and may go on over many segments.
"""

from collections import deque
from collections.abc import Iterable

from penstock.records.batch import BatchHeader, read_records
from penstock.records.control import ControlType, read_marker
from penstock.storage.segments.transaction_index import AbortedTransaction


class CleanedTransactions:
    """`aborted` are the entries that the index of the segment being made still needs."""

    def __init__(self) -> None:
        self.aborted: list[AbortedTransaction] = []
        self._coming: deque[AbortedTransaction] = deque()  # By first offset.
        self._aborting: dict[int, AbortedTransaction] = {}  # By producer, between begin and end.
        self._seen: set[int] = set()  # Of those, the producers with data left in the log.
        self._committing: set[int] = set()  # Producers with data of a transaction that stays.

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Transactions that were aborted in what comes next; each is told once."""
        coming = [*self._coming, *aborted]
        self._coming = deque(sorted(coming, key=lambda entry: entry.first_offset))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Take in a batch of data; whether its records never became visible."""
        if self._coming:
            self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        entry = self._aborting.get(header.producer_id)
        # Behind its marker nothing is of the transaction, even if the marker is gone.
        if entry is not None and header.base_offset <= entry.last_offset:
            self._seen.add(header.producer_id)
            return True
        self._committing.add(header.producer_id)
        return False

    def is_spent(self, header: BatchHeader, batch: memoryview) -> bool:
        """Take in a control batch; whether nothing is left that its marker would decide."""
        self._begin_up_to(header.last_offset)
        if not header.record_count:
            return True
        marker = read_marker(next(iter(read_records(batch))))
        if marker is None:
            return False  # A kind this version does not know is not this version's to remove.
        producer_id = header.producer_id
        if marker.type is ControlType.COMMIT:
            is_spent = producer_id not in self._committing
            self._committing.discard(producer_id)
            return is_spent
        return self._is_abort_spent(producer_id)

    def _is_abort_spent(self, producer_id: int) -> bool:
        entry = self._aborting.pop(producer_id, None)
        has_data = producer_id in self._seen or producer_id in self._committing
        self._seen.discard(producer_id)
        self._committing.discard(producer_id)
        if entry is not None and has_data:
            self.aborted.append(entry)
        return not has_data

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            entry = self._coming.popleft()
            self._aborting[entry.producer_id] = entry
            self._seen.discard(entry.producer_id)
