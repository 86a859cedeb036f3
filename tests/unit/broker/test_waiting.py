"""What waits without a task: woken once a turn, in order, at the latest at its deadline."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.waiting import TICK_S, TURN_MAX, Asker, Unanswered, WaitingRoom

LONG_S = 600.0


class Wish(Unanswered):
    """Something that is answered with what it was given."""

    __slots__ = ("given",)

    def __init__(self, room: WaitingRoom) -> None:
        super().__init__(room)
        self.given: str | None = None

    def start(self, asker: Asker) -> None:
        self.begin(asker, asyncio.get_running_loop().time() + LONG_S)

    def look(self) -> str | None:
        return "late" if self.is_late else self.given


class Notes:
    """An asker that notes who was woken, and may do something about it."""

    def __init__(self, name: int, woken: list[int]) -> None:
        self.name = name
        self.woken = woken
        self.fails = False

    def wake(self) -> None:
        self.woken.append(self.name)
        if self.fails:
            raise RuntimeError("an error of ours")


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 60))


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_all_that_were_woken_in_one_turn_are_looked_at_in_the_next_and_each_once() -> None:
    async def story() -> None:
        room, woken = WaitingRoom(), list[int]()
        wishes = [Wish(room) for _ in range(3)]
        for name, wish in enumerate(wishes):
            wish.start(Notes(name, woken))
        for name in (2, 0, 2, 1, 0):
            wishes[name].wake_soon()
        assert woken == []
        await turns(1)
        assert woken == [2, 0, 1]
        wishes[1].wake_soon()
        await turns(1)
        assert woken == [2, 0, 1, 1]

    run(story())


def test_who_has_left_is_not_woken_although_it_was_about_to_be() -> None:
    async def story() -> None:
        room, woken = WaitingRoom(), list[int]()
        first, second = Wish(room), Wish(room)
        first.start(Notes(1, woken))
        second.start(Notes(2, woken))
        first.wake_soon()
        second.wake_soon()
        first.leave()
        await turns()
        assert woken == [2]
        second.leave()
        second.leave()
        assert len(room) == 0

    run(story())


def test_more_than_a_turn_takes_are_served_in_several() -> None:
    async def story() -> None:
        room, woken = WaitingRoom(), list[int]()
        for name in range(TURN_MAX + 10):
            wish = Wish(room)
            wish.start(Notes(name, woken))
            wish.wake_soon()
        await turns(1)
        assert len(woken) == TURN_MAX
        await turns(1)
        assert woken == list(range(TURN_MAX + 10))

    run(story())


def test_an_error_of_one_keeps_nobody_else_asleep() -> None:
    async def story() -> None:
        told: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, c: told.append(c["message"]))
        room, woken = WaitingRoom(), list[int]()
        for name in range(3):
            notes = Notes(name, woken)
            notes.fails = name == 1
            wish = Wish(room)
            wish.start(notes)
            wish.wake_soon()
        await turns()
        assert woken == [0, 1, 2]
        assert len(told) == 1

    run(story())


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8))
def test_a_wait_ends_at_its_deadline_and_not_much_later(waits_ms: list[int]) -> None:
    async def story() -> None:
        room, loop = WaitingRoom(), asyncio.get_running_loop()
        begun_s = loop.time()

        async def ended_s(wait_ms: int) -> float:
            wish = Wish(room)
            woken = asyncio.Event()
            asker = type("Bell", (), {"wake": lambda _: woken.set()})()
            wish.begin(asker, begun_s + wait_ms / 1000)
            await woken.wait()
            assert wish.look() == "late"
            return loop.time() - begun_s

        ends_s = await asyncio.gather(*map(ended_s, waits_ms))
        for wait_ms, end_s in zip(waits_ms, ends_s, strict=True):
            assert end_s >= wait_ms / 1000 - TICK_S / 100
        assert len(room) == 0

    run(story())


def test_nothing_is_kept_of_what_was_answered_long_before_its_deadline() -> None:
    async def story() -> None:
        room = WaitingRoom()
        for _ in range(10):
            wish = Wish(room)
            wish.start(Notes(0, []))
            wish.leave()
        assert len(room) == 0
        assert not room._ticks

    run(story())


def test_a_task_can_wait_for_it_too_and_looks_until_there_is_an_answer() -> None:
    async def story() -> None:
        room = WaitingRoom()
        wish = Wish(room)

        async def wait() -> Any:
            return await wish

        waiting = asyncio.ensure_future(wait())
        await turns()
        wish.wake_soon()
        await turns()
        assert not waiting.done()
        wish.given = "enough"
        wish.wake_soon()
        assert await waiting == "enough"
        assert len(room) == 0

    run(story())


def test_a_task_that_is_cancelled_waits_for_nothing_more() -> None:
    async def story() -> None:
        room = WaitingRoom()

        async def wait() -> Any:
            return await Wish(room)

        waiting = asyncio.ensure_future(wait())
        await turns()
        assert len(room) == 1
        waiting.cancel()
        await turns()
        assert waiting.cancelled()
        assert len(room) == 0

    run(story())
