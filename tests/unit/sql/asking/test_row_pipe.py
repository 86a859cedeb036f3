"""Rows from a thread to a request."""

import asyncio
import threading

import pytest

from penstock.sql.asking.row_pipe import SLOW, PipeClosed, RowPipe


def test_rows_arrive_in_order_and_the_end_is_told() -> None:
    async def scene() -> list[int]:
        pipe: RowPipe[int] = RowPipe(asyncio.get_running_loop(), slow_s=60, waiting_max=3)

        def make() -> None:
            for number in range(20):
                pipe.put([2 * number, 2 * number + 1])
            pipe.end()

        thread = threading.Thread(target=make)
        thread.start()
        found: list[int] = []
        while (rows := await pipe.take()) is not None:
            found += rows
        thread.join()
        assert pipe.failure is None
        return found

    assert asyncio.run(scene()) == list(range(40))


def test_a_client_that_takes_nothing_is_cut_off_and_told() -> None:
    async def scene() -> str | None:
        pipe: RowPipe[int] = RowPipe(asyncio.get_running_loop(), slow_s=0.05, waiting_max=1)
        pipe.put([1])
        with pytest.raises(PipeClosed):
            await asyncio.to_thread(pipe.put, [2])
        assert await pipe.take() is None
        return pipe.failure

    assert asyncio.run(scene()) == SLOW


def test_whoever_makes_rows_for_nobody_is_stopped() -> None:
    async def scene() -> None:
        pipe: RowPipe[int] = RowPipe(asyncio.get_running_loop(), slow_s=60)
        pipe.end("over")
        pipe.end("once more")
        with pytest.raises(PipeClosed):
            pipe.put([1])
        assert await pipe.take() is None
        assert pipe.failure == "over"

    asyncio.run(scene())
