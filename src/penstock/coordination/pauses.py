"""Pauses between two tries of something that must not be given up."""

import asyncio
from typing import Final

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0


class Pauses:
    """Each pause is twice as long as the one before, up to a second."""

    def __init__(self) -> None:
        self._next_s = FIRST_PAUSE_S

    async def pause(self) -> None:
        await asyncio.sleep(self._next_s)
        self._next_s = min(2 * self._next_s, LONGEST_PAUSE_S)
