"""The group coordinator of a broker: one shard for each partition of `__consumer_offsets` it leads.

This is the shell around the machines: it finds the shard for a group, loads shards from their logs
without holding up the event loop, rings their timers, and lets no answer out before what it rests
on is safe on every in-sync replica. What groups do is in `shard.py` and below.
"""

import asyncio
import logging
import uuid
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar

from penstock.cluster.image import ClusterImage, TopicImage
from penstock.config.broker import BrokerConfig
from penstock.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    NotCoordinator,
    ProtocolError,
)
from penstock.groups.led_shard import LedShard
from penstock.groups.shard import Family, Shard
from penstock.groups.surroundings import Surroundings
from penstock.protocol.messages.list_groups import ListedGroup
from penstock.records.compression import Codec
from penstock.replica.partition import Partition
from penstock.replica.state_log import StateLog, partition_for
from penstock.replica.table import PartitionTable

log = logging.getLogger("kafka.coordinator.group.GroupCoordinator")

OFFSETS_TOPIC: Final = "__consumer_offsets"

# What scrapes are told of; groups of the new protocol have two states more.
GROUP_STATES: Final = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")

_RETRY_S: Final = 1.0  # Until a log that could not be read is tried again.
_SLICE_S: Final = 0.005  # How long work in the background runs before requests get their turn.

T = TypeVar("T")


class Reply(Generic[T]):
    """An answer that may come at once or in a while."""

    __slots__ = ("_future", "response")

    def __init__(self) -> None:
        self.response: T | None = None  # None: not answered yet.
        self._future: asyncio.Future[T] | None = None

    def __call__(self, response: T) -> None:
        self.response = response
        if self._future is not None and not self._future.done():
            self._future.set_result(response)

    def later(self) -> "asyncio.Future[T]":
        """A future for the answer, asked for at once.

        Another request may answer this one before anybody has begun to wait.
        """
        self._future = asyncio.get_running_loop().create_future()
        return self._future


class GroupCoordinator:
    """All groups of the partitions that this broker leads."""

    def __init__(
        self,
        *,
        partitions: PartitionTable,
        config: Callable[[], BrokerConfig],
        image: Callable[[], ClusterImage],
        now_ms: Callable[[], int],
        families: Iterable[Callable[[Shard], Family]] = (),
    ) -> None:
        self._partitions = partitions
        self._config = config
        self._image = image
        self._now_ms = now_ms
        self._families = tuple(families)
        self._led: dict[int, LedShard] = {}
        self._partition_count = 0  # 0: the topic is not there yet.
        self._topics: Mapping[str, TopicImage] = {}
        self._to_load: deque[LedShard] = deque()
        self._loader: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[None]] = set()  # Read, and waiting for their replicas.
        self._expirer: asyncio.Task[None] | None = None
        self._is_closed = False

    # Finding

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group lives in."""
        if not self._partition_count:
            raise CoordinatorNotAvailable(f"{OFFSETS_TOPIC} is not there yet")
        return partition_for(group_id, self._partition_count)

    def led_shard(self, group_id: str) -> LedShard:
        """Where the group lives; raises what a client is to be told if that is not here."""
        return self._ready(self.partition_of(group_id))

    def _ready(self, number: int) -> LedShard:
        led = self._led.get(number)
        # The store may have ended our leader epoch before any image tells of it.
        if led is None or not led.log.is_led:
            raise NotCoordinator(f"this broker does not lead {OFFSETS_TOPIC}-{number}")
        if not led.is_loaded:
            raise CoordinatorLoadInProgress(f"{OFFSETS_TOPIC}-{number} is being loaded")
        return led

    # Working

    def run(self, group_id: str, operation: Callable[[Shard], T]) -> T | Coroutine[Any, Any, T]:
        """The operation's result: at once if nothing it rests on can be lost, else in a while."""
        led = self.led_shard(group_id)
        result = operation(led.shard)
        led.wind_timers()
        if led.log.is_settled:
            return result
        return self._when_settled(led, result)

    def ask(
        self, group_id: str, operation: Callable[[Shard, Reply[T]], None]
    ) -> T | Coroutine[Any, Any, T]:
        """Like `run`, for operations that answer later through a callback."""
        led = self.led_shard(group_id)
        reply: Reply[T] = Reply()
        operation(led.shard, reply)
        led.wind_timers()
        if reply.response is None:
            return self._when_answered(led, reply.later())
        if led.log.is_settled:
            return reply.response
        return self._when_settled(led, reply.response)

    async def _when_answered(self, led: LedShard, answer: "asyncio.Future[T]") -> T:
        response = await answer
        if not getattr(response, "error_code", 0):  # Bad news may come from a shard that is gone.
            await self._settle(led)
        return response

    async def _when_settled(self, led: LedShard, result: T) -> T:
        await self._settle(led)
        return result

    async def _settle(self, led: LedShard) -> None:
        try:
            async with asyncio.timeout(self._config().offsets_commit_timeout_ms / 1000):
                await led.log.until_settled()
        except TimeoutError:
            raise CoordinatorNotAvailable(f"{led.log} waits for its replicas") from None

    def listed(
        self, states: Iterable[str], types: Iterable[str]
    ) -> tuple[list[ListedGroup], ErrorCode]:
        """The groups of all shards; the error tells if some are still being loaded."""
        wanted = tuple(states), tuple(types)
        loaded = [led for led in self._led.values() if led.is_loaded]
        groups = [group for led in loaded for group in led.shard.listed(*wanted)]
        if len(loaded) < len(self._led):
            return groups, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return groups, ErrorCode.NONE

    def counts(self) -> tuple[Counter[str], int]:
        """How many groups are in each state, and how many offsets there are."""
        shards = [led.shard for led in self._led.values() if led.is_loaded]
        states = Counter(group.state for shard in shards for group in shard.groups.values())
        return states, sum(len(shard.offsets) for shard in shards)

    def complete_transaction(self, partition: int, producer_id: int, *, is_committed: bool) -> None:
        """A marker was appended to a partition of `__consumer_offsets` that this broker leads."""
        led = self._led.get(partition)
        if led is None:
            return
        led.log.note_end()
        if led.is_loaded:
            led.shard.commits.complete_transaction(producer_id, is_committed=is_committed)
        else:
            led.note_marker(producer_id, is_committed=is_committed)

    # Following the cluster

    def take_image(self, image: ClusterImage) -> None:
        """Lead what this broker leads now, and forget the offsets of topics that are gone."""
        if self._is_closed:
            return
        made = image.topics.get(OFFSETS_TOPIC)
        self._partition_count = 0 if made is None else len(made.partitions)
        for number in set(self._led) | set(range(self._partition_count)):
            self._follow(number)
        if image.topics is not self._topics:
            gone = _gone(self._topics, image.topics)
            self._topics = image.topics
            if gone:
                for led in self._led.values():
                    led.forget_topics(gone)

    def _follow(self, number: int) -> None:
        hosted = self._partitions.get(OFFSETS_TOPIC, number)
        led = self._led.get(number)
        is_leader = hosted is not None and hosted.is_leader
        if led is not None and (hosted is not led.log.partition or not led.log.is_led):
            self._resign(number)
            led = None
        if led is None and is_leader and hosted is not None:
            self._lead(hosted)

    def _lead(self, partition: Partition) -> None:
        state_log = StateLog(
            partition,
            now_ms=self._now_ms,
            report=log.warning,
            codec=Codec(self._config().offsets_topic_compression_codec),
        )
        led = LedShard(state_log, partial(self._new_shard, state_log))
        self._led[partition.partition] = led
        if led.is_log_empty:
            led.finish_loading()
        else:
            self._to_load.append(led)
            self._start_loading()
        if self._expirer is None:
            self._expirer = asyncio.get_running_loop().create_task(
                self._expire(), name="offset expiration"
            )

    def _new_shard(self, state_log: StateLog, clock: LedShard) -> Shard:
        around = Surroundings(
            journal=state_log,
            clock=clock,
            new_id=_new_id,
            config=self._config,
            image=self._image,
            report=log.info,
        )
        return Shard(around, self._families)

    def _resign(self, number: int) -> None:
        led = self._led.pop(number)
        led.close(ErrorCode.NOT_COORDINATOR)
        if not self._is_closed:
            log.info("Resigned as the coordinator of %s", led.log)

    async def close(self) -> None:
        """Tell everybody who waits to look elsewhere; nothing is led any more."""
        self._is_closed = True
        for number in tuple(self._led):
            self._resign(number)
        self._partition_count = 0
        for task in (self._loader, self._expirer, *self._settling):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    # Loading

    def _start_loading(self) -> None:
        if self._loader is None or self._loader.done():
            self._loader = asyncio.get_running_loop().create_task(
                self._load(), name="group loading"
            )

    async def _load(self) -> None:
        """One shard after the other, in small pieces, so that requests are answered meanwhile."""
        while self._to_load:
            led = self._to_load.popleft()
            try:
                await led.read()
            except Exception:
                log.exception("%s could not be loaded and will be tried again", led.log)
                self._try_again(led)
                continue
            # One whose replicas are away must not hold up the others.
            task = asyncio.get_running_loop().create_task(self._serve(led), name="group settling")
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    async def _serve(self, led: LedShard) -> None:
        try:
            await led.serve()
        except ProtocolError as error:
            if not led.is_closed and led.log.is_led:
                log.warning("%s cannot be served yet: %s", led.log, error)
                self._try_again(led)
        except Exception:
            log.exception("%s could not be loaded and will be tried again", led.log)
            self._try_again(led)

    def _try_again(self, led: LedShard) -> None:
        asyncio.get_running_loop().call_later(_RETRY_S, self._load_again, led)

    def _load_again(self, led: LedShard) -> None:
        """From the start, with nothing of what was half read; unless another leads by now."""
        number = led.log.partition.partition
        if self._led.get(number) is led:
            self._resign(number)
            self._follow(number)

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

    async def _expire_shard(self, led: LedShard) -> None:
        loop = asyncio.get_running_loop()
        expired_count, slice_s = 0, loop.time() + _SLICE_S
        for group_id in tuple(led.shard.groups) if led.is_loaded else ():
            expired_count += led.shard.expire(group_id)
            if loop.time() >= slice_s:
                await asyncio.sleep(0)
                slice_s = loop.time() + _SLICE_S
        led.wind_timers()
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
