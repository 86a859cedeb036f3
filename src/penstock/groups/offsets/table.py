"""The offsets of all groups of a shard: committed ones, and those a transaction has yet to decide.

An offset committed within a transaction is pending until the transaction's marker is in the log.
Of two commits for the same partition the later record wins, whichever was decided later.
"""

from collections.abc import Iterable, Iterator

from penstock.groups.record_formats import CommittedOffset

TopicPartition = tuple[str, int]


class GroupOffsets:
    """Offsets by group and partition."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        # Open transactions, by producer id; and per group the producers with something pending.
        self._pending: dict[int, dict[str, dict[TopicPartition, CommittedOffset]]] = {}
        self._producers: dict[str, set[int]] = {}
        # How many offsets each group has in a topic, so that a deleted topic is found at once.
        self._counts: dict[str, dict[str, int]] = {}

    def __len__(self) -> int:
        return sum(len(offsets) for offsets in self._committed.values())

    def groups(self) -> Iterable[str]:
        """Every group that has an offset, decided or not."""
        return self._committed.keys() | self._producers.keys()

    def of_group(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed; not to be changed by the caller."""
        return self._committed.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        offsets = self._committed.get(group_id)
        return None if offsets is None else offsets.get((topic, partition))

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        offsets = self._committed.get(group_id)
        if offsets is None:
            offsets = self._committed[group_id] = {}
        if (topic, partition) not in offsets:
            self._count(topic, group_id, 1)
        offsets[topic, partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Forget the offset, and what open transactions would make of it."""
        offsets = self._committed.get(group_id)
        if offsets is not None:
            if offsets.pop((topic, partition), None) is not None:
                self._count(topic, group_id, -1)
            if not offsets:
                del self._committed[group_id]
        for producer_id in tuple(self._producers.get(group_id, ())):
            pending = self._pending[producer_id][group_id]
            pending.pop((topic, partition), None)
            if not pending:
                self._forget_pending(producer_id, group_id)

    # Transactions

    def put_pending(
        self,
        producer_id: int,
        group_id: str,
        topic: str,
        partition: int,
        committed: CommittedOffset,
    ) -> None:
        of_producer = self._pending.setdefault(producer_id, {})
        of_producer.setdefault(group_id, {})[topic, partition] = committed
        self._producers.setdefault(group_id, set()).add(producer_id)

    def complete(self, producer_id: int, *, is_committed: bool, marker_offset: int) -> None:
        """A marker decides over what the producer wrote before it.

        It counts once it is on all replicas. By then the producer may have begun its next
        transaction, if another marker of the same end came first.
        """
        for group_id, pending in tuple(self._pending.get(producer_id, {}).items()):
            for (topic, partition), committed in tuple(pending.items()):
                if committed.record_offset > marker_offset:
                    continue
                del pending[topic, partition]
                known = self.get(group_id, topic, partition)
                is_newer = known is None or known.record_offset < committed.record_offset
                if is_committed and is_newer:
                    self.put(group_id, topic, partition, committed)
            if not pending:
                self._forget_pending(producer_id, group_id)

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction may change the offset."""
        producers = self._producers.get(group_id)
        return producers is not None and any(
            (topic, partition) in self._pending[producer_id][group_id] for producer_id in producers
        )

    def has_pending(self, group_id: str) -> bool:
        return group_id in self._producers

    def groups_of_topic(self, topic: str) -> set[str]:
        """The groups with an offset in the topic, decided or not."""
        groups = set(self._counts.get(topic, ()))
        for group_id, producers in self._producers.items():
            pending = (self._pending[producer_id][group_id] for producer_id in producers)
            if any(found == topic for offsets in pending for found, _ in offsets):
                groups.add(group_id)
        return groups

    def _count(self, topic: str, group_id: str, change: int) -> None:
        counts = self._counts.setdefault(topic, {})
        counts[group_id] = counts.get(group_id, 0) + change
        if not counts[group_id]:
            del counts[group_id]
            if not counts:
                del self._counts[topic]

    def partitions(self, group_id: str) -> Iterator[TopicPartition]:
        """Every partition with an offset, decided or not; each once."""
        seen = dict.fromkeys(self.of_group(group_id))
        for producer_id in self._producers.get(group_id, ()):
            seen.update(dict.fromkeys(self._pending[producer_id][group_id]))
        return iter(seen)

    def last_record_offset(self, group_id: str, at: TopicPartition) -> int:
        """Where the newest commit for a partition is in the log, decided or not; -1: none is."""
        known = self.of_group(group_id).get(at)
        found = -1 if known is None else known.record_offset
        for producer_id in self._producers.get(group_id, ()):
            pending = self._pending[producer_id][group_id].get(at)
            if pending is not None:
                found = max(found, pending.record_offset)
        return found

    def _forget_pending(self, producer_id: int, group_id: str) -> None:
        del self._pending[producer_id][group_id]
        if not self._pending[producer_id]:
            del self._pending[producer_id]
        self._producers[group_id].discard(producer_id)
        if not self._producers[group_id]:
            del self._producers[group_id]
