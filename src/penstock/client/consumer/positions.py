"""Where a consumer stands in each of its partitions, and what to tell librdkafka of it.

Kafka lets a consumer seek and pause as soon as a partition is assigned. librdkafka starts a
partition at an offset given with the assignment and takes seeks only once it runs. So wishes made
before that are kept here and go into the assignment. There is no librdkafka in here.
"""

from collections.abc import Iterable

from penstock.client.errors import IllegalStateError
from penstock.client.values import OffsetAndMetadata, TopicPartition

# librdkafka's words for offsets that are not numbers.
BEGINNING = -2
END = -1
STORED = -1000  # What the group has committed, else as auto.offset.reset says.
INVALID = -1001


class Positions:
    """The partitions of one consumer."""

    def __init__(self, default_start: int) -> None:
        self._default_start = default_start
        self._starts: dict[TopicPartition, int] = {}
        self._next: dict[TopicPartition, int] = {}
        self._epochs: dict[TopicPartition, int | None] = {}
        self._paused: set[TopicPartition] = set()

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """All partitions of the consumer."""
        return frozenset(self._starts)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Those that are not read for now."""
        return frozenset(self._paused)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions that came, to be read from where the group or the default says."""
        for partition in partitions:
            self._starts.setdefault(partition, self._default_start)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions that went, and all that was known of them."""
        for partition in tuple(partitions):
            self._starts.pop(partition, None)
            self._next.pop(partition, None)
            self._epochs.pop(partition, None)
            self._paused.discard(partition)

    def start_of(self, partition: TopicPartition) -> int:
        """Where reading is to begin: where it had come to, or was sent to, or by default."""
        return self._next.get(partition, self._starts[self.check(partition)])

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Stand at an offset, or at one of the words above."""
        self.check(partition)
        self._epochs.pop(partition, None)
        if offset >= 0:
            self._next[partition] = offset
        else:
            self._next.pop(partition, None)
            self._starts[partition] = offset

    def note_consumed(self, partition: TopicPartition, offset: int, epoch: int | None) -> None:
        """A record was handed to the caller; the next one is wanted."""
        self._next[partition] = offset + 1
        self._epochs[partition] = epoch

    def known(self, partition: TopicPartition) -> int | None:
        """The offset of the next record, None while it still has a word for an offset."""
        return self._next.get(self.check(partition))

    def to_commit(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Every position that is a number."""
        return {
            partition: OffsetAndMetadata(offset, "", self._epochs.get(partition))
            for partition, offset in self._next.items()
        }

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Do not read these until resumed."""
        self._paused.update(self.check(partition) for partition in partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these again."""
        self._paused.difference_update(self.check(partition) for partition in partitions)

    def check(self, partition: TopicPartition) -> TopicPartition:
        """Refuse a partition that the consumer does not have."""
        if partition not in self._starts:
            raise IllegalStateError(f"No current assignment for partition {partition}.")
        return partition
