"""Questions to one broker, gathered while the last one is under way.

Whatever is added while a request travels goes out together in the next: under load a few large
requests instead of many small ones, without load no waiting at all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Outbox(Generic[Item, Answer]):
    """`send` takes what has gathered and answers each item; it never fails as a whole."""

    def __init__(self, send: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]]) -> None:
        self._send = send
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._sender: asyncio.Task[None] | None = None

    async def put(self, item: Item) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._sender is None:
            self._sender = asyncio.create_task(self._empty())
        return await future

    async def _empty(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._send_batch(batch)
        finally:
            self._sender = None

    async def _send_batch(self, batch: Sequence[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._send([item for item, _ in batch])
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
