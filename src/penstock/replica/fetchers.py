"""The follower's side: tasks that copy partitions from the brokers that lead them.

One task per leading broker and fetcher number. Which partition belongs to which task is decided
here, by the image; what a task does is in `fetcher.py`.
"""

import zlib
from collections.abc import Callable, Collection, Iterable

from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.net.peers import Peers
from penstock.replica.fetcher import Fetcher
from penstock.replica.partition import Partition
from penstock.replica.table import PartitionTable
from penstock.replica.throttle import ReplicationRate, window_s

FetcherKey = tuple[int, int]  # The leading broker, and the fetcher's number.


class ReplicaFetchers:
    """All fetcher tasks of a broker. A failed fetch never ends one of them."""

    def __init__(
        self,
        *,
        broker_id: int,
        broker_epoch: Callable[[], int],
        peers: Peers,
        partitions: PartitionTable,
        config: Callable[[], BrokerConfig],
        now_ms: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._peers = peers
        self._partitions = partitions
        self._config = config
        self._now_ms = now_ms
        self._image: ClusterImage | None = None
        self._fetcher_count = config().num_replica_fetchers
        self._fetchers: dict[FetcherKey, Fetcher] = {}
        self._homes: dict[Partition, Fetcher] = {}
        self.rate = ReplicationRate(
            lambda: config().follower_replication_throttled_rate,
            window_s=lambda: window_s(config()),
            clock_ms=partitions.around.clock_ms,
        )

    def take_image(self, image: ClusterImage) -> None:
        """After the table took it: follow what the image says, no more and no less."""
        before, self._image = self._image, image
        count = self._config().num_replica_fetchers
        is_all_new = before is None or count != self._fetcher_count
        self._fetcher_count = count
        if before is None or is_all_new:
            self._assign(self._partitions.hosted(), image)
            self.forget_dropped()
        else:
            moved = before.brokers.keys() ^ image.brokers.keys()
            if moved:
                self._assign(self._concerned(moved), image)
            if before.topics is not image.topics:
                self._assign(self._changed(before, image), image)
                if _takes_away(before, image):
                    self.forget_dropped()
        self._end_idle_fetchers()

    def _concerned(self, brokers: Collection[int]) -> list[Partition]:
        """The partitions that one of these brokers leads, or that are fetched from it."""
        fetchers = {f for key, f in self._fetchers.items() if key[0] in brokers}
        homes = self._homes
        return [
            p
            for p in self._partitions.hosted()
            if p.leader in brokers or (fetchers and homes.get(p) in fetchers)
        ]

    def _changed(self, before: ClusterImage, image: ClusterImage) -> Iterable[Partition]:
        """Few of thousands, mostly: what an image shares with the one before it is the same."""
        for name, topic in image.topics.items():
            known = before.topics.get(name)
            if known is topic:
                continue
            if known is not None and known.topic_id != topic.topic_id:
                known = None
            for number, placed in topic.partitions.items():
                if known is not None and known.partitions.get(number) is placed:
                    continue
                partition = self._partitions.get(name, number)
                if partition is not None:
                    yield partition

    def forget_dropped(self) -> None:
        """Fetch nothing for partitions that the table has let go."""
        for gone in [p for p in self._homes if self._partitions.get(*p.key) is not p]:
            self._homes.pop(gone).remove(gone)

    def take_found(self, partitions: Iterable[Partition]) -> None:
        """Partitions whose logs could not be had before are there now."""
        if self._image is not None:
            self._assign(partitions, self._image)

    def _assign(self, partitions: Iterable[Partition], image: ClusterImage) -> None:
        for partition in partitions:
            home = self._homes.get(partition)
            wanted = self._home_of(partition, image)
            if home is not None and home is not wanted:
                home.remove(partition)
                del self._homes[partition]
            if wanted is not None:
                self._homes[partition] = wanted
                wanted.follow(partition)

    def _home_of(self, partition: Partition, image: ClusterImage) -> Fetcher | None:
        leader = partition.leader
        if partition.is_leader or leader == self._broker_id or leader not in image.brokers:
            return None
        key = leader, fetcher_number(*partition.key, self._fetcher_count)
        found = self._fetchers.get(key)
        if found is None:
            found = self._fetchers[key] = Fetcher(
                leader_id=leader,
                number=key[1],
                broker_id=self._broker_id,
                broker_epoch=self._broker_epoch,
                peers=self._peers,
                config=self._config,
                now_ms=self._now_ms,
                rate=self.rate,
                on_cut=self._partitions.note_cut,
                on_copied=self._partitions.around.on_copied,
            )
        return found

    def _end_idle_fetchers(self) -> None:
        for key, fetcher in tuple(self._fetchers.items()):
            if not fetcher.partition_count:
                del self._fetchers[key]
                fetcher.stop()

    # For metrics

    @property
    def failed_partition_count(self) -> int:
        return sum(fetcher.failed_partition_count for fetcher in self._fetchers.values())

    async def close(self) -> None:
        """Stop all tasks; nothing is appended afterwards."""
        fetchers, self._fetchers = tuple(self._fetchers.values()), {}
        self._homes = {}
        self._image = None
        for fetcher in fetchers:
            fetcher.stop()
        for fetcher in fetchers:
            await fetcher.wait_until_ended()


def _takes_away(before: ClusterImage, image: ClusterImage) -> bool:
    """Whether a partition that was hosted may be hosted no more, or be another one by now."""
    for name, known in before.topics.items():
        topic = image.topics.get(name)
        if topic is known:
            continue
        if topic is None or topic.topic_id != known.topic_id:
            return True
        for number, placed in known.partitions.items():
            now = topic.partitions.get(number)
            if now is not placed and (now is None or now.replicas != placed.replicas):
                return True
    return False


def fetcher_number(topic: str, partition: int, count: int) -> int:
    """The same in every process, which Python's own hash is not."""
    return (zlib.crc32(topic.encode()) + partition) % max(count, 1)
