"""Decisions as records of a topic, for who keeps them: `penstock.audit.topic`.

A request only leaves its decisions in a queue; a task writes them. When the topic cannot be
written, the queue fills, and what does not fit is dropped and counted: the audit never holds up
the broker, and never takes more memory than its queue.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from penstock.errors import PenstockError
from penstock.records.batch import Record
from penstock.security.acls.audit import AuditedAction
from penstock.security.acls.rules import AclResourceType

log = logging.getLogger("kafka.authorizer.AuditTopic")

_QUEUE_MAX: Final = 10_000
_WRITTEN_AT_ONCE: Final = 1_000
_AGAIN_S: Final = 1.0
_LAST_S: Final = 5.0  # How long a broker that stops waits for the last of them.

Write = Callable[[Sequence[Record]], Awaitable[None]]


class AuditTopic:
    """What is to be written, and the task that writes it."""

    def __init__(
        self,
        topic: str,
        *,
        broker_id: int,
        with_allowed: bool,
        write: Write,
        now_ms: Callable[[], int],
        again_s: float = _AGAIN_S,
        last_s: float = _LAST_S,
    ) -> None:
        self.with_allowed = with_allowed
        self.dropped = 0
        self._topic = topic
        self._broker_id = broker_id
        self._write = write
        self._now_ms = now_ms
        self._again_s = again_s
        self._last_s = last_s
        self._queue: deque[Record] = deque()
        self._has_some = asyncio.Event()
        self._is_stopping = False

    def add(self, action: AuditedAction, *, is_allowed: bool, repeats: int) -> None:
        """Take one; returns at once, whatever becomes of it."""
        if is_allowed and _is_about(action, self._topic):
            return  # The writing itself, on another broker: each record would be another one.
        if len(self._queue) >= _QUEUE_MAX:
            self.dropped += 1
            return
        now_ms = self._now_ms()
        told = self._told(action, is_allowed, repeats, now_ms)
        value = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
        self._queue.append(Record(0, now_ms, str(action.principal).encode(), value))
        self._has_some.set()

    def _told(
        self, action: AuditedAction, is_allowed: bool, repeats: int, now_ms: int
    ) -> dict[str, object]:
        return {
            "timestamp": now_ms,
            "broker": self._broker_id,
            "principal": str(action.principal),
            "host": action.host,
            "operation": action.operation.name,
            "resourceType": action.resource.type.name,
            "resourceName": action.resource.name,
            "request": action.request,
            "allowed": is_allowed,
            "repeats": repeats,
        }

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Records are written while the context is open, and what is left at its end."""
        writing = asyncio.create_task(self._keep_writing(), name="audit topic")
        try:
            yield
        finally:
            self._is_stopping = True
            self._has_some.set()
            await asyncio.wait([writing], timeout=self._last_s)
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing

    async def _keep_writing(self) -> None:
        while True:
            await self._has_some.wait()
            if not self._queue:
                if self._is_stopping:
                    return
                self._has_some.clear()
                continue
            await self._write_some()

    async def _write_some(self) -> None:
        some = [self._queue[at] for at in range(min(len(self._queue), _WRITTEN_AT_ONCE))]
        try:
            await self._write(some)
        except PenstockError as error:
            log.warning("The audit topic %s cannot be written: %s", self._topic, error)
            await asyncio.sleep(self._again_s)
            return
        for _ in some:
            self._queue.popleft()
        if self.dropped:
            log.warning("%d decisions did not reach the audit topic %s", self.dropped, self._topic)
            self.dropped = 0


def _is_about(action: AuditedAction, topic: str) -> bool:
    return action.resource.type is AclResourceType.TOPIC and action.resource.name == topic
