"""The shell of a coordinator: one machine for each partition of a state topic that it leads.

Every coordinator has the same life around its machines. It follows the cluster's image, and leads
what this broker leads. It loads each log in slices that let other requests through. It serves a
partition only once nothing of its log can be lost, finds the partition of an id, and lets no answer
out before what it rests on is on every in-sync replica. A machine moves with its partition: when
another broker leads, it is thrown away, and the new leader finds everything in the log.

What the machines do is theirs (`machine.py`); what is special about a coordinator is in the class
that builds on this one.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from penstock.cluster.image.image import ClusterImage
from penstock.coordination.answers import Ticket
from penstock.coordination.led_shard import CHUNK_BYTES, LedShard
from penstock.coordination.machine import M
from penstock.coordination.pauses import Pauses
from penstock.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    NotCoordinator,
)
from penstock.records.compression import Codec
from penstock.replica.partition import Partition
from penstock.replica.state_log import StateLog, partition_for

T = TypeVar("T")


class PartitionLookup(Protocol):
    """The partitions on this broker."""

    def get(self, topic: str, partition: int) -> Partition | None: ...


class CoordinatorShell(Generic[M]):
    """All machines of the partitions that this broker leads."""

    def __init__(
        self,
        *,
        topic: str,
        partitions: PartitionLookup,
        now_ms: Callable[[], int],
        logger: logging.Logger,
    ) -> None:
        self._topic = topic
        self._partitions = partitions
        self._now_ms = now_ms
        self._logger = logger
        self._partition_count = 0  # Of the state topic; 0: it is not there yet.
        self._led: dict[int, LedShard[M]] = {}
        self._reading = asyncio.Lock()  # One log is read at a time, and requests run in between.
        self._is_closed = False

    # What a coordinator brings

    def _new_machine(self, led: LedShard[M]) -> M:
        """A machine that knows nothing yet, and writes to the log of the led partition."""
        raise NotImplementedError

    def _begin_serving(self, led: LedShard[M]) -> None:
        """The machine has come to life: begin what its state asks for."""

    def _codec(self) -> Codec:
        """How batches of the state topic are compressed."""
        return Codec.NONE

    def _chunk_bytes(self) -> int:
        """How much of a log is read at a time."""
        return CHUNK_BYTES

    def _answer_timeout_s(self) -> float | None:
        """How long an answer may wait for replicas; None: for as long as it takes."""
        return None

    # Finding

    def partition_of(self, name: str) -> int:
        """The partition of the state topic that an id belongs to."""
        if not self._partition_count:
            raise CoordinatorNotAvailable(f"{self._topic} is not there yet")
        return partition_for(name, self._partition_count)

    def led_shard(self, name: str) -> LedShard[M]:
        """Where the id lives; raises what a client is to be told if that is not here."""
        return self._ready(self.partition_of(name))

    def _ready(self, number: int) -> LedShard[M]:
        led = self._led.get(number)
        # The store may have ended our leader epoch before any image tells of it.
        if led is None or not led.log.is_led:
            raise NotCoordinator(f"this broker does not lead {self._topic}-{number}")
        if not led.is_loaded:
            raise CoordinatorLoadInProgress(f"{self._topic}-{number} is being loaded")
        return led

    @property
    def is_loading(self) -> bool:
        """Whether some of what this broker leads cannot be served yet."""
        return not all(led.is_loaded for led in self._led.values())

    def loaded_shards(self) -> list[LedShard[M]]:
        """All that can be served now."""
        return [led for led in self._led.values() if led.is_loaded and led.log.is_led]

    # Working

    def run(self, name: str, operation: Callable[[M], T | Ticket[T]]) -> T | Coroutine[Any, Any, T]:
        """The operation's answer: at once if nothing it rests on can be lost, else in a while."""
        led = self.led_shard(name)
        try:
            told = operation(led.shard)
            late = led.expect(told) if isinstance(told, Ticket) else None
        finally:
            led.end_turn()
        if late is not None:
            if not late.done():
                return self._answer_late(led, late)
            told = late.result()
        assert not isinstance(told, Ticket)
        return told if led.log.is_settled else self._answer_when_safe(led, told)

    async def _answer_late(self, led: LedShard[M], late: "asyncio.Future[T]") -> T:
        response = await late
        if getattr(response, "error_code", 0):
            return response  # Bad news rests on nothing, and may come from a machine that is gone.
        return await self._answer_when_safe(led, response)

    async def _answer_when_safe(self, led: LedShard[M], result: T) -> T:
        try:
            async with asyncio.timeout(self._answer_timeout_s()):
                await led.log.until_settled()
        except TimeoutError:
            raise CoordinatorNotAvailable(f"{led.log} waits for its replicas") from None
        return result

    def take_marker(
        self, partition: int, producer_id: int, *, is_committed: bool, marker_offset: int
    ) -> None:
        """A marker was appended to a partition of the state topic that this broker leads."""
        led = self._led.get(partition)
        if led is not None:
            led.take_marker(producer_id, is_committed=is_committed, marker_offset=marker_offset)

    # Leading

    def take_image(self, image: ClusterImage) -> None:
        """Lead what this broker leads now."""
        if self._is_closed:
            return
        made = image.topics.get(self._topic)
        self._partition_count = 0 if made is None else len(made.partitions)
        for number in set(self._led) | set(range(self._partition_count)):
            self._follow(number, self._partitions.get(self._topic, number))

    def _follow(self, number: int, hosted: Partition | None) -> None:
        led = self._led.get(number)
        if led is not None and (hosted is not led.log.partition or not led.log.is_led):
            self._resign(number)
            led = None
        if led is None and hosted is not None and hosted.is_leader:
            self._lead(hosted)

    def _lead(self, partition: Partition) -> None:
        state_log = StateLog(
            partition, now_ms=self._now_ms, report=self._logger.warning, codec=self._codec()
        )
        led = LedShard(state_log, self._new_machine, self._logger)
        self._led[partition.partition] = led
        if led.is_log_empty:
            self._serve(led)
        else:
            led.start_task(self._load(led))

    def _resign(self, number: int) -> None:
        """Somebody else leads it: forget everything, and leave the rest of the work to them."""
        led = self._led.pop(number)
        led.close(ErrorCode.NOT_COORDINATOR)
        if not self._is_closed:
            self._logger.info("Resigned as the coordinator of %s", led.log)

    def close(self) -> None:
        """Tell everybody who waits to look elsewhere; nothing is led any more."""
        self._is_closed = True
        for number in tuple(self._led):
            self._resign(number)
        self._partition_count = 0

    # Loading

    async def _load(self, led: LedShard[M]) -> None:
        """Replay the log, and serve it once no record of it can be lost (no earlier)."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        pauses = Pauses()
        while not await self._read(led):
            await pauses.pause()
            led.forget()
        await led.settle()
        self._serve(led)
        self._logger.info(
            "Finished loading %s from %s in %d milliseconds",
            led.shard.content(),
            led.log,
            (loop.time() - began_s) * 1000,
        )

    async def _read(self, led: LedShard[M]) -> bool:
        """Replay the log; False: it cannot be read now."""
        async with self._reading:
            try:
                await led.read(chunk_bytes=self._chunk_bytes())
            except Exception:
                self._logger.exception("%s cannot be loaded and will be tried again", led.log)
                return False
        return True

    def _serve(self, led: LedShard[M]) -> None:
        led.finish_loading()
        self._begin_serving(led)
