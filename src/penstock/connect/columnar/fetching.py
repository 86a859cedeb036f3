"""A sink's partitions read as bytes: shared out by its group, fetched and decoded as columns.

The consumer is a member of the group, keeps positions and commits, and has all its partitions
paused, so librdkafka fetches nothing. Fetches are our own, one partition at a time.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from penstock.client.consumer.consumer import Consumer
from penstock.client.consumer.rebalance import RebalanceListener
from penstock.client.errors import ClientError, NoOffsetForPartitionError
from penstock.client.headers import record_headers
from penstock.client.values import ConsumerRecord, OffsetAndMetadata, TopicPartition
from penstock.client.wire.raw_cluster import cluster_for, whole_number
from penstock.client.wire.raw_fetch import Fetched, OffsetGone, PartitionFetcher, TopicGone
from penstock.connect.errors.kinds import ConnectError
from penstock.errors import CorruptRecord
from penstock.spark.columns.arrow_records import FetchDecoder
from penstock.spark.columns.batch_walk import Damaged, offset_after

log = logging.getLogger("penstock.connect")
_CONNECTION = ("bootstrap.servers", "client.id", "request.timeout.ms", "retry.backoff.ms")
_SECURITY = ("security.", "ssl.", "sasl.")
_FETCH_BYTES = 4 * 1024 * 1024
_POLL_BYTES = 16 * 1024 * 1024  # Of one poll, all partitions together.
_FETCH_S = 0.5  # A broker that is away is asked again by the next poll, so commands are heard.
_IDLE_S_MIN, _IDLE_S_MAX = 0.02, 0.5
_FAST = ("value", "offset")
_ALL = ("key", "value", "offset", "timestamp", "timestampType", "headers")
_TIME_TYPES = ("CreateTime", "LogAppendTime")


class SinkListener(RebalanceListener, Protocol):
    """A listener that also wants to know of losses."""

    def on_partitions_lost(self, partitions: Sequence[TopicPartition], /) -> None:
        """Others have them already."""


class OffsetsAndValues(NamedTuple):
    """Some rows of a fetch."""

    offsets: Any  # A numpy array.
    values: Any  # An Arrow array of bytes.


@dataclass(frozen=True, kw_only=True)
class PartitionRows:
    """What one fetch brought of a partition."""

    at: TopicPartition
    start: int
    fetched: Fetched

    def columns(self) -> Iterator[OffsetsAndValues]:
        """Offsets and values; ConnectError for a batch that cannot be read."""
        for batch in self._decoded(_FAST):
            yield OffsetsAndValues(np.asarray(batch.column(1)), batch.column(0))

    def records(self, first: int, last: int) -> "list[ConsumerRecord[bytes, bytes]]":
        """The records with offsets from one to another, both included, one by one."""
        rows = (row for batch in self._decoded(_ALL) for row in batch.to_pylist())
        return [self._record(row) for row in rows if first <= row["offset"] <= last]

    def _decoded(self, columns: Sequence[str]) -> Iterator[Any]:
        decoder = FetchDecoder(self.at.topic, self.at.partition, columns)
        try:
            found = decoder.decode(
                self.fetched.records, start=self.start, aborted=self.fetched.aborted
            )
            for batch in found.batches:
                if isinstance(batch, Damaged):
                    raise ConnectError(self._unreadable(batch.span.base_offset, batch.reason))
                if batch.num_rows:
                    yield batch
        except CorruptRecord as error:
            raise ConnectError(self._unreadable(self.start, str(error))) from error

    def _unreadable(self, offset: int, reason: str) -> str:
        return f"{self.at.topic}-{self.at.partition} cannot be read at offset {offset}: {reason}"

    def _record(self, row: Mapping[str, Any]) -> "ConsumerRecord[bytes, bytes]":
        return ConsumerRecord(
            topic=self.at.topic,
            partition=self.at.partition,
            offset=row["offset"],
            timestamp_ms=round(row["timestamp"].timestamp() * 1000),
            timestamp_type=_TIME_TYPES[row["timestampType"]],
            key=row["key"],
            value=row["value"],
            headers=record_headers([(one["key"], one["value"]) for one in row["headers"]]),
        )


class ColumnReader:
    """A consumer for the loop of a columnar sink: what it polls are fetches."""

    def __init__(self, consumer: "Consumer[bytes, bytes]", settings: Mapping[str, str]) -> None:
        self._consumer = consumer
        self._settings = settings
        self._cluster = cluster_for(
            {k: v for k, v in settings.items() if k in _CONNECTION or k.startswith(_SECURITY)}
        )
        # What our consumer does where nothing is said.
        isolation = settings.get("isolation.level", "read_committed")
        self._is_committed = isolation.strip().lower() == "read_committed"
        self._fetch_bytes = max(
            1, whole_number(settings, "max.partition.fetch.bytes", _FETCH_BYTES)
        )
        self._listener: SinkListener | None = None
        self._fetchers: dict[TopicPartition, PartitionFetcher] = {}
        self._next: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._turn: list[TopicPartition] = []
        self._idle_s = 0.0

    def subscribe(self, topics: "Sequence[str] | re.Pattern[str]", listener: SinkListener) -> None:
        """Share topics with the members of the group."""
        self._listener = listener
        self._consumer.subscribe(topics, self)

    def poll(self, timeout_s: float = 0.0) -> list[PartitionRows]:
        """What is new in the partitions, each in its turn; waits a little where nothing was."""
        self._consumer.poll(min(self._idle_s, timeout_s))
        found: list[PartitionRows] = []
        size = 0
        for at in self._in_turn():
            rows = self._fetch(at)
            if rows is not None:
                found.append(rows)
                size += len(rows.fetched.records)
            if size >= _POLL_BYTES:
                break
        grown_s = min(max(2 * self._idle_s, _IDLE_S_MIN), _IDLE_S_MAX)
        self._idle_s = 0.0 if found else grown_s
        return found

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions it has."""
        return self._consumer.assignment()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return nothing of these until resumed."""
        self._paused.update(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return them again."""
        self._paused.difference_update(partitions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read this record next."""
        self._next[partition] = offset

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit for the group, and wait for the coordinator's word."""
        self._consumer.commit(offsets)

    def close(self) -> None:
        """Leave the group and the brokers."""
        self._consumer.close()
        self._forget(list(self._fetchers))
        self._cluster.close()

    # A RebalanceListener, called inside poll -----------------------------------------------------

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition], /) -> None:
        """Ours from now on; librdkafka is not to fetch them."""
        self._consumer.pause(partitions)
        if self._listener is not None:
            self._listener.on_partitions_assigned(partitions)

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition], /) -> None:
        """Others will have them."""
        if self._listener is not None:
            self._listener.on_partitions_revoked(partitions)
        self._forget(partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition], /) -> None:
        """Others have them already."""
        if self._listener is not None:
            self._listener.on_partitions_lost(partitions)
        self._forget(partitions)

    # Inside --------------------------------------------------------------------------------------

    def _in_turn(self) -> list[TopicPartition]:
        """The partitions to read, those first that waited longest."""
        wanted = self._consumer.assignment() - self._paused
        self._turn = [at for at in self._turn if at in wanted]
        self._turn += sorted(wanted.difference(self._turn))
        return list(self._turn)

    def _fetch(self, at: TopicPartition) -> PartitionRows | None:
        fetcher = self._fetchers.get(at) or self._new_fetcher(at)
        try:
            start = self._position(at)
            fetched = fetcher.fetch(start)
        except OffsetGone as gone:
            self._next[at] = self._reset(gone)
            return None
        except (ClientError, TopicGone) as error:
            log.debug("nothing of %s for now: %s", at, error)
            return None
        behind = offset_after(fetched.records)
        if behind is None or behind <= start:
            return None
        self._next[at] = behind
        self._turn.remove(at)
        self._turn.append(at)
        return PartitionRows(at=at, start=start, fetched=fetched)

    def _position(self, at: TopicPartition) -> int:
        if at not in self._next:
            self._next[at] = self._consumer.position(at)
        return self._next[at]

    def _reset(self, gone: OffsetGone) -> int:
        """Where to go on when the offset is not there any more, as the settings say."""
        word = self._settings.get("auto.offset.reset", "latest").strip().lower()
        if word not in ("earliest", "latest") or gone.start is None or gone.end is None:
            raise NoOffsetForPartitionError(str(gone)) from gone
        return gone.start if word == "earliest" else gone.end

    def _new_fetcher(self, at: TopicPartition) -> PartitionFetcher:
        fetcher = self._fetchers[at] = PartitionFetcher(
            self._cluster,
            at,
            read_committed=self._is_committed,
            fetch_bytes=self._fetch_bytes,
            max_wait_ms=0,
            timeout_s=_FETCH_S,
        )
        return fetcher

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            fetcher = self._fetchers.pop(at, None)
            if fetcher is not None:
                fetcher.close()
            self._next.pop(at, None)
            self._paused.discard(at)
