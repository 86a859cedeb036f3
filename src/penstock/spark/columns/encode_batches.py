"""Rows that are sorted by partition to sealed record batches.

Batches are cut by bytes, encoded all in one go, then compressed and sealed one by one. Sequence
numbers run through all batches that one producer sends to a partition.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.client.values import TopicPartition
from penstock.client.wire.raw_produce import OutgoingBatch
from penstock.client.wire.transaction_control import ProducerIdAndEpoch
from penstock.errors import RecordTooLarge
from penstock.records.batch import HEADER_BYTES, TRANSACTIONAL, BatchHeader, seal
from penstock.records.compression import Codec, compress
from penstock.spark.columns.encode import Ints, encode_records, lengths

ROW_OVERHEAD_BYTES = 21  # What Kafka reckons for the varints around a key and a value.
_SEQUENCE_MASK = 0x7FFFFFFF
_NOBODY = ProducerIdAndEpoch(-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedRows:
    """Rows in the order in which they are sent; each run belongs to one partition."""

    keys: Any
    values: Any
    headers: Any | None  # As `encode_headers` gives them; None: no row has any.
    times_ms: Ints | None = None  # None: each batch has the time at which it is built.
    runs: Sequence[tuple[TopicPartition, int, int]]  # The partition, its first row and its end.


class BatchBuilder:
    """Builds what one producer sends: it counts the sequence numbers."""

    def __init__(
        self,
        *,
        batch_bytes: int,
        record_bytes_max: int,
        codec: Codec,
        level: int | None,
        identity: ProducerIdAndEpoch | None,  # None: no idempotence, so no sequence numbers.
        is_transactional: bool,
    ) -> None:
        self._batch_bytes = batch_bytes
        self._record_bytes_max = record_bytes_max
        self._codec = codec
        self._level = level
        self._identity = identity
        self._attributes = int(codec) | (TRANSACTIONAL if is_transactional else 0)
        self._next_sequence: dict[TopicPartition, int] = {}

    def build(self, rows: SortedRows) -> Iterator[OutgoingBatch]:
        """The batches of these rows, in order."""
        cuts = self._cut(rows)
        deltas = np.concatenate([np.arange(end - start) for _, start, end in cuts])
        times_ms = rows.times_ms
        since = None if times_ms is None else _since_first(times_ms, cuts)
        encoded = encode_records(rows.keys, rows.values, rows.headers, deltas, since)
        _, ends_buffer, data_buffer = encoded.buffers()
        ends = np.frombuffer(ends_buffer, dtype=np.int32)
        payload = memoryview(data_buffer)
        now_ms = int(time.time() * 1000)
        for at, start, end in cuts:
            records = payload[ends[start] : ends[end]]
            first_ms = last_ms = now_ms
            if times_ms is not None:
                first_ms, last_ms = int(times_ms[start]), int(times_ms[start:end].max())
            yield self._seal(at, records, end - start, first_ms, last_ms)

    def _cut(self, rows: SortedRows) -> list[tuple[TopicPartition, int, int]]:
        sizes = row_sizes(rows.keys, rows.values, rows.headers)
        self._refuse_giants(sizes)
        upto = np.concatenate(([0], np.cumsum(sizes)))
        cuts = []
        for at, start, run_end in rows.runs:
            while start < run_end:
                room = upto[start] + self._batch_bytes - HEADER_BYTES
                end = int(np.searchsorted(upto, room, side="right")) - 1
                end = min(max(end, start + 1), run_end)
                cuts.append((at, start, end))
                start = end
        return cuts

    def _refuse_giants(self, sizes: Ints) -> None:
        largest = int(sizes.max(initial=0)) + HEADER_BYTES
        if largest > self._record_bytes_max:
            raise RecordTooLarge(
                f"The message is {largest} bytes when serialized which is larger than "
                f"{self._record_bytes_max}, which is the value of the max.request.size "
                "configuration."
            )

    def _seal(
        self, at: TopicPartition, records: memoryview, count: int, first_ms: int, last_ms: int
    ) -> OutgoingBatch:
        identity, sequence = _NOBODY, -1
        if self._identity is not None:
            identity, sequence = self._identity, self._next_sequence.get(at, 0)
            self._next_sequence[at] = sequence + count & _SEQUENCE_MASK
        header = BatchHeader(
            base_offset=0,
            batch_length=0,
            leader_epoch=-1,
            magic=2,
            crc=0,
            attributes=self._attributes,
            last_offset_delta=count - 1,
            base_timestamp=first_ms,
            max_timestamp=last_ms,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=sequence,
            record_count=count,
        )
        payload = records
        if self._codec is not Codec.NONE:
            payload = memoryview(compress(self._codec, records, self._level))
        return OutgoingBatch(at, seal(header, payload))


def _since_first(times_ms: Ints, cuts: Sequence[tuple[TopicPartition, int, int]]) -> Ints:
    """Each row's time as it stands in its batch: counted from the batch's first."""
    firsts = [np.full(end - start, times_ms[start]) for _, start, end in cuts]
    since: Ints = times_ms - np.concatenate(firsts)
    return since


def row_sizes(keys: Any, values: Any, headers: Any | None) -> Ints:
    """About how many bytes each row takes in a batch, a little more rather than less."""
    sizes = lengths(keys) + lengths(values) + ROW_OVERHEAD_BYTES
    return sizes if headers is None else sizes + lengths(headers)


def no_keys(count: int) -> Any:
    """A key column for rows that have none."""
    return pa.nulls(count, pa.binary())
