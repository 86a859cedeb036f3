"""One job of compaction from beginning to end: survey, then rewrite group by group.

The survey is in survey.py. Here a group of segments becomes one, with less in it. Small neighbours
are put together, as far as a segment may be large. A segment on its own of which everything stays
is left alone: nothing is written before the first batch that changes.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.records.batch import BatchHeader, read_header
from penstock.storage.compaction.aborted import AbortedTransactions
from penstock.storage.compaction.batch_filter import BatchFilter
from penstock.storage.compaction.job import CleanJob, SegmentFacts
from penstock.storage.compaction.output import CleanedSegment
from penstock.storage.compaction.survey import Spend, Survey, survey
from penstock.storage.segments.batch_scan import verified_batches
from penstock.storage.segments.file_slice import LogFile
from penstock.storage.segments.segment import INT_MAX

# All who read or write the log wait while the files of a group are renamed.
SEGMENTS_AT_ONCE: Final = 50

Group = Sequence[SegmentFacts]
# Told of finished segments and of those whose place they take, both by their base offsets;
# returns when they are in place.
HandOver = Callable[[list[int], list[int]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was done."""

    end_offset: int  # Before this everything is clean; below the job's if the map was full.
    key_count: int
    map_share: float
    written_bytes: int
    survey_s: float
    total_s: float


def clean(job: CleanJob, *, spend: Spend, hand_over: HandOver) -> Outcome:
    """Clean as far as one map of keys reaches.

    Groups follow each other: what a tombstone deletes is gone before the tombstone itself goes.
    """
    started_s = time.monotonic()
    found = survey(job, spend)
    surveyed_s = time.monotonic()
    rewriting = Rewriting(job, found, spend)
    for group in rewriting.groups():
        new = rewriting.rewrite(group)
        if new:
            hand_over([facts.base_offset for facts in group], new)
    return Outcome(
        end_offset=found.end_offset,
        key_count=found.offsets.size,
        map_share=found.offsets.used_bytes / job.map_bytes,
        written_bytes=rewriting.written_bytes,
        survey_s=surveyed_s - started_s,
        total_s=time.monotonic() - started_s,
    )


def grouped(
    segments: Sequence[SegmentFacts], *, bytes_max: int, index_bytes_max: int
) -> list[list[SegmentFacts]]:
    """Neighbours that together are no larger than one segment may be, and not too many."""
    groups: list[list[SegmentFacts]] = []
    for facts in segments:
        if groups and _fits([*groups[-1], facts], bytes_max, index_bytes_max):
            groups[-1].append(facts)
        else:
            groups.append([facts])
    return groups


def _fits(group: Group, bytes_max: int, index_bytes_max: int) -> bool:
    return (
        len(group) <= SEGMENTS_AT_ONCE
        and sum(facts.size for facts in group) <= bytes_max
        and sum(facts.index_bytes for facts in group) <= index_bytes_max
        and sum(facts.time_index_bytes for facts in group) <= index_bytes_max
        and group[-1].end_offset - 1 - group[0].base_offset <= INT_MAX
    )


class Rewriting:
    """All groups of one job, in the order of the log; `written_bytes` counts what came out."""

    def __init__(self, job: CleanJob, survey: Survey, spend: Spend) -> None:
        self.written_bytes = 0
        self._job = job
        self._survey = survey
        self._spend = spend
        self._aborted = AbortedTransactions(job)
        self._filter = BatchFilter(job, survey)
        self._is_first = True
        self._outputs: list[CleanedSegment] = []
        self._modified_ms = 0

    def groups(self) -> list[list[SegmentFacts]]:
        """What is to be rewritten; segments that the survey did not reach are not."""
        job, end_offset = self._job, self._survey.end_offset
        reached = [facts for facts in job.segments if facts.base_offset < end_offset]
        return grouped(
            reached, bytes_max=job.segment_bytes, index_bytes_max=job.segment_index_bytes
        )

    def rewrite(self, group: Group) -> list[int]:
        """The base offsets of the segments that take the group's place; none: it stays."""
        self._outputs = []
        self._modified_ms = group[-1].modified_ms
        try:
            if len(group) > 1:
                self._begin(group[0].base_offset)
            for facts in group:
                self._rewrite_segment(facts)
            self._keep_index(group)
            self._finish()
        except BaseException:
            for output in self._outputs:
                output.drop()
            raise
        return [output.base_offset for output in self._outputs]

    def _rewrite_segment(self, facts: SegmentFacts) -> None:
        transactions = self._filter.transactions
        if self._is_first:
            transactions.expect(self._aborted.going_on_in(facts, facts.base_offset))
            self._is_first = False
        else:
            transactions.expect(self._aborted.beginning_in(facts))
        if not self._outputs and self._survey.is_untouched(facts):
            return
        self._filter.enter(facts)
        file = LogFile(self._job.log_path(facts), os.O_RDONLY)
        for position, header, batch in self._batches(file, facts.size):
            kept = self._filter.filter(header, batch)
            if kept is not batch and not self._outputs:
                self._begin(facts.base_offset)
                self._copy(file, position)
            if self._outputs and kept is not None:
                self._add(header if kept is batch else read_header(kept), kept)

    def _batches(self, file: LogFile, end: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        for found in verified_batches(file, 0, end, buffer_bytes=self._job.io_bytes):
            self._spend(len(found[2]))
            yield found

    def _copy(self, file: LogFile, end: int) -> None:
        """The beginning of a segment, in which nothing changed."""
        for _, header, batch in self._batches(file, end):
            self._add(header, batch)

    def _keep_index(self, group: Group) -> None:
        """A segment whose batches all stay may still have lost aborted transactions."""
        if not self._outputs and len(self._filter.transactions.aborted) != group[0].aborted_count:
            if self._survey.is_untouched(group[0]):
                return
            self._begin(group[0].base_offset)
            self._copy(LogFile(self._job.log_path(group[0]), os.O_RDONLY), group[0].size)

    def _begin(self, base_offset: int) -> None:
        self._outputs.append(CleanedSegment(self._job, base_offset))

    def _add(self, header: BatchHeader, batch: memoryview | bytearray) -> None:
        if not self._outputs[-1].has_room(header):
            self._finish()
            self._begin(header.base_offset)
        self._outputs[-1].add(header, batch)
        self.written_bytes += len(batch)
        self._spend(len(batch))

    def _finish(self) -> None:
        """Make the last segment whole; its index gets the transactions aborted in it."""
        aborted, self._filter.transactions.aborted = self._filter.transactions.aborted, []
        if self._outputs:
            self._outputs[-1].finish(aborted, modified_ms=self._modified_ms)
