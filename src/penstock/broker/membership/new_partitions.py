"""Many new partitions at once: their logs are opened bit by bit, then the image is obeyed.

A partition is four new files, and a slow disk takes milliseconds for each of them. A thousand
in one go would hold up the event loop until the session with the metadata store is lost. So the
logs are opened ahead, a few at a time. Images that come meanwhile wait. Each image is complete, so
only the last of them is applied. The rest of the broker sees images that arrive late.
"""

import asyncio
import gc
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.cluster.image.image import ClusterImage
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.log_dirs import WantedLog

AT_ONCE = 64  # Up to so many logs are opened without a pause.
_SLICE = 8
_FREEZE_EVERY = 1000


class HostedPartitions(Protocol):
    """What is needed here of replica/table.py."""

    def missing(self, image: ClusterImage) -> list[WantedLog]: ...

    @property
    def has_crashed_logs(self) -> bool: ...

    def open_ahead(self, wanted: WantedLog) -> None: ...

    def lead_ahead(self, wanted: WantedLog, image: ClusterImage) -> None: ...

    def drop_opened_ahead(self, wanted: WantedLog, image: ClusterImage) -> None: ...


class PartitionOpener:
    """Takes images, opens the logs they need, then passes them to `obey`.

    A lone broker leads each new partition as soon as its log is open, before the whole topic is
    there: no other broker could lead it.
    """

    def __init__(
        self,
        table: HostedPartitions,
        *,
        obey: Callable[[ClusterImage], None],
        is_alone: bool = False,
    ) -> None:
        self._is_alone = is_alone
        self._table = table
        self._obey = obey
        self._latest: ClusterImage | None = None
        self._opening: asyncio.Task[None] | None = None
        self._unfrozen = 0  # Logs opened since the last `gc.freeze`.

    def take(self, image: ClusterImage) -> None:
        """Obey the image, now or when the logs it needs are open."""
        if self._opening is not None:
            self._latest = image
            return
        wanted = self._table.missing(image)
        if len(wanted) <= AT_ONCE or self._table.has_crashed_logs:
            self._obey(image)
            self._freeze(len(wanted))
            return
        self._latest = image
        self._opening = asyncio.create_task(self._open(wanted), name="new partitions")

    async def wait_until_settled(self) -> None:
        """Wait until the images taken so far are obeyed."""
        while (opening := self._opening) is not None:
            await asyncio.wait([opening])

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
            # A later image may need more logs, or logs of a topic that was created again.
            wanted = [
                one
                for one in self._table.missing(self._newest())
                if one.partition not in opened or opened[one.partition].topic_id != one.topic_id
            ]
        image, self._latest, self._opening = self._newest(), None, None
        self._obey(image)
        for one in opened.values():
            self._table.drop_opened_ahead(one, image)
        self._freeze(len(opened))

    def _freeze(self, opened_count: int) -> None:
        """Take the new logs out of garbage collection: walking thousands of them takes long."""
        self._unfrozen += opened_count
        if self._unfrozen >= _FREEZE_EVERY:
            self._unfrozen = 0
            gc.freeze()

    def _open_one(self, wanted: WantedLog, opened: dict[TopicPartition, WantedLog]) -> None:
        before = opened.get(wanted.partition)
        if before is not None:
            self._table.drop_opened_ahead(before, self._newest())
        if self._is_alone:
            self._table.lead_ahead(wanted, self._newest())
        else:
            self._table.open_ahead(wanted)
        opened[wanted.partition] = wanted

    def _newest(self) -> ClusterImage:
        assert self._latest is not None
        return self._latest
