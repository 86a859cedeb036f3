"""The group coordinator of a broker: one shard for each partition of `__consumer_offsets` it leads.

The shell it is built on (`coordination/shell.py`) finds the shard for a group, loads it, rings its
timers and answers when it is safe. Here is what only groups need: offsets go with their topics, and
old ones go by the clock. What groups do is in `shard.py` and below.
"""

import asyncio
import contextlib
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from penstock.cluster.image.image import ClusterImage, TopicImage
from penstock.cluster.topics.names import CONSUMER_OFFSETS
from penstock.config.broker import BrokerConfig
from penstock.coordination.led_shard import LedShard
from penstock.coordination.shell import CoordinatorShell, PartitionLookup
from penstock.errors import ErrorCode, ProtocolError
from penstock.groups.shard import Family, GroupShard
from penstock.groups.surroundings import GroupSurroundings
from penstock.protocol.messages.list_groups import ListedGroup
from penstock.records.compression import Codec

log = logging.getLogger("kafka.coordinator.group.GroupCoordinator")

# What scrapes are told of; groups of the new protocol have two states more.
GROUP_STATES: Final = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")

_RETRY_S: Final = 1.0  # Until offsets that could not be removed are tried again.
_SLICE_S: Final = 0.005  # How long work in the background runs before requests get their turn.


class GroupCoordinator(CoordinatorShell[GroupShard]):
    """All groups of the partitions that this broker leads."""

    def __init__(
        self,
        *,
        partitions: PartitionLookup,
        config: Callable[[], BrokerConfig],
        image: Callable[[], ClusterImage],
        now_ms: Callable[[], int],
        families: Iterable[Callable[[GroupShard], Family]] = (),
    ) -> None:
        super().__init__(topic=CONSUMER_OFFSETS, partitions=partitions, now_ms=now_ms, logger=log)
        self._config = config
        self._image = image
        self._families = tuple(families)
        self._topics: Mapping[str, TopicImage] = {}
        # Topics that were deleted while a log was being read, by the log's partition.
        self._gone_topics: dict[int, set[str]] = {}
        self._expirer: asyncio.Task[None] | None = None

    # What the shell asks

    def _new_machine(self, led: LedShard[GroupShard]) -> GroupShard:
        around = GroupSurroundings(
            journal=led.log,
            clock=led,
            new_id=_new_id,
            config=self._config,
            image=self._image,
            report=log.info,
        )
        return GroupShard(around, self._families)

    def _begin_serving(self, led: LedShard[GroupShard]) -> None:
        gone = self._gone_topics.pop(led.log.partition.partition, None)
        if gone:
            self._forget_topics(led, gone)

    def _codec(self) -> Codec:
        return Codec(self._config().offsets_topic_compression_codec)

    def _answer_timeout_s(self) -> float:
        return self._config().offsets_commit_timeout_ms / 1000

    def _resign(self, number: int) -> None:
        super()._resign(number)
        self._gone_topics.pop(number, None)

    # Looking

    def listed(
        self, states: Iterable[str], types: Iterable[str]
    ) -> tuple[list[ListedGroup], ErrorCode]:
        """The groups of all shards; the error tells if some are still being loaded."""
        wanted = tuple(states), tuple(types)
        loaded = [led.shard for led in self._led.values() if led.is_loaded]
        groups = [group for shard in loaded for group in shard.listed(*wanted)]
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.is_loading else ErrorCode.NONE
        return groups, error

    def counts(self) -> tuple[Counter[str], int]:
        """How many groups are in each state, and how many offsets there are."""
        shards = [led.shard for led in self._led.values() if led.is_loaded]
        states = Counter(group.state for shard in shards for group in shard.groups.values())
        return states, sum(len(shard.offsets) for shard in shards)

    # Following the cluster

    def take_image(self, image: ClusterImage) -> None:
        """Lead what this broker leads now, and forget the offsets of topics that are gone."""
        super().take_image(image)
        if self._is_closed:
            return
        if self._led and self._expirer is None:
            self._expirer = asyncio.get_running_loop().create_task(
                self._expire(), name="offset expiration"
            )
        if image.topics is not self._topics:
            gone = _gone(self._topics, image.topics)
            self._topics = image.topics
            if gone:
                for led in self._led.values():
                    self._forget_topics(led, gone)

    def close(self) -> None:
        super().close()
        if self._expirer is not None:
            self._expirer.cancel()

    # Topics that are gone

    def _forget_topics(self, led: LedShard[GroupShard], topics: Collection[str]) -> None:
        """A topic made anew under an old name must not find offsets of the old one (I30)."""
        if not led.is_loaded:
            self._gone_topics.setdefault(led.log.partition.partition, set()).update(topics)
            return
        try:
            self._forget_before(led, topics, led.log.partition.log.log_end_offset)
        except ProtocolError as error:
            log.warning("Offsets of deleted topics stay in %s for now: %s", led.log, error)

    def _forget_before(
        self, led: LedShard[GroupShard], topics: Collection[str], end_offset: int
    ) -> None:
        """Tried again as long as this broker is the coordinator: a disk may be full."""
        if not led.is_loaded or not led.log.is_led:
            return
        try:
            removed = led.shard.commits.delete_topics(topics, end_offset=end_offset)
        except ProtocolError:
            asyncio.get_running_loop().call_later(
                _RETRY_S, self._forget_again, led, topics, end_offset
            )
            raise
        if removed:
            log.info("Removed %d offsets of deleted topics from %s", removed, led.log)

    def _forget_again(
        self, led: LedShard[GroupShard], topics: Collection[str], end_offset: int
    ) -> None:
        with contextlib.suppress(ProtocolError):
            self._forget_before(led, topics, end_offset)

    # Expiring

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(self._config().offsets_retention_check_interval_ms / 1000)
            for led in tuple(self._led.values()):
                try:
                    await self._expire_shard(led)
                except ProtocolError as error:
                    log.warning("Old offsets of %s were not removed: %s", led.log, error)
                except Exception:
                    log.exception("Old offsets of %s were not removed", led.log)

    async def _expire_shard(self, led: LedShard[GroupShard]) -> None:
        loop = asyncio.get_running_loop()
        expired_count, slice_s = 0, loop.time() + _SLICE_S
        for group_id in tuple(led.shard.groups) if led.is_loaded else ():
            expired_count += led.shard.expire(group_id)
            if loop.time() >= slice_s:
                led.end_turn()
                await asyncio.sleep(0)
                slice_s = loop.time() + _SLICE_S
        led.end_turn()
        if expired_count:
            log.info("Removed %d expired offsets from %s", expired_count, led.log)


def _gone(before: Mapping[str, TopicImage], now: Mapping[str, TopicImage]) -> frozenset[str]:
    """Topics that are no more; one made anew under its old name is another topic."""
    return frozenset(
        name
        for name, topic in before.items()
        if name not in now or now[name].topic_id != topic.topic_id
    )


def _new_id() -> str:
    return str(uuid.uuid4())
