"""One hosted partition: its log, its place in the cluster, and those who wait for it.

The log knows bytes and offsets; this adds leadership, the high watermark and waiting. Records are
never parsed here, and nothing here touches a socket. Every wait is a future that the partition
completes when the high watermark moves, so that a handler simply awaits.

What a leader knows of its followers is in `in_sync.py`; a partition without followers has none of
it, and its high watermark is its end. What a follower does with an answer of its leader is in
`following.py`.
"""

import asyncio
from collections.abc import Mapping, Sequence

from penstock.cluster.image.image import NO_LEADER, BrokerImage, PartitionImage, PartitionState
from penstock.errors import (
    KafkaStorage,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    ProtocolError,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from penstock.records.batch import BatchHeader
from penstock.replica.in_sync import InSync, Proposal, Seen
from penstock.replica.reads import FollowerFetch, FollowerWatcher, GrowthWatcher, PartitionRead
from penstock.replica.replica import HostedReplica
from penstock.replica.surroundings import ReplicaSurroundings
from penstock.replica.waits import Waits
from penstock.storage.log.log import Appended, Log
from penstock.storage.segments.file_slice import FileSlice

_EVERYTHING_CHANGED = 1 << 62  # More than any watcher waits for, so that all of them read again.

__all__ = ["FollowerFetch", "GrowthWatcher", "Partition", "PartitionRead"]


class Partition(HostedReplica):
    """A replica on this broker; only its event loop touches it."""

    def __init__(
        self,
        *,
        topic: str,
        partition: int,
        topic_id: bytes,
        broker_id: int,
        log: Log,
        around: ReplicaSurroundings | None = None,
    ) -> None:
        super().__init__(topic=topic, partition=partition, broker_id=broker_id, log=log)
        self.topic_id = topic_id
        self.around = around or ReplicaSurroundings(broker_id=broker_id)
        self.replicas: tuple[int, ...] = ()
        self.in_sync: InSync | None = None  # None: no leader, or one without followers.
        self._waits = Waits()
        self._start_waits = Waits()
        self._disk_waits = Waits()
        self._watchers: dict[GrowthWatcher, None] = {}  # Who came first is told first.
        self._follower_watchers: set[FollowerWatcher] = set()
        self._leader_high_watermark = 0  # As the leader told us, while we follow.
        self._unseen_bytes = 0  # Appended, and not yet reported to consumers.

    # Place in the cluster

    def apply(self, placed: PartitionImage, brokers: Mapping[int, BrokerImage]) -> bool:
        """Take the image's state of this partition unless ours is newer; True: it was taken."""
        self.around.brokers = brokers
        return self.take_state(placed.state, placed.replicas)

    def take_state(self, state: PartitionState, replicas: tuple[int, ...] | None = None) -> bool:
        """Take a state from the image or from the store; `replicas` None: as they were."""
        known = self.state
        if replicas is None:
            replicas = self.replicas
        if known is not None:
            newer = (state.leader_epoch, state.partition_epoch)
            older = (known.leader_epoch, known.partition_epoch)
            if newer < older or (
                newer == older and replicas == self.replicas and not self._has_stood_down
            ):
                return False
        is_reassigned = replicas != self.replicas
        self.state = state
        self.replicas = replicas
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.leader_epoch = state.leader_epoch
        if state.leader != self._broker_id:
            self._follow(was_leader)
        elif not was_leader or old_epoch != state.leader_epoch or is_reassigned:
            self._lead(is_same_epoch=old_epoch == state.leader_epoch)
        elif self.in_sync is not None:
            self.in_sync.adopt(state, now_ms=self.around.clock_ms())
            self._take_changed_isr()
        self._has_stood_down = False
        return True

    def _lead(self, *, is_same_epoch: bool) -> None:
        state, log = self.state, self.log
        assert state is not None
        # Not flushed here: a thousand partitions may change leaders at once. The next flush of the
        # log brings it to the disk, and until then recovery finds it in the batches.
        log.assign_epoch_start(state.leader_epoch, log.log_end_offset, is_synced=False)
        unsettled: frozenset[int] = frozenset()
        if is_same_epoch and self.in_sync is not None:
            unsettled = self.in_sync.unsettled
        self.is_leader = True
        self.around.led_count += 1
        self.in_sync = None
        if self.replicas != (self._broker_id,) or state.isr != (self._broker_id,):
            self.in_sync = InSync(
                broker_id=self._broker_id,
                state=state,
                replicas=self.replicas,
                log_end_offset=log.log_end_offset,
                now_ms=self.around.clock_ms(),
                unsettled=unsettled,
            )
        self._take_changed_isr()
        self.wake_readers()

    def _follow(self, was_leader: bool) -> None:
        self.is_leader = False
        self.in_sync = None
        if was_leader:
            leader = self.state.leader if self.state else NO_LEADER
            self._fail_waits(NotLeaderOrFollower(f"{self} is led by broker {leader} now"))

    def stand_down(self, error: ProtocolError | None = None) -> None:
        """Stop leading until the next image: this broker's session with the store is over."""
        if self.is_leader:
            self.is_leader = False
            self._fail_waits(error or NotLeaderOrFollower(f"this broker leads {self} no more"))
        self._has_stood_down = True

    def leads_with(self, state: PartitionState) -> bool:
        """Whether a state of the store is of the leader epoch in which we lead."""
        is_same = (state.leader, state.leader_epoch) == (self._broker_id, self.leader_epoch)
        return self.is_leader and is_same

    def step_down(self, newer: PartitionState | None) -> None:
        """Stop leading: the store has a newer leader epoch. None: it has the partition no more.

        The image tells who leads now. This broker does not lead before that image comes, even if
        the store says that it was elected again: only the image has the assignment.
        """
        if newer is not None and newer.leader != self._broker_id:
            self.take_state(newer)
        elif self.is_leader:
            self.is_leader = False
            self._fail_waits(NotLeaderOrFollower(f"the epoch of {self} is over"))

    def retire(self) -> None:
        """Fail everybody who waits: the topic is gone, or this broker is no replica any more."""
        self.is_leader = False
        self.in_sync = None
        self._fail_waits(UnknownTopicOrPartition(f"{self.topic}-{self.partition} was deleted"))

    @property
    def leader(self) -> int:
        """The broker to fetch from; NO_LEADER: there is none, or no image has come."""
        return NO_LEADER if self.state is None else self.state.leader

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
        log = self.log
        appended = log.append_as_leader(
            batches,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            verify_producer=verify_producer,
            transaction_version=transaction_version,
        )
        if self.in_sync is not None:
            if not appended.is_duplicate:
                self._spread(appended.base_offset, sum(len(batch) for _, batch in batches))
            return appended
        if self.around.commits.is_on():
            self._unseen_bytes += sum(len(batch) for _, batch in batches)
            self._advance()
            return appended
        log.high_watermark = log.log_end_offset
        if self._watchers:
            self._tell_watchers(sum(len(batch) for _, batch in batches))
        return appended

    def _spread(self, old_end_offset: int, size_bytes: int) -> None:
        """Followers hear of an append at once, consumers when it is committed."""
        in_sync = self.in_sync
        assert in_sync is not None
        in_sync.note_growth(old_end_offset)
        self._unseen_bytes += size_bytes
        self._advance()
        if self._follower_watchers:
            for watcher in tuple(self._follower_watchers):
                watcher.grown(size_bytes)

    def _check_enough_replicas(self) -> None:
        state = self.state
        needed = self.isr_needed
        if state is None or len(state.isr) < needed:
            have = 0 if state is None else len(state.isr)
            raise NotEnoughReplicas(
                f"{self.topic}-{self.partition} has {have} in-sync replicas and needs {needed}"
            )

    # The high watermark and the in-sync set

    def _advance(self) -> None:
        """Move the high watermark to what every in-sync replica has."""
        in_sync, log, around = self.in_sync, self.log, self.around
        own_end = self._counted_end()
        if in_sync is None:
            self._set_high_watermark(own_end)
            return
        self._set_high_watermark(
            in_sync.high_watermark(
                log.high_watermark,
                own_end,
                brokers=around.brokers,
                now_ms=around.clock_ms(),
                lag_ms_max=around.lag_ms_max(),
            )
        )

    def _counted_end(self) -> int:
        """Up to where our own log counts: to its end, or as far as `flush.on.ack` lets it."""
        log, commits = self.log, self.around.commits
        if not commits.is_on() or self.is_on_disk:
            return log.log_end_offset
        if self.is_leader:
            commits.want(self)
        return log.recovery_point

    @property
    def is_on_disk(self) -> bool:
        """Whether everything in the log was flushed."""
        return self.log.recovery_point >= self.log.log_end_offset

    def on_flush(self) -> None:
        """More of the log is on disk, or `flush.on.ack` was turned off."""
        is_enough = self.is_on_disk or not self.around.commits.is_on()
        self._disk_waits.complete(self.log.log_end_offset if is_enough else self.log.recovery_point)
        if self.is_leader:
            self._advance()

    def on_flush_failed(self, error: KafkaStorage) -> None:
        """The disk failed: fail everybody who waits for a flush."""
        self._disk_waits.fail(error)

    def _set_high_watermark(self, offset: int) -> None:
        log = self.log
        if offset <= log.high_watermark:
            return
        log.high_watermark = offset
        if self._waits:
            self._waits.complete(offset)
        if self._watchers:
            self._tell_watchers(self._unseen_bytes or _EVERYTHING_CHANGED)
        if self._follower_watchers:
            for watcher in tuple(self._follower_watchers):
                watcher.moved()
        self._unseen_bytes = 0

    def _take_changed_isr(self) -> None:
        self._advance()
        try:
            self._check_enough_replicas()
        except NotEnoughReplicas as error:
            if self._waits:
                self._waits.fail(NotEnoughReplicasAfterAppend(str(error)))
        self._ask_for_proposal()

    def reconsider(self) -> None:
        """Look for followers that may join or must leave: brokers changed, or time has passed."""
        if self.in_sync is not None and self.is_leader:
            self._advance()
            self._ask_for_proposal()
            self._start_waits.complete(self.low_watermark())

    def _ask_for_proposal(self) -> None:
        in_sync, around = self.in_sync, self.around
        if in_sync is None or around.on_proposal is None or in_sync.is_busy:
            return
        high_watermark, brokers = self.log.high_watermark, around.brokers
        if in_sync.is_unsettled or any(
            in_sync.may_join(follower, high_watermark, brokers)
            for follower in in_sync.followers.values()
        ):
            around.on_proposal(self)

    def proposal(self) -> Proposal | None:
        """The in-sync set that should be written next; it counts as possible from now on."""
        in_sync, around = self.in_sync, self.around
        if in_sync is None or not self.is_leader:
            return None
        return in_sync.propose(
            high_watermark=self.log.high_watermark,
            log_end_offset=self.log.log_end_offset,
            brokers=around.brokers,
            now_ms=around.clock_ms(),
            lag_ms_max=around.lag_ms_max(),
        )

    def settle_accepted(self, proposal: Proposal) -> None:
        """The store has it now."""
        if self.is_leader and self.in_sync is not None and self.in_sync.is_flying(proposal):
            self.take_state(proposal.state)

    def settle_refused(self, proposal: Proposal) -> None:
        """It was certainly not written: a fence moved, or the store could not be reached."""
        if self.in_sync is not None:
            self.in_sync.withdraw(proposal)
            self._advance()

    def settle_unknown(self, proposal: Proposal) -> None:
        """Nobody knows whether it was written: its members count until a newer state is known."""
        if self.in_sync is not None:
            self.in_sync.unknown(proposal)

    # Followers

    def note_fetch(
        self, fetch: FollowerFetch, *, now_ms: int | None = None, seen: Seen | None = None
    ) -> None:
        """Note that a follower's log is a prefix of ours up to its fetch offset."""
        in_sync = self.in_sync
        if in_sync is None:
            raise NotLeaderOrFollower(f"{self} has no followers")
        follower = in_sync.note_fetch(
            fetch.replica_id,
            broker_epoch=fetch.replica_epoch,
            fetch_offset=fetch.fetch_offset,
            log_start_offset=fetch.log_start_offset,
            log_end_offset=self.log.log_end_offset,
            now_ms=self.around.clock_ms() if now_ms is None else now_ms,
        )
        follower.seen = seen
        self._advance()
        around = self.around
        if (
            fetch.replica_id not in in_sync.maximal
            and around.on_proposal is not None
            and not in_sync.is_busy
            and in_sync.may_join(follower, self.log.high_watermark, around.brokers)
        ):
            around.on_proposal(self)
        if self._start_waits:
            self._start_waits.complete(self.low_watermark())

    def check_follower(self, fetch: FollowerFetch) -> None:
        """Raise what a follower is told that cannot be served, before anything is noted."""
        self.check_leader()
        self.check_leader_epoch(fetch.current_leader_epoch)
        in_sync = self.in_sync
        if in_sync is None or fetch.replica_id not in in_sync.followers:
            unknown = f"broker {fetch.replica_id} is no replica of {self.topic}-{self.partition}"
            if fetch.current_leader_epoch >= 0:
                raise UnknownLeaderEpoch(unknown)  # It knows a newer assignment (KAFKA-13837).
            raise NotLeaderOrFollower(unknown)
        broker = self.around.brokers.get(fetch.replica_id)
        known = in_sync.followers[fetch.replica_id].broker_epoch
        if broker is not None:
            known = max(known, broker.epoch)
        if 0 <= fetch.replica_epoch < known:
            raise NotLeaderOrFollower(f"broker {fetch.replica_id} has registered anew since")

    def read_as_follower(
        self,
        fetch: FollowerFetch,
        *,
        bytes_max: int,
        min_one: bool,
        is_again: bool = False,
        seen: Seen | None = None,
    ) -> PartitionRead:
        """What a follower copies: everything up to our end. `is_again`: it was noted before."""
        self.check_follower(fetch)
        log, offset = self.log, fetch.fetch_offset
        if offset < log.log_start_offset:  # Even where it diverges too (KAFKA-12996).
            raise OffsetOutOfRange(f"offset {offset} is before {log.log_start_offset}")
        diverging = self.diverging_epoch(fetch.last_fetched_epoch, offset)
        if diverging is not None:
            return self.nothing(diverging=diverging)
        end = log.log_end_offset
        if offset > end:
            raise OffsetOutOfRange(f"offset {offset} is behind {end}")
        if not is_again:
            self.note_fetch(fetch, seen=seen)
        elif seen is not None and self._knows_nothing_of(fetch.replica_id):
            self.note_fetch(fetch, now_ms=seen.at_ms, seen=seen)
        records: FileSlice | bytes = b""
        if offset < end and bytes_max + min_one > 0:
            records = log.read(offset, bytes_max=bytes_max, end_offset=end, min_one=min_one).records
        return self._marks(records)

    def _knows_nothing_of(self, broker_id: int) -> bool:
        """Whether a follower whose fetch waits here has to be noted again.

        A new leader epoch, or another assignment, clears what the leader knew of its followers.
        The fetch that waits was noted before that. A follower that has nothing new to fetch does
        not report its position again, so the leader takes it from the fetch that waits.
        """
        return self.in_sync is not None and self.in_sync.is_unheard(broker_id)

    def watch_as_follower(self, watcher: FollowerWatcher) -> None:
        self._follower_watchers.add(watcher)

    def unwatch_as_follower(self, watcher: FollowerWatcher, seen: Seen) -> None:
        """The follower no longer asks for this partition in the session of `seen`."""
        self._follower_watchers.discard(watcher)
        if self.in_sync is not None:
            self.in_sync.left_session(seen)

    # As a follower

    def follow_high_watermark(self, leader_high_watermark: int) -> None:
        """Take the leader's high watermark, as far as our log reaches; it never goes back."""
        self._leader_high_watermark = leader_high_watermark
        self._set_high_watermark(min(leader_high_watermark, self.log.log_end_offset))

    @property
    def lag(self) -> int:
        """How many committed records of the leader's last answer are missing here."""
        if self.is_leader:
            return 0
        return max(self._leader_high_watermark - self.log.log_end_offset, 0)

    @property
    def isr_needed(self) -> int:
        """How many in-sync replicas acks=all needs."""
        return min(self.log.config.min_insync_replicas, len(self.replicas) or 1)

    # Waiting

    def replicated(self, last_offset: int) -> "asyncio.Future[None] | None":
        """A future for when `last_offset` is on every in-sync replica; None: it already is.

        To be asked in the same step as the append: a high watermark that we were told as a follower
        may stand behind what another leader wrote at these offsets.
        """
        if not self.is_leader:
            self.check_leader()
        if self.log.high_watermark > last_offset:
            return None
        return self._waits.add(last_offset + 1)

    def acknowledged(self, last_offset: int, acks: int) -> "asyncio.Future[None] | None":
        """A future for when a producer may be told that its records are taken; None: now."""
        if acks == -1:
            return self.replicated(last_offset)
        if acks and self.around.commits.is_on() and self.log.recovery_point <= last_offset:
            return self._disk_waits.add(last_offset + 1)
        return None

    def watch(self, watcher: GrowthWatcher) -> None:
        self._watchers[watcher] = None

    def unwatch(self, watcher: GrowthWatcher) -> None:
        self._watchers.pop(watcher, None)

    def _fail_waits(self, error: ProtocolError) -> None:
        self._waits.fail(error)
        self._start_waits.fail(error)
        self._disk_waits.fail(error)
        self.wake_readers()

    def wake_readers(self) -> None:
        self._tell_watchers(_EVERYTHING_CHANGED)
        for watcher in tuple(self._follower_watchers):
            watcher.grown(_EVERYTHING_CHANGED)

    def _tell_watchers(self, size_bytes: int) -> None:
        for watcher in tuple(self._watchers):
            watcher.grown(size_bytes)

    # Deleting records

    def delete_records(self, before_offset: int) -> int:
        """Forget everything before the offset (-1: all that is committed); the new start."""
        self.check_leader()
        wanted = self.log.high_watermark if before_offset == -1 else before_offset
        if wanted < 0 or wanted > self.log.high_watermark:
            raise OffsetOutOfRange(f"offset {wanted} is above {self.log.high_watermark}")
        self.log.delete_records_before(wanted)
        for watcher in tuple(self._follower_watchers):
            watcher.grown(_EVERYTHING_CHANGED)
        return self.log.log_start_offset

    def low_watermark(self) -> int:
        """Where the logs of all live replicas begin, at the latest."""
        if self.in_sync is None:
            return self.log.log_start_offset
        return self.in_sync.low_watermark(self.log.log_start_offset, self.around.brokers)

    def deleted_everywhere(self, before_offset: int) -> "asyncio.Future[None] | None":
        """A future for when all live replicas begin at the offset; None: they do."""
        if self.low_watermark() >= before_offset:
            return None
        return self._start_waits.add(before_offset)
