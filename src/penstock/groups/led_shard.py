"""A shard with its log and its clock: loaded in pieces, woken when a timer is due.

The coordinator owns these, one for each partition it leads. The shard itself knows nothing of the
event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from penstock.errors import CorruptRecord, ErrorCode, ProtocolError
from penstock.groups.shard import Shard
from penstock.records.batch import BatchHeader, Record
from penstock.records.control import ControlType, read_marker
from penstock.replica.state_log import StateLog

log = logging.getLogger("kafka.coordinator.group.GroupCoordinator")

_CHUNK_BYTES: Final = 1 << 16  # Of the log, read between two turns of the event loop.


class LedShard:
    """One partition of `__consumer_offsets` in one leader epoch."""

    def __init__(self, state_log: StateLog, make: "Callable[[LedShard], Shard]") -> None:
        self.log = state_log
        self.is_loaded = False
        self._loop = asyncio.get_running_loop()
        self._now_ms = state_log.now_ms
        self._wake: asyncio.TimerHandle | None = None
        self._wake_ms = 0
        self._began_s = 0.0
        self.is_closed = False
        self._gone_topics: set[str] = set()  # Deleted while the log was being read.
        self._markers: list[tuple[int, bool]] = []  # Appended meanwhile: producer, commit or not.
        self.shard = make(self)

    # The shard's clock

    def now_ms(self) -> int:
        return self._now_ms()

    def elapsed_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def wind_timers(self) -> None:
        """Be woken when the shard's next timer may be due."""
        next_ms = self.shard.timers.next_ms()
        if next_ms is None or (self._wake is not None and self._wake_ms <= next_ms):
            return
        if self._wake is not None:
            self._wake.cancel()
        self._wake_ms = next_ms
        self._wake = self._loop.call_at((next_ms + 1) / 1000, self._ring)

    def _ring(self) -> None:
        self._wake = None
        try:
            self.shard.timers.run_due()
        except Exception:
            log.exception("A timer of %s failed", self.log)
        self.wind_timers()

    # Loading

    @property
    def is_log_empty(self) -> bool:
        stored = self.log.partition.log
        return stored.log_start_offset >= stored.log_end_offset

    async def read(self) -> None:
        """Replay the log, in pieces."""
        self._began_s = self._loop.time()
        for chunk in self.log.replay(chunk_bytes=_CHUNK_BYTES):
            for header, records in chunk:
                self._take_in(header, records)
            await asyncio.sleep(0)
            if self.is_closed:
                return

    async def serve(self) -> None:
        """Wait until nothing of what was read can be lost, then serve."""
        await self.log.until_settled()
        if self.is_closed:
            return
        self.finish_loading()
        log.info(
            "Finished loading %d groups and %d offsets from %s in %d milliseconds",
            len(self.shard.groups),
            len(self.shard.offsets),
            self.log,
            (self._loop.time() - self._began_s) * 1000,
        )

    def finish_loading(self) -> None:
        for producer_id, is_committed in self._markers:
            self.shard.commits.complete_transaction(producer_id, is_committed=is_committed)
        self._markers.clear()
        self.shard.loaded()
        self.is_loaded = True
        if self._gone_topics:
            self.forget_topics(self._gone_topics)
        self.wind_timers()

    def _take_in(self, header: BatchHeader, records: list[Record]) -> None:
        if header.is_control:
            self._take_in_marker(header, records)
            return
        producer_id = header.producer_id if header.is_transactional else -1
        for offset, _, key, value, _ in records:
            self.shard.replay(key, value, offset, producer_id)

    def _take_in_marker(self, header: BatchHeader, records: list[Record]) -> None:
        try:
            marker = read_marker(records[0]) if records else None
        except CorruptRecord as error:
            log.warning("%s: the marker at %d is left out: %s", self.log, header.base_offset, error)
            return
        if marker is not None:
            self.shard.commits.complete_transaction(
                header.producer_id, is_committed=marker.type is ControlType.COMMIT
            )

    def note_marker(self, producer_id: int, *, is_committed: bool) -> None:
        """A transaction was decided behind the end of what is being loaded."""
        self._markers.append((producer_id, is_committed))

    # Changes from outside

    def forget_topics(self, topics: Collection[str]) -> None:
        """A topic made anew under an old name must not find offsets of the old one (I30)."""
        if not self.is_loaded:
            self._gone_topics.update(topics)
            return
        try:
            removed = self.shard.commits.delete_topics(topics)
        except ProtocolError as error:
            log.warning("Offsets of deleted topics stay in %s: %s", self.log, error)
            return
        if removed:
            log.info("Removed %d offsets of deleted topics from %s", removed, self.log)

    def close(self, error: ErrorCode) -> None:
        """Whoever waits is told; the log belongs to somebody else now."""
        self.is_closed = True
        self.is_loaded = False
        if self._wake is not None:
            self._wake.cancel()
        self.shard.close(error)
