"""Markers: how a transaction's end reaches every partition it touched.

The coordinator hands each decided transaction to a `MarkerSink`. This broker's own partitions are
written here; a sink for a cluster asks `LocalMarkers` for those and WriteTxnMarkers of the other
leaders for the rest. When to try again is the coordinator's to decide.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from penstock.errors import ProtocolError
from penstock.records.batch import control_batch, read_header
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.replica.partition import Partition
from penstock.transactions.guards import Guards
from penstock.transactions.transaction import TV2, ProducerIdentity, TopicPartition

_ALL = -1
_AT_ONCE: Final = 200  # So many markers are written before others have their turn.


class TransactionMarker(NamedTuple):
    """The end of one producer's transaction."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int  # Partitions refuse a coordinator that was replaced.
    transaction_version: int

    @property
    def identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def last_epoch_ended(self) -> int:
        """The latest epoch whose transaction this ends; why is told in `guards.py`."""
        if self.transaction_version >= TV2:
            return self.producer_epoch - 1
        return self.producer_epoch


Outcome = Mapping[TopicPartition, ProtocolError | None]  # None: it is marked for good.


class MarkerSink(Protocol):
    """Where a coordinator sends markers."""

    async def write(
        self, marker: TransactionMarker, partitions: Iterable[TopicPartition]
    ) -> Outcome:
        """Mark the partitions. UnknownTopicOrPartition says for certain: there is none."""
        ...


class Leaders(Protocol):
    """The partitions this broker leads."""

    def leader(self, topic: str, partition: int) -> Partition:
        """The partition; raises what a client is told when this broker does not lead it."""
        ...


class Completion(Protocol):
    """Whoever keeps state of its own by transactions, such as offsets until they count."""

    def __call__(
        self,
        partition: Partition,
        identity: ProducerIdentity,
        *,
        is_commit: bool,
        marker_offset: int,
    ) -> None:
        """The marker is in the partition, and safe; it decides over what lies before it."""
        ...


class LocalMarkers:
    """Writes markers into the partitions this broker leads."""

    def __init__(
        self,
        leaders: Leaders,
        *,
        guards: Guards,
        completions: Mapping[str, Completion],  # By topic.
        now_ms: Callable[[], int],
    ) -> None:
        self._leaders = leaders
        self._guards = guards
        self._completions = completions
        self._now_ms = now_ms

    async def write(
        self, marker: TransactionMarker, partitions: Iterable[TopicPartition]
    ) -> Outcome:
        """First all appends, then all waits, so that partitions replicate side by side."""
        outcome: dict[TopicPartition, ProtocolError | None] = {}
        waits: list[tuple[Partition, int, Awaitable[None] | None]] = []
        for count, (topic, number) in enumerate(partitions, start=1):
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                partition = self._leaders.leader(topic, number)
                offset = self._append(partition, marker)
                waits.append((partition, offset, partition.replicated(offset)))
            except ProtocolError as error:
                outcome[topic, number] = error
        for partition, offset, wait in waits:
            key = partition.topic, partition.partition
            try:
                if wait is not None:
                    await wait
                self._complete(partition, marker, offset)
                outcome[key] = None
            except ProtocolError as error:
                outcome[key] = error
        return outcome

    def _append(self, partition: Partition, marker: TransactionMarker) -> int:
        now_ms = self._now_ms()
        kind = ControlType.COMMIT if marker.is_commit else ControlType.ABORT
        batch = memoryview(
            control_batch(
                EndTransactionMarker(kind, marker.coordinator_epoch),
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                now_ms=now_ms,
            )
        )
        appended = partition.append(
            [(read_header(batch), batch)],
            required_acks=_ALL,
            now_ms=now_ms,
            verify_producer=False,
            transaction_version=marker.transaction_version,
        )
        key = partition.topic, partition.partition, marker.producer_id
        self._guards.end(key, marker.last_epoch_ended)
        return appended.last_offset

    def _complete(self, partition: Partition, marker: TransactionMarker, offset: int) -> None:
        completion = self._completions.get(partition.topic)
        if completion is not None:
            completion(partition, marker.identity, is_commit=marker.is_commit, marker_offset=offset)
