"""The aborted transactions of a log, read from the index files of its segments as they are needed.

A transaction's entry lies with its marker, which may be segments behind its records; all indexes
from a segment on are asked until everything before its end is known to be decided.
"""

from collections.abc import Iterator
from pathlib import Path

from penstock.storage.compaction.job import CleanJob, SegmentFacts
from penstock.storage.segments import transaction_index
from penstock.storage.segments.transaction_index import AbortedTransaction, TransactionIndex


class AbortedTransactions:
    """Those of one job; each is told once, in the segment where it begins."""

    def __init__(self, job: CleanJob) -> None:
        here = [(facts.base_offset, facts.aborted_count) for facts in job.segments]
        self._indexes = [
            (base_offset, _index(Path(job.directory), base_offset, count))
            for base_offset, count in (*here, *job.later_aborted)
            if count
        ]

    def beginning_in(self, facts: SegmentFacts) -> list[AbortedTransaction]:
        """Those whose first offset lies in a segment."""
        start, end = facts.base_offset, facts.end_offset
        return [e for e in self._decided_from(start, end) if start <= e.first_offset < end]

    def going_on_in(self, facts: SegmentFacts, from_offset: int) -> list[AbortedTransaction]:
        """Those with records from an offset of a segment up to its end, begun there or before."""
        end = facts.end_offset
        return [
            entry
            for entry in self._decided_from(facts.base_offset, end)
            if entry.last_offset >= from_offset and entry.first_offset < end
        ]

    def _decided_from(self, start: int, end: int) -> Iterator[AbortedTransaction]:
        for base_offset, index in self._indexes:
            if base_offset < start:
                continue
            for entry in index.entries():
                yield entry
                if entry.last_stable_offset >= end:
                    return


def _index(directory: Path, base_offset: int, count: int) -> TransactionIndex:
    path = directory / f"{base_offset:020d}{transaction_index.SUFFIX}"
    return TransactionIndex(str(path), count=count)
