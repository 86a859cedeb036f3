"""Work that may take long, done in a thread while requests are served."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(work: Callable[..., Result], *arguments: object) -> Result:
    """Like `to_thread`, but a step once begun is waited for, even when we are cancelled."""
    step = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(step)
    except asyncio.CancelledError:
        await asyncio.wait([step])
        raise
