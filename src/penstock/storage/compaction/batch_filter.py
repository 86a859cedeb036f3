"""The second half of compaction, for one batch: it stays, goes, or becomes a smaller one.

What is kept follows Apache Kafka. A record stays if it is the newest of its key; a tombstone stays
until the delete horizon, which the first cleaning that meets it writes into its batch (KIP-534);
so does a marker, counted from when nothing of its transaction is left. Records without a key and
records of aborted transactions go. A batch without records stays, empty, if it is the last of a
living producer, whose sequence number it holds, or the last of what is cleaned.

Offsets, timestamps, sequence numbers and leader epochs never change. Records that stay are copied
as bytes; only a batch that gets its delete horizon is encoded anew, because the horizon takes the
place of the timestamp that all others count from.
"""

from collections.abc import Mapping

from penstock.records.batch import (
    MAGIC,
    BatchHeader,
    build_batch,
    emptied_batch,
    read_payload,
    read_records,
    seal,
)
from penstock.records.compression import DECOMPRESSED_BYTES_MAX, Codec, compress
from penstock.records.record import Record
from penstock.storage.compaction.job import CleanJob, SegmentFacts
from penstock.storage.compaction.legacy import filter_legacy
from penstock.storage.compaction.scan import scan_keys, splice
from penstock.storage.compaction.survey import Survey
from penstock.storage.compaction.transactions import CleanedTransactions

Kept = memoryview | bytearray | None  # The batch itself: as it is. None: nothing.


class BatchFilter:
    """Asked for every batch of the segments that are cleaned, in the order of the log."""

    def __init__(self, job: CleanJob, survey: Survey) -> None:
        self.transactions = CleanedTransactions()
        self._survey = survey
        self._now_ms = job.now_ms
        self._horizon_ms = job.now_ms + job.delete_retention_ms
        self._end_offset = job.end_offset
        self._producers = {pid: (last, epoch) for pid, last, epoch in job.producers}
        self._levels: Mapping[str, int] = job.levels
        self._legacy_horizon_ms = _legacy_horizon_ms(job)
        self._keeps_legacy_tombstones = True

    def enter(self, facts: SegmentFacts) -> None:
        """The batches that come next are of this segment."""
        self._keeps_legacy_tombstones = facts.modified_ms > self._legacy_horizon_ms

    def filter(self, header: BatchHeader, batch: memoryview) -> Kept:
        """What to write in the place of a batch."""
        if header.magic < MAGIC:
            return filter_legacy(header, batch, self._legacy_verdicts)
        if header.is_control:
            return self._filter_control(header, batch)
        if self.transactions.is_aborted(header) or not header.record_count:
            return self._without_records(header, batch)
        if header.base_offset >= self._survey.end_offset:
            return batch  # For a later round.
        return self._filter_data(header, batch)

    # Control batches

    def _filter_control(self, header: BatchHeader, batch: memoryview) -> Kept:
        is_spent = self.transactions.is_spent(header, batch)
        if not header.record_count:
            return self._without_records(header, batch)
        if not is_spent:
            return batch
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is None:
            return self._with_horizon(header, list(read_records(batch)))
        # Kept whole, where an empty batch would not tell a recovery the epoch of the producer.
        return batch if self._now_ms < horizon_ms or self._is_needed(header) else None

    # Batches of data

    def _filter_data(self, header: BatchHeader, batch: memoryview) -> Kept:
        survey = self._survey
        if header.base_offset < survey.first_dirty or header.next_offset > survey.end_offset:
            return self._filter_by_keys(header, batch)
        keeps_tombstones = self._keeps_tombstones(header)
        newest_count, tombstone_count = survey.fate_counts(header)
        kept_count = newest_count + (tombstone_count if keeps_tombstones else 0)
        if not kept_count:
            return self._without_records(header, batch)
        needs_horizon = bool(tombstone_count) and not header.has_delete_horizon
        if kept_count == header.record_count and not needs_horizon:
            return batch
        kept = survey.kept_offsets(header, keeps_tombstones=keeps_tombstones)
        return self._rebuilt(header, batch, _payload(header, batch), kept, needs_horizon)

    def _filter_by_keys(self, header: BatchHeader, batch: memoryview) -> Kept:
        """A batch of the clean section, or one that lies across an end of the dirty one."""
        payload = _payload(header, batch)
        keys = scan_keys(payload, record_count=header.record_count, base_offset=header.base_offset)
        newest = self._survey.offsets.newest(keys.keys)
        is_whole = len(newest) == header.record_count and not keys.tombstones
        if is_whole and newest and max(newest) < 0:
            return batch  # No key was seen again: so it is nearly always.
        kept = {at for at, found in zip(keys.offsets, newest, strict=True) if at >= found}
        if not self._keeps_tombstones(header):
            kept.difference_update(keys.tombstones)
        # A tombstone goes with a round that knows it: only then what it deletes is gone.
        kept.update(range(self._survey.end_offset, header.next_offset))
        needs_horizon = not header.has_delete_horizon and not kept.isdisjoint(keys.tombstones)
        return self._rebuilt(header, batch, payload, kept, needs_horizon)

    def _keeps_tombstones(self, header: BatchHeader) -> bool:
        horizon_ms = header.delete_horizon_ms
        return horizon_ms is None or self._now_ms < horizon_ms

    def _rebuilt(
        self,
        header: BatchHeader,
        batch: memoryview,
        payload: bytes,
        kept: set[int],
        needs_horizon: bool,
    ) -> Kept:
        if needs_horizon:
            return self._with_horizon(header, [r for r in read_records(batch) if r.offset in kept])
        spliced = splice(
            payload,
            kept,
            record_count=header.record_count,
            base_offset=header.base_offset,
            base_timestamp=header.base_timestamp,
        )
        if spliced.record_count == header.record_count:
            return batch
        if not spliced.record_count:
            return self._without_records(header, batch)
        codec, max_timestamp = header.codec, header.max_timestamp
        if not header.is_log_append_time and max_timestamp > spliced.max_timestamp:
            max_timestamp = spliced.max_timestamp
        return seal(
            header._replace(max_timestamp=max_timestamp, record_count=spliced.record_count),
            compress(codec, spliced.payload, level=self._level(codec)),
        )

    def _with_horizon(self, header: BatchHeader, records: list[Record]) -> bytearray:
        """The batch, counted from when its tombstones or its marker may go."""
        return build_batch(
            records,
            base_offset=header.base_offset,
            codec=header.codec,
            level=self._level(header.codec),
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            leader_epoch=header.leader_epoch,
            is_transactional=header.is_transactional,
            is_control=header.is_control,
            append_time_ms=header.max_timestamp if header.is_log_append_time else None,
            last_offset_delta=header.last_offset_delta,
            delete_horizon_ms=self._horizon_ms,
        )

    def _level(self, codec: Codec) -> int | None:
        return self._levels.get(codec.name.lower())

    # Batches without records

    def _without_records(self, header: BatchHeader, batch: memoryview) -> Kept:
        if not self._is_needed(header):
            return None
        return emptied_batch(header) if header.record_count else batch

    def _is_needed(self, header: BatchHeader) -> bool:
        """Whether a producer, or the end of what is cleaned, would be lost with the batch."""
        if header.next_offset == self._end_offset:
            return True
        known = self._producers.get(header.producer_id)
        if header.producer_id < 0 or known is None:
            return False
        last_offset, epoch = known
        if last_offset >= 0:
            return header.last_offset == last_offset
        # Nothing but its marker tells the epoch below which the producer is fenced off.
        return header.is_control and header.producer_epoch == epoch

    # Old formats

    def _legacy_verdicts(self, records: list[Record]) -> list[bool]:
        newest = self._survey.offsets.newest([record.key or b"" for record in records])
        return [
            record.offset >= self._survey.end_offset
            or (
                record.key is not None
                and record.offset >= found
                and (record.value is not None or self._keeps_legacy_tombstones)
            )
            for record, found in zip(records, newest, strict=True)
        ]


def _payload(header: BatchHeader, batch: memoryview) -> bytes:
    return read_payload(header, batch, bytes_max=DECOMPRESSED_BYTES_MAX)


def _legacy_horizon_ms(job: CleanJob) -> int:
    """Old formats cannot hold a horizon: theirs is the age of what was cleaned before."""
    clean = [facts for facts in job.segments if facts.base_offset < job.first_dirty]
    return clean[-1].modified_ms - job.delete_retention_ms if clean else 0
