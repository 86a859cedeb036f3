"""Questions between brokers: none waits for another's answer, and many go together."""

import asyncio
from collections.abc import Sequence

import pytest

from penstock.broker.transactions.outbox import LANES, Outbox


class Line:
    """A broker that answers when the test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, list[int]]] = []  # Lane and items, in the order they came.
        self._answered: dict[int, asyncio.Future[None]] = {}
        self.outbox: Outbox[int, int] = Outbox(self._send)

    async def _send(self, lane: int, items: Sequence[int]) -> Sequence[int]:
        assert lane not in self._answered  # One at a time on each.
        self.sent.append((lane, list(items)))
        waiting = self._answered[lane] = asyncio.get_running_loop().create_future()
        try:
            await waiting
        finally:
            del self._answered[lane]
        return [-item for item in items]

    async def put(self, *items: int) -> "list[asyncio.Task[int]]":
        tasks = [asyncio.create_task(self.outbox.put(item)) for item in items]
        for _ in range(3):
            await asyncio.sleep(0)
        return tasks

    async def answer(self, lane: int, error: Exception | None = None) -> None:
        if error is None:
            self._answered[lane].set_result(None)
        else:
            self._answered[lane].set_exception(error)
        for _ in range(3):
            await asyncio.sleep(0)


def test_what_is_asked_at_the_same_time_goes_together() -> None:
    async def story() -> None:
        line = Line()
        tasks = await line.put(1, 2, 3)
        assert line.sent == [(0, [1, 2, 3])]
        await line.answer(0)
        assert [await task for task in tasks] == [-1, -2, -3]

    asyncio.run(story())


def test_a_question_does_not_wait_for_the_answer_to_the_one_before() -> None:
    async def story() -> None:
        line = Line()
        (first,) = await line.put(1)
        (second,) = await line.put(2)
        assert line.sent == [(0, [1]), (1, [2])]
        await line.answer(1)
        assert await second == -2
        assert not first.done()
        (third,) = await line.put(3)
        assert line.sent[-1] == (1, [3])
        await line.answer(0)
        await line.answer(1)
        assert [await first, await third] == [-1, -3]

    asyncio.run(story())


def test_questions_gather_while_all_lanes_are_busy() -> None:
    async def story() -> None:
        line = Line()
        busy = [task for item in range(LANES) for task in await line.put(item)]
        gathered = [task for item in range(10, 20) for task in await line.put(item)]
        assert len(line.sent) == LANES
        await line.answer(2)
        assert line.sent[LANES:] == [(2, list(range(10, 20)))]
        for lane in range(LANES):
            await line.answer(lane)
        answers = [await task for task in [*busy, *gathered]]
        assert answers == [-item for item in [*range(LANES), *range(10, 20)]]

    asyncio.run(story())


def test_a_request_that_fails_takes_nothing_else_with_it() -> None:
    async def story() -> None:
        line = Line()
        (first,) = await line.put(1)
        (second,) = await line.put(2)
        await line.answer(0, RuntimeError("lost"))
        with pytest.raises(RuntimeError, match="lost"):
            await first
        await line.answer(1)
        assert await second == -2
        (third,) = await line.put(3)
        assert line.sent[-1] == (0, [3])
        await line.answer(0)
        assert await third == -3

    asyncio.run(story())
