"""The rows of one task, from Arrow batches to a producer.

Rows are gathered until a good deal of bytes is together, then spread over partitions, encoded and
sent while the next ones are gathered. Order within a partition is kept.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.client.values import TopicPartition
from penstock.client.wire.raw_produce import RawProducer
from penstock.errors import InvalidRecord
from penstock.spark.columns.encode import encode_headers
from penstock.spark.columns.encode_batches import BatchBuilder, SortedRows, no_keys, row_sizes
from penstock.spark.columns.encode_partitions import RowPartitioner, as_binary
from penstock.spark.sink.schema import RecordColumns
from penstock.spark.sink.settings import SinkSettings

_CHUNK_BYTES_MAX = 8 * 1024 * 1024  # Larger ones leave the processor's caches and gain nothing.


@dataclass(slots=True)
class _Gathered:
    batches: list[Any] = field(default_factory=list)
    size_bytes: int = 0
    since_s: float = 0.0


class RowSender:
    """Sends rows of one schema to their topics."""

    def __init__(
        self,
        producer: RawProducer,
        builder: BatchBuilder,
        settings: SinkSettings,
        columns: RecordColumns,
        topic: str | None,
    ) -> None:
        self._producer = producer
        self._builder = builder
        self._columns = columns
        self._topic = topic
        self._linger_s = None if settings.linger_ms is None else settings.linger_ms / 1000
        # One chunk is being gathered, one encoded and one sent.
        self._chunk_bytes = min(max(settings.buffer_bytes // 3, 1), _CHUNK_BYTES_MAX)
        self._partitioner = RowPartitioner(
            batch_bytes=settings.batch_bytes,
            ignore_keys=settings.ignore_keys,
            round_robin=settings.round_robin,
        )
        self.row_count = 0
        self.a_topic: str | None = None  # One of those written to; None: none yet.

    def send_all(self, batches: Iterable[Any]) -> None:
        """Send every row and wait until all are stored."""
        gathered = _Gathered()
        for batch in batches:
            for piece in self._pieces(batch):
                gathered = self._gather(gathered, piece)
        self._send(gathered)
        self._producer.flush()

    def _pieces(self, batch: Any) -> Iterator[Any]:
        """A batch in parts that are not much larger than a chunk."""
        parts = max(1, -(-batch.nbytes // self._chunk_bytes))
        step = max(1, -(-batch.num_rows // parts))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)

    def _gather(self, gathered: _Gathered, piece: Any) -> _Gathered:
        now_s = time.monotonic()
        if not gathered.batches:
            gathered.since_s = now_s
        gathered.batches.append(piece)
        gathered.size_bytes += piece.nbytes
        is_late = self._linger_s is not None and now_s - gathered.since_s >= self._linger_s
        if gathered.size_bytes < self._chunk_bytes and not is_late:
            return gathered
        self._send(gathered)
        return _Gathered()

    def _send(self, gathered: _Gathered) -> None:
        if not gathered.batches:
            return
        table = pa.Table.from_batches(gathered.batches).combine_chunks()
        self.row_count += table.num_rows
        self._producer.submit(self._builder.build(self._sorted(table)))

    def _sorted(self, table: Any) -> SortedRows:
        """The rows by topic and partition, in the order in which they came."""
        columns = self._columns
        values = as_binary(_column(table, columns.value))
        keys = no_keys(table.num_rows)
        if columns.key is not None:
            keys = as_binary(_column(table, columns.key))
        headers = None
        if columns.headers is not None:
            headers = encode_headers(_column(table, columns.headers))
        times = self._times(table)
        places, topics = self._places(table, keys, row_sizes(keys, values, headers))
        names, firsts = zip(*topics, strict=True)
        if places.min() != places.max():
            order = np.argsort(places, kind="stable")
            places = places[order]
            indices = pa.array(order)
            keys, values = keys.take(indices), values.take(indices)
            headers = None if headers is None else headers.take(indices)
            times = None if times is None else times[order]
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        ends = [*starts[1:].tolist(), len(places)]
        runs = []
        for start, end in zip(starts.tolist(), ends, strict=True):
            place = int(places[start])
            topic = int(np.searchsorted(firsts, place, side="right")) - 1
            runs.append((TopicPartition(names[topic], place - firsts[topic]), start, end))
        return SortedRows(keys=keys, values=values, headers=headers, runs=runs, times_ms=times)

    def _times(self, table: Any) -> Any | None:
        """The rows' own timestamps; None where they have none."""
        if self._columns.timestamp is None:
            return None
        times = _column(table, self._columns.timestamp)
        if times.null_count or (len(times) and pc.min(times).as_py() < 0):
            raise InvalidRecord("a record's timestamp must be 0 or more milliseconds, not NULL.")
        return np.asarray(times).astype(np.int64, copy=False)

    def _places(self, table: Any, keys: Any, sizes: Any) -> tuple[Any, list[tuple[str, int]]]:
        """For each row a number that stands for topic and partition; each topic's first number."""
        given = self._columns.partition
        partitions = None if given is None else _column(table, given)
        if self._topic is not None:
            count = self._producer.partition_count(self._topic)
            self.a_topic = self._topic
            chosen = self._partitioner.choose(
                self._topic, count, keys=keys, given=partitions, row_bytes=sizes
            )
            return chosen, [(self._topic, 0)]
        assert self._columns.topic is not None
        encoded = _column(table, self._columns.topic).dictionary_encode()
        if encoded.null_count:
            raise InvalidRecord(
                "null topic present in the data. Use the topic option for setting a default topic."
            )
        names = encoded.dictionary.to_pylist()
        self.a_topic = self.a_topic or names[0]
        places = np.zeros(table.num_rows, dtype=np.int64)
        topics, first = [], 0
        for number, name in enumerate(names):
            rows = np.flatnonzero(np.asarray(encoded.indices) == number)
            count = self._producer.partition_count(name)
            its = pa.array(rows)
            places[rows] = first + self._partitioner.choose(
                name,
                count,
                keys=keys.take(its),
                given=None if partitions is None else partitions.take(its),
                row_bytes=sizes[rows],
            )
            topics.append((name, first))
            first += count
        return places, topics


def _column(table: Any, index: int) -> Any:
    """A column in one piece."""
    column = table.column(index)
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pc.cast([], column.type)
