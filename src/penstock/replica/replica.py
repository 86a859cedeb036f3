"""What any replica can tell, leader or follower: its place, and what readers may see of its log.

Leading, following and waiting are added by `partition.py`.
"""

from penstock.cluster.image.image import PartitionState
from penstock.errors import (
    FencedLeaderEpoch,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from penstock.replica.reads import PartitionRead
from penstock.storage.log.log import Log
from penstock.storage.segments.file_slice import FileSlice

NO_EPOCH = -1


class HostedReplica:
    """A log, and the part it plays."""

    def __init__(self, *, topic: str, partition: int, broker_id: int, log: Log) -> None:
        self.topic = topic
        self.partition = partition
        self.log = log
        self.state: PartitionState | None = None  # None: no image named this partition yet.
        self.is_leader = False
        self.leader_epoch = NO_EPOCH
        self._broker_id = broker_id
        self._has_stood_down = False

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.partition}, epoch {self.leader_epoch})"

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition

    # Place

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
        log = self.log
        if not self.is_leader:
            self._check_readable_here(offset)
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

    @property
    def is_readable(self) -> bool:
        """Whether consumers may read here: a follower that knows its place serves them too."""
        return (
            self.state is not None
            and not self._has_stood_down
            and (self.is_leader or self.state.leader != self._broker_id)
        )

    def _check_readable_here(self, offset: int) -> None:
        """A follower has for consumers what it knows to be committed."""
        if not self.is_readable:
            self.check_leader()
        high_watermark = self.log.high_watermark
        if offset > high_watermark:
            raise OffsetNotAvailable(f"this follower has records up to {high_watermark} yet")

    def _marks(self, records: FileSlice | bytes) -> PartitionRead:
        log = self.log
        return PartitionRead(
            records=records,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted=None,
        )

    def diverging_epoch(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """Where the reader's log parts from ours; None: it is a prefix of ours (KIP-595)."""
        if last_fetched_epoch < 0:
            return None
        epoch, end_offset = self.log.epoch_end_offset(last_fetched_epoch)
        if end_offset < 0:
            raise OffsetOutOfRange(f"leader epoch {last_fetched_epoch} is not known here")
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

    def elsewhere(self, replica: int) -> PartitionRead:
        """The answer to a consumer that should read from another replica: marks, no records."""
        return self._marks(b"")._replace(preferred_replica=replica)
