"""All consumer instances of this process: made, used by one request at a time, and ended.

An instance ends when its client says so, when nobody asked it for a while, and when the process
stops; each time it leaves its group at once, so that its partitions do not wait for the session to
time out. How many there may be is bounded: each is a client with threads of its own.
"""

import asyncio
import logging
import resource
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple, TypeVar

from penstock.client.consumer.consumer import Consumer
from penstock.client.settings import as_bool
from penstock.errors import ConfigError, PenstockError
from penstock.rest.config import RestConfig
from penstock.rest.errors import (
    ConsumerAlreadyExists,
    ConsumerInstanceNotFound,
    InvalidConsumerConfig,
    TooManyRequests,
)
from penstock.rest.payloads.plain import DECODERS
from penstock.rest.v2.instance import ConsumerInstance, InstanceSettings
from penstock.rest.v2.requests import InstanceRequest
from penstock.rest.v2.schemas import Schemas

log = logging.getLogger("penstock.rest")

T = TypeVar("T")

_DEFAULTS = {
    # There may be a thousand of them, so each reads ahead little.
    "queued.max.messages.kbytes": "2048",
    "statistics.interval.ms": "0",
}
_DESCRIPTORS = 10  # What one of them has open: sockets to brokers, pipes between its threads.
_OTHER_DESCRIPTORS = 300  # For all else that the process has open.
_WAITING_MAX = 32  # Requests that may wait for their turn at one instance.
_CLOSING_MAX = 32  # Instances that leave their groups at the same time.
_LOOK_S = 1.0


class InstanceId(NamedTuple):
    """A name is unique within its group."""

    group: str
    name: str


class _Held:
    """An instance and who uses it."""

    def __init__(self, instance: ConsumerInstance, now_s: float) -> None:
        self.instance = instance
        self.turn = asyncio.Lock()
        self.users = 0
        self.used_s = now_s
        self.is_gone = False


class ConsumerInstances:
    """The instances by id; used by one event loop."""

    def __init__(self, config: RestConfig, schemas: Schemas) -> None:
        self._config = config
        self._schemas = schemas
        self._count_max = min(config.consumers_max, _descriptor_room(config.consumers_max))
        self._held: dict[InstanceId, _Held | None] = {}  # None: it is being made.
        # As many as can wait for records at once; a thread is made when one is needed.
        self._threads = ThreadPoolExecutor(
            config.consumers_max + _CLOSING_MAX, thread_name_prefix="rest-consumer"
        )
        self._closing = asyncio.Semaphore(_CLOSING_MAX)
        self._ending: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def open(cls, config: RestConfig, schemas: Schemas) -> AsyncIterator["ConsumerInstances"]:
        """At the end all instances leave their groups."""
        instances = cls(config, schemas)
        watching = asyncio.create_task(instances._end_idle(), name="idle consumers")
        try:
            yield instances
        finally:
            watching.cancel()
            await instances.close()

    async def create(self, group: str, wanted: InstanceRequest) -> str:
        """A new instance; its name."""
        name = wanted.name or self._new_name()
        key = InstanceId(group, name)
        if key in self._held:
            raise ConsumerAlreadyExists
        if len(self._held) >= self._count_max:
            why = "consumer.instances.max allows"
            if self._count_max < self._config.consumers_max:
                why = "the limit of open files of its process leaves room for"
            raise TooManyRequests(
                f"This proxy holds {self._count_max} consumer instances, the most that {why}. "
                "Delete one, or try again later."
            )
        self._held[key] = None  # The place is taken while the consumer is made.
        try:
            instance = await self._run(lambda: self._make(group, wanted))
        except BaseException:
            self._held.pop(key, None)
            raise
        self._held[key] = _Held(instance, asyncio.get_running_loop().time())
        return name

    async def use(self, key: InstanceId, call: Callable[[ConsumerInstance], T]) -> T:
        """What an instance answers, when it is this request's turn."""
        held = self._find(key)
        if held.users >= _WAITING_MAX:
            raise TooManyRequests(f"{_WAITING_MAX} requests wait for this consumer instance.")
        held.users += 1
        try:
            async with held.turn:
                if held.is_gone:
                    raise ConsumerInstanceNotFound
                return await self._run(lambda: call(held.instance), held.instance.wake)
        finally:
            held.users -= 1
            held.used_s = asyncio.get_running_loop().time()

    def settings_of(self, key: InstanceId) -> InstanceSettings:
        """How an instance was made."""
        return self._find(key).instance.settings

    async def delete(self, key: InstanceId) -> None:
        """End an instance; what it is busy with is broken off."""
        held = self._find(key)
        self._held[key] = None
        try:
            await self._end(held)
        finally:
            self._held.pop(key, None)

    async def end_all(self) -> None:
        """Every instance leaves its group; reads that wait are broken off."""
        everything = [held for held in self._held.values() if held is not None]
        self._held.clear()
        if everything:
            log.info("%d consumer instances leave their groups", len(everything))
        await asyncio.gather(*(self._end(held) for held in everything), *self._ending)

    async def close(self) -> None:
        """End them all, and those that were still being made."""
        await self.end_all()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _find(self, key: InstanceId) -> _Held:
        held = self._held.get(key)
        if held is None:
            raise ConsumerInstanceNotFound
        return held

    def _new_name(self) -> str:
        own = f"{self._config.instance_id}-" if self._config.instance_id else ""
        return f"rest-consumer-{own}{uuid.uuid4()}"

    def _make(self, group: str, wanted: InstanceRequest) -> ConsumerInstance:
        decode = DECODERS.get(wanted.format) or self._schemas.decoder()
        given = {**_DEFAULTS, **self._config.consumer, "group.id": group}
        if wanted.offset_reset is not None:
            given["auto.offset.reset"] = wanted.offset_reset
        settings = self._settings(wanted, given.get("enable.auto.commit", "true"))
        # The instance commits by itself, what was handed out and nothing else.
        given["enable.auto.commit"] = "false"

        def make() -> Consumer[bytes, bytes]:
            return Consumer(given)

        try:
            return ConsumerInstance(make, settings, decode)
        except ConfigError as error:
            raise InvalidConsumerConfig(f"Invalid consumer configuration: {error}") from error

    def _settings(self, wanted: InstanceRequest, auto_commit: str) -> InstanceSettings:
        """What the request says, else what the proxy was told."""
        bytes_min, commits = wanted.fetch_min_bytes, wanted.auto_commit
        return InstanceSettings(
            format=wanted.format,
            auto_commit=as_bool("enable.auto.commit", auto_commit) if commits is None else commits,
            timeout_s=wanted.timeout_s or self._config.consume_timeout_s,
            bytes_min=self._config.fetch_min_bytes if bytes_min is None else bytes_min,
            bytes_max=self._config.consume_bytes_max,
        )

    async def _end(self, held: _Held) -> None:
        """Wait for who uses it, then let it leave its group."""
        held.is_gone = True
        if held.turn.locked():
            held.instance.wake()
        async with held.turn, self._closing:
            with suppress(PenstockError):  # Nobody is left to be told.
                await self._run(held.instance.close)

    async def _end_idle(self) -> None:
        """Look now and then for those that nobody asks any more."""
        timeout_s = self._config.consumer_timeout_s
        while True:
            await asyncio.sleep(min(_LOOK_S, timeout_s / 2))
            now_s = asyncio.get_running_loop().time()
            for key, held in list(self._held.items()):
                if held is not None and not held.users and now_s - held.used_s > timeout_s:
                    log.info("The consumer %s of group %s was idle: it ends", key.name, key.group)
                    del self._held[key]
                    ending = asyncio.create_task(self._end(held), name="ending consumer")
                    self._ending.add(ending)
                    ending.add_done_callback(self._ending.discard)

    async def _run(self, call: Callable[[], T], wake: Callable[[], None] | None = None) -> T:
        """Call in a thread. Whoever is cancelled waits for its end: two at once must not be."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if wake is not None:
                wake()
            await asyncio.wait({running})
            raise


def _descriptor_room(wanted: int) -> int:
    """How many instances fit below the limit of open files, which is raised as far as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted * _DESCRIPTORS + _OTHER_DESCRIPTORS
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, (soft - _OTHER_DESCRIPTORS) // _DESCRIPTORS)
