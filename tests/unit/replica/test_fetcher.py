"""Whoever waits for a fetcher's end and is cancelled meanwhile hears of it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.fetcher import Fetcher


def test_who_is_cancelled_while_waiting_for_the_end_hears_of_it() -> None:
    async def story() -> None:
        held = asyncio.Event()
        fetcher: Any = SimpleNamespace(_task=asyncio.create_task(held.wait()))
        waiting = asyncio.create_task(Fetcher.wait_until_ended(fetcher))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not fetcher._task.done()  # Only who waited was cancelled.
        fetcher._task.cancel()
        await Fetcher.wait_until_ended(fetcher)  # The fetcher's own cancellation is its end.

    asyncio.run(story())
