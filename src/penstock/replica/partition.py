"""One hosted partition: its log, its place in the cluster, and those who wait for it.

The log knows bytes and offsets; this adds leadership, the high watermark and waiting. Records are
never parsed here, and nothing here touches a socket. Every wait is a future that the partition
completes when the high watermark moves, so that a handler simply awaits.
"""

import asyncio
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.cluster.image import PartitionState
from penstock.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    ProtocolError,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from penstock.records.batch import BatchHeader
from penstock.storage.file_slice import FileSlice
from penstock.storage.log import AbortedTransaction, Appended, Log

NO_EPOCH = -1
_EVERYTHING_CHANGED = 1 << 62  # More than anybody waits for, so that everybody looks again.


class GrowthWatcher(Protocol):
    """Somebody who waits for readable bytes, such as a long poll."""

    def grown(self, size_bytes: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRead:
    """What a reader gets: a slice of the log and the marks that stand beside it."""

    records: FileSlice | bytes
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTransaction] | None  # None: the reader did not ask for read_committed.
    diverging: tuple[int, int] | None = None  # The epoch, and its end, where the logs part.


class Partition:
    """A replica on this broker; only its event loop touches it."""

    def __init__(
        self, *, topic: str, partition: int, topic_id: bytes, broker_id: int, log: Log
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.log = log
        self.state: PartitionState | None = None  # None: no image named this partition yet.
        self.replicas: tuple[int, ...] = ()
        self.is_leader = False
        self.leader_epoch = NO_EPOCH
        self._broker_id = broker_id
        self._waits: list[tuple[int, int, asyncio.Future[None]]] = []
        self._wait_count = 0
        self._watchers: set[GrowthWatcher] = set()

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.partition}, epoch {self.leader_epoch})"

    # Place in the cluster

    def apply(self, state: PartitionState, replicas: tuple[int, ...]) -> None:
        """Take on what the image says; anything not newer than what we know is ignored."""
        known = self.state
        if known is not None and (state.leader_epoch, state.partition_epoch) <= (
            known.leader_epoch,
            known.partition_epoch,
        ):
            return
        self.state = state
        self.replicas = replicas
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.is_leader = state.leader == self._broker_id
        self.leader_epoch = state.leader_epoch
        if self.is_leader and (not was_leader or old_epoch != state.leader_epoch):
            self.log.assign_epoch_start(
                state.leader_epoch, self.log.log_end_offset, is_alone=len(replicas) == 1
            )
        if was_leader and not self.is_leader:
            self._fail_waits(NotLeaderOrFollower(f"{self} is led by broker {state.leader} now"))
        if self.is_leader:
            self._advance()

    def retire(self) -> None:
        """The topic is gone: nobody may go on waiting for it."""
        self.is_leader = False
        self._fail_waits(UnknownTopicOrPartition(f"{self.topic}-{self.partition} was deleted"))

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client whose picture of the leadership is older or newer than ours (KIP-320)."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch(f"the leader epoch is {self.leader_epoch} by now")
        raise UnknownLeaderEpoch(f"epoch {current_leader_epoch} has not reached this broker")

    def check_leader(self) -> None:
        if not self.is_leader:
            raise NotLeaderOrFollower(f"this broker does not lead {self.topic}-{self.partition}")

    # Appending

    def append(
        self,
        batches: Sequence[tuple[BatchHeader, memoryview]],
        *,
        required_acks: int,
        now_ms: int,
        verify_producer: bool = True,
        transaction_version: int = 0,
    ) -> Appended:
        """Append as the leader; coordinators write without sequence numbers."""
        if not self.is_leader:
            self.check_leader()
        if required_acks == -1:
            self._check_enough_replicas()
        appended = self.log.append_as_leader(
            batches,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            verify_producer=verify_producer,
            transaction_version=transaction_version,
        )
        self._advance()
        if self._watchers:
            self._tell_watchers(sum(len(batch) for _, batch in batches))
        return appended

    def _check_enough_replicas(self) -> None:
        state = self.state
        needed = min(self.log.config.min_insync_replicas, len(self.replicas) or 1)
        if state is None or len(state.isr) < needed:
            have = 0 if state is None else len(state.isr)
            raise NotEnoughReplicas(
                f"{self.topic}-{self.partition} has {have} in-sync replicas and needs {needed}"
            )

    def _advance(self) -> None:
        """Move the high watermark to what every in-sync replica has."""
        state, log = self.state, self.log
        if state is None or state.isr != (self._broker_id,) or state.min_isr > 1:
            return
        self._set_high_watermark(log.log_end_offset)

    def _set_high_watermark(self, offset: int) -> None:
        log = self.log
        if offset <= log.high_watermark:
            return
        log.high_watermark = offset
        if self._waits:
            self._complete_waits(offset)

    # Waiting

    def replicated(self, last_offset: int) -> asyncio.Future[None] | None:
        """A future for when `last_offset` is on every in-sync replica; None: it already is."""
        if self.log.high_watermark > last_offset:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wait_count += 1
        heapq.heappush(self._waits, (last_offset, self._wait_count, future))
        return future

    def watch(self, watcher: GrowthWatcher) -> None:
        self._watchers.add(watcher)

    def unwatch(self, watcher: GrowthWatcher) -> None:
        self._watchers.discard(watcher)

    def _complete_waits(self, high_watermark: int) -> None:
        while self._waits and self._waits[0][0] < high_watermark:
            future = heapq.heappop(self._waits)[2]
            if not future.done():
                future.set_result(None)

    def _fail_waits(self, error: ProtocolError) -> None:
        waits, self._waits = self._waits, []
        for _, _, future in waits:
            if not future.done():
                future.set_exception(error)
        self.wake_readers()

    def wake_readers(self) -> None:
        self._tell_watchers(_EVERYTHING_CHANGED)

    def _tell_watchers(self, size_bytes: int) -> None:
        for watcher in tuple(self._watchers):
            watcher.grown(size_bytes)

    # Reading

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset

    def read(
        self, offset: int, *, bytes_max: int, is_committed_only: bool, min_one: bool
    ) -> PartitionRead:
        """What a consumer may see from `offset` on; empty at the end of what is committed."""
        self.check_leader()
        log = self.log
        stable = log.last_stable_offset
        end = stable if is_committed_only else log.high_watermark
        if offset > log.log_end_offset or offset < log.log_start_offset:
            raise OffsetOutOfRange(
                f"offset {offset} is outside [{log.log_start_offset}, {log.log_end_offset}]"
            )
        records: FileSlice | bytes = b""
        if offset < end:
            records = log.read(offset, bytes_max=bytes_max, end_offset=end, min_one=min_one).records
        aborted = None
        if is_committed_only:
            aborted = log.aborted_transactions(offset, end) if len(records) else ()
        return PartitionRead(
            records=records,
            high_watermark=log.high_watermark,
            last_stable_offset=stable,
            log_start_offset=log.log_start_offset,
            aborted=aborted,
        )

    def diverging_epoch(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """Where the reader's log parts from ours; None: it is a prefix of ours (KIP-595)."""
        if last_fetched_epoch < 0:
            return None
        epoch, end_offset = self.log.epoch_end_offset(last_fetched_epoch)
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return epoch, end_offset
        return None

    def nothing(self, *, diverging: tuple[int, int]) -> PartitionRead:
        """The answer to a reader whose log is not a prefix of ours: marks, and no records."""
        log = self.log
        return PartitionRead(
            records=b"",
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted=None,
            diverging=diverging,
        )

    def delete_records(self, before_offset: int) -> int:
        """Forget everything before the offset (-1: all that is committed); the new start."""
        self.check_leader()
        wanted = self.log.high_watermark if before_offset == -1 else before_offset
        if wanted < 0 or wanted > self.log.high_watermark:
            raise OffsetOutOfRange(f"offset {wanted} is above {self.log.high_watermark}")
        self.log.delete_records_before(wanted)
        return self.log.log_start_offset
