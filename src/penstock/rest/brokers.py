"""The brokers as requests ask them: questions of an Admin, put in threads, never in the loop.

An Admin is for one thread at a time and waits for its answers, so there are a few of them, each
with connections of its own, and a question takes whichever is free. More questions than can be
waited for are refused.
"""

import asyncio
import queue
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from penstock.client.admin import Admin
from penstock.errors import LeaderNotAvailable, UnknownTopicOrPartition, error_for
from penstock.rest.errors import TooManyRequests

T = TypeVar("T")

_ADMINS = 4
_WAITING_MAX = 256
_TOPIC_AGE_S = 10.0
_TOPICS_KNOWN_MAX = 10_000
_ATTEMPTS = 4
_PAUSE_S = 0.1


class Brokers:
    """A few Admins and what they found out; used by one event loop."""

    def __init__(self, settings: Mapping[str, str], admins: int = _ADMINS) -> None:
        self._settings = {"default.api.timeout.ms": "30000", **settings}
        self._threads = ThreadPoolExecutor(admins, thread_name_prefix="rest-admin")
        self._free: queue.LifoQueue[Admin] = queue.LifoQueue()
        self._waiting = 0
        self._cluster_id: str | None = None
        self._topics: dict[str, tuple[int, float]] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Mapping[str, str], *, admins: int = _ADMINS
    ) -> AsyncIterator["Brokers"]:
        """Connections are made when there is something to ask."""
        Admin(settings).close()  # A setting that cannot be used is told before anything starts.
        brokers = cls(settings, admins)
        try:
            yield brokers
        finally:
            await asyncio.to_thread(brokers.close)

    async def ask(self, question: Callable[[Admin], T]) -> T:
        """What the cluster answers; the question runs in a thread."""
        if self._waiting >= _WAITING_MAX:
            raise TooManyRequests
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._ask, question)
        finally:
            self._waiting -= 1

    async def cluster_id(self) -> str:
        """The name of the cluster, asked for once."""
        if self._cluster_id is None:
            found = await self.ask(lambda admin: admin.describe_cluster())
            self._cluster_id = found.cluster_id or ""
        return self._cluster_id

    async def partition_count(self, topic: str, *, may_create: bool = True) -> int:
        """How many partitions a topic has; UnknownTopicOrPartition if there is none.

        For one who writes, the topic comes into being by this where brokers create topics by
        themselves. What was found holds for some seconds.
        """
        clock = asyncio.get_running_loop().time
        known = self._topics.get(topic)
        if known is not None and clock() < known[1]:
            return known[0]
        count = await self.ask(lambda admin: _partition_count(admin, topic, may_create))
        if len(self._topics) >= _TOPICS_KNOWN_MAX:
            self._topics.clear()
        self._topics[topic] = (count, clock() + _TOPIC_AGE_S)
        return count

    def forget(self, topic: str) -> None:
        """It was changed: ask anew."""
        self._topics.pop(topic, None)

    def close(self) -> None:
        """End the threads and the connections; a question under way is waited for."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._free.empty():
            self._free.get().close()

    def _ask(self, question: Callable[[Admin], T]) -> T:
        try:
            admin = self._free.get_nowait()
        except queue.Empty:
            admin = Admin(self._settings)
        try:
            return question(admin)
        finally:
            self._free.put(admin)


def _partition_count(admin: Admin, topic: str, may_create: bool) -> int:
    """A topic that comes into being by the question may be there only a moment later."""
    attempts = _ATTEMPTS if may_create else 1
    while True:
        attempts -= 1
        (found,) = admin.cluster.metadata([topic], allow_auto_creation=may_create).topics
        if found.partitions:
            return len(found.partitions)
        error = error_for(found.error_code, f"Topic {topic}: error {found.error_code}")
        if not attempts or not isinstance(error, UnknownTopicOrPartition | LeaderNotAvailable):
            raise error
        time.sleep(_PAUSE_S)
