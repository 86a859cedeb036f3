"""One reader of a stream: what waits for it, within bounds, and how far it has come.

The feed pushes and never waits. A reader that falls too far behind is cut: what waits is dropped,
and it is told where it can resume.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from penstock.rest.v3.shown_records import ShownFormats
from penstock.rest.v3.streams.frames import HEARTBEAT, Framing
from penstock.rest.v3.streams.positions import positions_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a reader wants of a topic."""

    topic: str
    framing: Framing
    formats: ShownFormats = field(default_factory=ShownFormats)
    key: bytes | None = None  # None: records of all keys.


class StreamReader:
    """A reader whose own task takes what waits; everything else only adds to it."""

    def __init__(self, wish: Wish, positions: dict[int, int], buffer_bytes: int) -> None:
        self.wish = wish
        self.positions = positions  # The next offset that it has not been given, by partition.
        self.told = positions_text(positions)  # Where it can resume, after all it was sent.
        self.end_reason: str | None = None  # None: it goes on.
        self._buffer_bytes = buffer_bytes
        self._waiting: deque[tuple[bytes, str]] = deque()
        self._waiting_bytes = 0
        self._taken = self.told
        self._waker: asyncio.Future[None] | None = None

    def push(self, frames: bytes, position: str) -> None:
        """Give it something; position: where it can resume after that."""
        if self.end_reason is not None:
            return
        is_behind = bool(self._waiting)  # Who waits for us may get more than that at once.
        self._waiting.append((frames, position))
        self._waiting_bytes += len(frames)
        if is_behind and self._waiting_bytes > self._buffer_bytes:
            self.end("slow")
        self._wake()

    def beat(self) -> None:
        """Let a quiet connection be seen alive."""
        if not self._waiting and self.wish.framing is Framing.SSE:
            self.push(HEARTBEAT, self.told)

    def end(self, reason: str) -> None:
        """Give it nothing more; what waits is dropped."""
        if self.end_reason is None:
            self.end_reason = reason
            self._waiting.clear()
            self._waiting_bytes = 0
            self._wake()

    async def take(self) -> bytes | None:
        """What waits, all of it; None: the stream has ended."""
        while not self._waiting:
            if self.end_reason is not None:
                return None
            self._waker = asyncio.get_running_loop().create_future()
            await self._waker
        return self._take_all()

    def note_sent(self) -> None:
        """What was taken has left."""
        self.told = self._taken

    def _take_all(self) -> bytes:
        self._waiting_bytes = 0
        if len(self._waiting) == 1:
            frames, self._taken = self._waiting.popleft()
            return frames
        self._taken = self._waiting[-1][1]
        frames = b"".join(one for one, _ in self._waiting)
        self._waiting.clear()
        return frames

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)
