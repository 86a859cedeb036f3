"""The partitions this broker hosts, kept as the cluster image says.

The image is the authority: a partition appears here when it names this broker among the replicas,
and leaves when it names it no more, or when its topic is gone or lives on under another id.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from penstock.cluster.image.image import ClusterImage, PartitionImage, PartitionKey, TopicImage
from penstock.errors import (
    KafkaStorage,
    NotLeaderOrFollower,
    ProtocolError,
    UnknownTopicOrPartition,
)
from penstock.records.topic_partition import TopicPartition
from penstock.replica.partition import Partition
from penstock.replica.surroundings import LAG_MS_MAX, ReplicaSurroundings, monotonic_ms
from penstock.storage.directories.disk_room import NoRoom
from penstock.storage.directories.log_dir import LogDir
from penstock.storage.directories.log_dirs import LogDirs, WantedLog
from penstock.storage.log.config import LogConfig

if TYPE_CHECKING:
    from penstock.replica.moving import LogMoves, ReplicaMove

RECONSIDERED_AT_ONCE = 200
DELETED_AT_ONCE = 64

log = logging.getLogger("kafka.server.ReplicaManager")


class PartitionTable:
    """Finds hosted partitions by topic and number; follows the image."""

    def __init__(
        self,
        *,
        broker_id: int,
        log_dirs: LogDirs,
        log_config: Callable[[ClusterImage, str], LogConfig],
        now_ms: Callable[[], int],
        lag_ms_max: Callable[[], int] = lambda: LAG_MS_MAX,
        clock_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        self._broker_id = broker_id
        self.around = ReplicaSurroundings(
            broker_id=broker_id, lag_ms_max=lag_ms_max, clock_ms=clock_ms
        )
        self._log_dirs = log_dirs
        self._log_config = log_config
        self._now_ms = now_ms
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._image: ClusterImage | None = None
        self._has_stood_down = False
        self._moves: LogMoves | None = None  # None: nothing was ever moved.
        self._not_held: set[PartitionKey] = set()  # Ours, and their logs cannot be had.
        self._without_room: set[PartitionKey] = set()  # Of those, because a disk was full.
        self._reconsidered: deque[Partition] = deque()  # Still to come.
        self._leaving: dict[PartitionKey, None] = {}  # Hosted no more, and not yet deleted.
        log_dirs.before_close.append(lambda: self._delete_some(len(self._leaving)))

    def __len__(self) -> int:
        return len(self._partitions)

    # Finding

    def get(self, topic: str, partition: int) -> Partition | None:
        return self._partitions.get((topic, partition))

    def leader(self, topic: str, partition: int) -> Partition:
        """The partition, if this broker leads it; raises what a client is to be told."""
        found = self._partitions.get((topic, partition))
        if found is not None and found.is_leader:
            return found
        raise self._why_not(topic, partition, found)

    def replica(self, topic: str, partition: int) -> Partition:
        """The partition, if this broker leads or follows it; a reader may take either."""
        found = self._partitions.get((topic, partition))
        if found is not None and (found.is_leader or found.is_readable):
            return found
        raise self._why_not(topic, partition, found)

    def moves(
        self, *, bytes_per_s: Callable[[], int], at_once_max: Callable[[], int]
    ) -> "LogMoves":
        """The moves between log directories, which most brokers never make."""
        if self._moves is None:
            from penstock.replica.moving import LogMoves
            from penstock.replica.throttle import ReplicationRate

            self._moves = LogMoves(
                self._log_dirs,
                rate=ReplicationRate(bytes_per_s, clock_ms=self.around.clock_ms),
                at_once_max=at_once_max,
                now_ms=self._now_ms,
            )
        return self._moves

    def moves_under_way(self) -> "tuple[ReplicaMove, ...]":
        return () if self._moves is None else self._moves.all()

    def hosted(self) -> Iterable[Partition]:
        return tuple(self._partitions.values())

    def wake_readers(self) -> None:
        """Everybody who waits for growth looks again now."""
        for partition in self._partitions.values():
            partition.wake_readers()

    def _why_not(
        self, topic: str, partition: int, found: Partition | None
    ) -> UnknownTopicOrPartition | NotLeaderOrFollower | KafkaStorage:
        known = self._image.partition(topic, partition) if self._image else None
        if known is None:
            return UnknownTopicOrPartition(f"there is no partition {topic}-{partition}")
        if found is None and self._broker_id in known.replicas:
            return KafkaStorage(f"the log of {topic}-{partition} could not be opened")
        return NotLeaderOrFollower(f"broker {known.state.leader} leads {topic}-{partition}")

    # Following the image

    def missing(self, image: ClusterImage) -> list[WantedLog]:
        """The logs of partitions that an image gives us and that are not hosted yet."""
        known: Mapping[str, TopicImage] = {}
        if self._image is not None and not self._has_stood_down:
            known = self._image.topics
        return [
            WantedLog(TopicPartition(name, number), topic.topic_id, config)
            for name, topic in image.topics.items()
            if known.get(name) is not topic
            for config in (self._log_config(image, name),)
            for number, placed in topic.partitions.items()
            if self._broker_id in placed.replicas and (name, number) not in self._partitions
        ]

    @property
    def has_crashed_logs(self) -> bool:
        """Whether logs are still to be recovered, which threads do better than anybody else."""
        return self._image is None and not self._log_dirs.was_clean

    def open_ahead(self, wanted: WantedLog) -> None:
        """Open a log before the image is taken on; what goes wrong is told when it is."""
        self._make_way(wanted.partition)
        with contextlib.suppress(KafkaStorage, OSError):
            self._log_dirs.open_log(
                wanted.partition,
                topic_id=wanted.topic_id,
                config=wanted.config,
                now_ms=self._now_ms(),
            )

    def lead_ahead(self, wanted: WantedLog, image: ClusterImage) -> None:
        """Take on one partition of an image that is about to be taken on as a whole."""
        name, number = wanted.partition
        topic, placed = image.topics.get(name), image.partition(name, number)
        if topic is None or placed is None or topic.topic_id != wanted.topic_id:
            return
        hosted = self._host(topic, number, wanted.config)
        if hosted is not None:
            self._follow(hosted, placed, image)

    def drop_opened_ahead(self, wanted: WantedLog, image: ClusterImage) -> None:
        """Give up a log that was opened ahead of an image, if the next one has no use for it."""
        name, number = wanted.partition
        topic, placed = image.topics.get(name), image.partition(name, number)
        if (name, number) in self._partitions:
            return
        if (
            topic is None
            or topic.topic_id != wanted.topic_id
            or placed is None
            or self._broker_id not in placed.replicas
        ):
            self._log_dirs.delete_log(wanted.partition, now_ms=self._now_ms())

    def apply(self, image: ClusterImage) -> None:
        """Take on an image in which this broker is active; to be fed in their order."""
        before, self._image = self._image, image
        if self._has_stood_down and before is not None:
            # Every partition is looked at again; logs that are open stay open.
            before = ClusterImage(cluster_id=before.cluster_id)
        self._has_stood_down = False
        self.around.brokers = image.brokers
        if before is not None and before.configs is not image.configs:
            self._reconfigure(before, image)
        if before is None or before.topics is not image.topics:
            self._apply_topics(before, image)
        if before is not None and before.brokers is not image.brokers:
            self._reconsider()

    def _reconsider(self) -> None:
        """Do it in slices when there are thousands of partitions: requests come first."""
        led = deque(p for p in self._partitions.values() if p.is_leader)
        self._reconsidered = led  # What is left of an earlier round is among these.
        self._reconsider_some(led)

    def _reconsider_some(self, led: deque[Partition]) -> None:
        if self._reconsidered is not led:
            return
        for _ in range(min(len(led), RECONSIDERED_AT_ONCE)):
            led.popleft().reconsider()
        if led:  # Only an event loop touches partitions, so one is running.
            asyncio.get_running_loop().call_soon(self._reconsider_some, led)

    def _apply_topics(self, before: ClusterImage | None, image: ClusterImage) -> None:
        if before is None:
            self._recover(image)
        known: Mapping[str, TopicImage] = {} if before is None else before.topics
        for name, topic in image.topics.items():
            if (known_topic := known.get(name)) is not topic:
                self._apply_topic(topic, image, known_topic)
        for (name, number), hosted in tuple(self._partitions.items()):
            current = image.topics.get(name)
            if (
                current is None
                or current.topic_id != hosted.topic_id
                or number not in current.partitions
                or self._broker_id not in current.partitions[number].replicas
            ):
                self._drop(name, number)
        self._delete_by_and_by()

    def _delete_by_and_by(self) -> None:
        """A topic may have thousands of logs; the disk is asked for a few at a time."""
        self._delete_some(DELETED_AT_ONCE)
        if self._leaving:
            asyncio.get_running_loop().call_soon(self._delete_by_and_by)

    def _delete_some(self, count: int) -> None:
        for key in list(islice(self._leaving, count)):
            self._delete(key)

    def lose(self, failed: LogDir) -> list[PartitionKey]:
        """A disk failed: nothing that lay on it is led or followed here any more."""
        lost = [key for key, hosted in self._partitions.items() if hosted.log in failed]
        for key in lost:
            hosted = self._partitions.pop(key)
            hosted.stand_down(KafkaStorage(f"{key[0]}-{key[1]} is offline: {failed.failure}"))
            if self._moves is not None:
                self._moves.cancel(hosted)
            self._not_held.add(key)
        return lost

    def not_held(self, image: ClusterImage) -> list[PartitionKey]:
        """Partitions of this broker whose logs are missing here and exist elsewhere."""
        own = self._broker_id
        states = [(k, p.state) for k in sorted(self._not_held) if (p := image.partition(*k))]
        return [
            key
            for key, state in states
            if (state.leader == own or own in state.isr) and {*state.isr, *state.elr} - {own}
        ]

    def stand_down_all(self, error: ProtocolError | None = None) -> None:
        """Lead nothing any more: the session is lost. The next image is taken on as a whole."""
        for partition in self._partitions.values():
            partition.stand_down(error)
        self._has_stood_down = True

    def _recover(self, image: ClusterImage) -> None:
        """After a crash: what was not recovered before this broker came up."""
        self._log_dirs.recover_logs(
            [
                WantedLog(TopicPartition(name, number), topic.topic_id, config)
                for name, topic in image.topics.items()
                for config in (self._log_config(image, name),)
                for number, placed in topic.partitions.items()
                if self._broker_id in placed.replicas
            ],
            now_ms=self._now_ms(),
        )

    def reconfigure_all(self, image: ClusterImage) -> None:
        """The broker's own defaults changed: every topic may see another value."""
        for partition in self._partitions.values():
            partition.log.reconfigure(self._log_config(image, partition.topic))

    def _reconfigure(self, before: ClusterImage, image: ClusterImage) -> None:
        changed = {
            name
            for kind, name in before.configs.keys() | image.configs.keys()
            if kind == "topics"
            and before.configs.get((kind, name)) != image.configs.get((kind, name))
        }
        for partition in self._partitions.values():
            if partition.topic in changed:
                partition.log.reconfigure(self._log_config(image, partition.topic))

    def _apply_topic(
        self, topic: TopicImage, image: ClusterImage, before: TopicImage | None
    ) -> None:
        config: LogConfig | None = None
        known: Mapping[int, PartitionImage] = {}
        if before is not None and before.topic_id == topic.topic_id:
            known = before.partitions
        else:
            self._drop_older(topic)
        for number, placed in topic.partitions.items():
            key = (topic.name, number)
            if known.get(number) is placed and key in self._partitions:
                continue  # Unchanged, as most of thousands are.
            if self._broker_id not in placed.replicas:
                continue
            hosted = self._partitions.get(key)
            if hosted is None:
                config = config or self._log_config(image, topic.name)
                hosted = self._host(topic, number, config)
            if hosted is not None:
                self._follow(hosted, placed, image)

    def _drop_older(self, topic: TopicImage) -> None:
        """An older topic of the name goes as a whole before the first log of the new one is made.

        What was noted of its logs must be gone from the disk by then, and that costs a flush.
        """
        for number in topic.partitions:
            hosted = self._partitions.get((topic.name, number))
            if hosted is not None and hosted.topic_id != topic.topic_id:
                self._drop(topic.name, number)
            if (topic.name, number) in self._leaving:
                self._delete((topic.name, number))

    def _make_way(self, key: PartitionKey) -> None:
        """An older log of the name goes before one is opened, or the new one would go with it."""
        if key in self._leaving:
            for leaving in [one for one in self._leaving if one[0] == key[0]]:
                self._delete(leaving)

    def _host(self, topic: TopicImage, number: int, config: LogConfig) -> Partition | None:
        self._make_way((topic.name, number))
        try:
            opened = self._log_dirs.open_log(
                TopicPartition(topic.name, number),
                topic_id=topic.topic_id,
                config=config,
                now_ms=self._now_ms(),
            )
        except (KafkaStorage, OSError) as error:
            if (topic.name, number) not in self._not_held:
                log.error("Cannot open the log of %s-%d: %s", topic.name, number, error)
                self._not_held.add((topic.name, number))
            if isinstance(error, NoRoom):
                self._without_room.add((topic.name, number))
            return None
        self._not_held.discard((topic.name, number))
        hosted = Partition(
            topic=topic.name,
            partition=number,
            topic_id=topic.topic_id,
            broker_id=self._broker_id,
            log=opened,
            around=self.around,
        )
        self._partitions[topic.name, number] = hosted
        return hosted

    def host_again(self) -> list[Partition]:
        """Open the logs again for which a disk had no room; returns the partitions hosted now."""
        image, tried = self._image, tuple(self._without_room)
        if image is None or self._has_stood_down:
            return []
        self._without_room.clear()
        found = []
        for name, number in tried:
            topic, placed = image.topics.get(name), image.partition(name, number)
            if topic is None or placed is None or self._broker_id not in placed.replicas:
                continue
            if (name, number) in self._partitions:
                continue
            hosted = self._host(topic, number, self._log_config(image, name))
            if hosted is not None:
                self._follow(hosted, placed, image)
                found.append(hosted)
        return found

    def _follow(self, hosted: Partition, placed: PartitionImage, image: ClusterImage) -> None:
        try:
            hosted.apply(placed, image.brokers)
        except (KafkaStorage, OSError) as error:
            log.error("Cannot lead %s-%d: %s", hosted.topic, hosted.partition, error)

    def _drop(self, topic: str, number: int) -> None:
        dropped = self._partitions.pop((topic, number))
        dropped.retire()
        if self._moves is not None:
            self._moves.cancel(dropped)
        self._leaving[topic, number] = None

    def _delete(self, key: PartitionKey) -> None:
        del self._leaving[key]
        try:
            self._log_dirs.delete_log(TopicPartition(*key), now_ms=self._now_ms())
        except KafkaStorage as error:  # The others go all the same.
            log.error("Cannot delete the log of %s-%d: %s", *key, error)
            return
        log.info("Log for partition %s-%d is scheduled for deletion", *key)

    def note_cut(self) -> None:
        """Logs were cut: note it before anything is appended in the place of what is gone.

        A recovery that began above the cut would take records for checked that never were.
        """
        self._log_dirs.write_recovery_points()

    def set_aside_strays(self, image: ClusterImage) -> None:
        """Keep apart the logs that no topic of the cluster owns; nothing is deleted."""
        for found, topic_id in self._log_dirs.found_logs():
            topic = image.topics.get(found.topic)
            if (
                topic is None
                or found.partition not in topic.partitions
                or (topic_id is not None and topic.topic_id != topic_id)
            ):
                moved = self._log_dirs.set_aside(found)
                log.warning("No topic owns the log of %s; it was renamed to %s", found, moved)
