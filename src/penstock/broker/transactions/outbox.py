"""Questions to one broker: sent at once while few are under way, gathered while many are.

An answer may take long, for it waits for replicas. So a question does not wait for the answer to
the one before: it goes out on a lane of its own, and each lane is a connection, so that answers do
not wait for each other either. While all lanes are busy questions gather, and whatever has
gathered goes out together on the first that is free: under load a few large requests instead of
many small ones.

The lanes keep no order. Nothing that is asked here needs one: coordinators and partitions judge by
the producer's epoch, and whoever must know an answer before asking on waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

LANES: Final = 4


class Outbox(Generic[Item, Answer]):
    """`send` takes a lane and what goes there, and answers each item; it never fails as a whole."""

    def __init__(self, send: Callable[[int, Sequence[Item]], Awaitable[Sequence[Answer]]]) -> None:
        self._send = send
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._senders: dict[int, asyncio.Task[None]] = {}  # By lane.
        self._is_taking = False  # A sender is about to take what waits.

    async def put(self, item: Item) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if not self._is_taking and len(self._senders) < LANES:
            lane = next(lane for lane in range(LANES) if lane not in self._senders)
            self._senders[lane] = asyncio.create_task(self._empty(lane))
            self._is_taking = True
        return await future

    async def _empty(self, lane: int) -> None:
        self._is_taking = False
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._send_batch(lane, batch)
        finally:
            del self._senders[lane]

    async def _send_batch(
        self, lane: int, batch: Sequence[tuple[Item, asyncio.Future[Answer]]]
    ) -> None:
        try:
            answers = await self._send(lane, [item for item, _ in batch])
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # Whoever left does not ask for it.
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)


class Outboxes(Generic[Item, Answer]):
    """An outbox for each broker that is asked; `send` takes the broker first."""

    def __init__(
        self, send: Callable[[int, int, Sequence[Item]], Awaitable[Sequence[Answer]]]
    ) -> None:
        self._send = send
        self._by_broker: dict[int, Outbox[Item, Answer]] = {}

    async def put(self, broker_id: int, item: Item) -> Answer:
        outbox = self._by_broker.get(broker_id)
        if outbox is None:
            outbox = self._by_broker[broker_id] = Outbox(partial(self._send, broker_id))
        return await outbox.put(item)
