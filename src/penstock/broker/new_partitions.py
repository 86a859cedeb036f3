"""Many new partitions at once: their logs are opened bit by bit, then the image is obeyed.

A partition is four new files, and a slow disk takes milliseconds for each of them. A thousand
in one go would hold up the event loop until the session with the metadata store is lost. So the
logs are opened ahead, a few at a time. Images that come meanwhile wait; each says everything, so
only the last of them counts. To the rest of the broker it is a slow network.
"""

import asyncio
import gc
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.cluster.image import ClusterImage
from penstock.storage.log_dirs import WantedLog
from penstock.storage.topic_partition import TopicPartition

AT_ONCE = 64  # So many are opened in the course of obeying.
_SLICE = 8


class Table(Protocol):
    """The partitions of this broker, as far as they matter here."""

    def missing(self, image: ClusterImage) -> list[WantedLog]: ...

    @property
    def has_crashed_logs(self) -> bool: ...

    def open_ahead(self, wanted: WantedLog) -> None: ...

    def drop_opened_ahead(self, wanted: WantedLog, image: ClusterImage) -> None: ...


class NewPartitions:
    """Stands between the images and who obeys them."""

    def __init__(self, table: Table, *, obey: Callable[[ClusterImage], None]) -> None:
        self._table = table
        self._obey = obey
        self._latest: ClusterImage | None = None
        self._opening: asyncio.Task[None] | None = None

    def take(self, image: ClusterImage) -> None:
        """Obey the image, now or when the logs it needs are open."""
        if self._opening is not None:
            self._latest = image
            return
        wanted = self._table.missing(image)
        if len(wanted) <= AT_ONCE or self._table.has_crashed_logs:
            self._obey(image)
            return
        self._latest = image
        self._opening = asyncio.create_task(self._open(wanted), name="new partitions")

    async def close(self) -> None:
        """Obey nothing more: the session is over. The next one begins with a whole image."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait([opening])

    async def _open(self, wanted: Sequence[WantedLog]) -> None:
        opened: dict[TopicPartition, WantedLog] = {}
        while wanted:
            for start in range(0, len(wanted), _SLICE):
                for one in wanted[start : start + _SLICE]:
                    self._open_one(one, opened)
                await asyncio.sleep(0)
            # What came meanwhile may need more, or the log of a topic made anew.
            wanted = [
                one
                for one in self._table.missing(self._newest())
                if one.partition not in opened or opened[one.partition].topic_id != one.topic_id
            ]
        image, self._latest, self._opening = self._newest(), None, None
        self._obey(image)
        for one in opened.values():
            self._table.drop_opened_ahead(one, image)
        gc.freeze()  # They stay: walking thousands of them again and again would be felt.

    def _open_one(self, wanted: WantedLog, opened: dict[TopicPartition, WantedLog]) -> None:
        before = opened.get(wanted.partition)
        if before is not None:
            self._table.drop_opened_ahead(before, self._newest())
        self._table.open_ahead(wanted)
        opened[wanted.partition] = wanted

    def _newest(self) -> ClusterImage:
        assert self._latest is not None
        return self._latest
