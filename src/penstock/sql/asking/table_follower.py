"""A table to be asked: a follower of its topic, in a file of this process, by key and by scan."""

import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from penstock.client.operations.offsets import OffsetSpec
from penstock.client.values import TopicPartition
from penstock.errors import PenstockError
from penstock.sql.asking.records import TopicRecord, TopicTail, committed_records, edges
from penstock.streams.following.rows import RowFile

_POLL_S: Final = 0.2
_RETRY_S: Final = 0.5
_BATCH: Final = 10_000
_HIGHEST: Final = b"\xff" * 16  # Behind every window that a key can carry.


class TableNotCurrent(PenstockError):
    """A follower did not get as far as was asked for in time."""


class TableFollower:
    """The last row of each key of a topic; `close` ends it."""

    def __init__(self, client: Mapping[str, str], topic: str) -> None:
        self.topic = topic
        self._client = dict(client)
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-sql-")
        self._rows = RowFile(Path(self._folder.name) / "rows.db")
        self._stop = threading.Event()
        self._moved = threading.Condition()
        self._offsets: dict[int, int] = {}  # The next of each partition.
        self.has_read = False  # Whether it has all that was there when it began, of each partition.
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"follow {topic}", daemon=True)
        self._thread.start()

    def get(self, key: bytes) -> TopicRecord | None:
        """The row of a key."""
        with self._rows.reading() as view:
            found = view.get(key)
        return None if found is None else TopicRecord(-1, -1, found[2], found[0], found[1])

    def windows(self, key: bytes) -> list[TopicRecord]:
        """The rows of a key in all its windows; keys that only begin alike may be among them."""
        return list(self._between(key, key + _HIGHEST))

    def all(self) -> Iterator[TopicRecord]:
        """All rows, in the order of the keys' bytes."""
        return self._between(None, None)

    def _between(self, first: bytes | None, last: bytes | None) -> Iterator[TopicRecord]:
        with self._rows.reading() as view:
            for key, value, at_ms in view.between(first, last):
                yield TopicRecord(-1, -1, at_ms, key, value)

    def wait_for(self, ends: Mapping[int, int], timeout_s: float) -> None:
        """Until all before these offsets is included; TableNotCurrent if that takes too long."""
        deadline_s = time.monotonic() + timeout_s
        with self._moved:
            while any(self._offsets.get(at, 0) < end for at, end in ends.items()):
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not self._moved.wait(left_s):
                    told = f": {self.failure}" if self.failure else ""
                    raise TableNotCurrent(f"The topic {self.topic} was not read in time{told}.")

    def close(self) -> None:
        """Stop following."""
        self._stop.set()
        self._thread.join()
        self._rows.close()
        self._folder.cleanup()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except PenstockError as error:
                self.failure = str(error)
                self._stop.wait(_RETRY_S)

    def _follow(self) -> None:
        """What is there, then what comes."""
        begins = edges(self._client, self.topic, OffsetSpec.EARLIEST)
        ends = edges(self._client, self.topic, OffsetSpec.LATEST)
        if any(ends.get(at, 0) < offset for at, offset in self._offsets.items()):
            self._rows.clear()  # Another topic of the same name.
            self._offsets, self.has_read = {}, False
        for partition, end in ends.items():
            self._load(partition, max(begins[partition], self._offsets.get(partition, 0)), end)
        self.has_read = not self._stop.is_set()
        tail = TopicTail(self._client, self.topic, self._offsets)
        try:
            self.failure = None
            while not self._stop.is_set():
                self._take(tail.poll(_POLL_S))
        finally:
            tail.close()

    def _load(self, partition: int, begin: int, end: int) -> None:
        at, batch = TopicPartition(self.topic, partition), []
        for record in committed_records(self._client, at, begin, end):
            batch.append(record)
            if len(batch) >= _BATCH:
                self._take(batch)
                batch = []
            if self._stop.is_set():
                return
        self._take(batch)
        self._move({partition: end})

    def _take(self, records: list[TopicRecord]) -> None:
        if not records:
            return
        rows = {r.key: (r.value, r.timestamp_ms) for r in records if r.key is not None}
        ends = {record.partition: record.offset + 1 for record in records}
        self._rows.apply(rows, ends)
        self._move(ends)

    def _move(self, ends: Mapping[int, int]) -> None:
        with self._moved:
            self._offsets = {**self._offsets, **ends}
            self._moved.notify_all()


class TableFollowers:
    """The followers of a service, by topic; one begins with the first question."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._known: dict[str, TableFollower] = {}

    def current(self, topic: str, timeout_s: float) -> TableFollower:
        """The follower of a topic; a new one has read what is there."""
        with self._lock:
            is_new = topic not in self._known
            if is_new:
                self._known[topic] = TableFollower(self._client, topic)
            found = self._known[topic]
        if is_new or not found.has_read:
            found.wait_for(edges(self._client, topic, OffsetSpec.LATEST), timeout_s)
        return found

    def at_hand(self, topic: str) -> TableFollower | None:
        """The follower of a topic, if it has read what was there: nobody waits."""
        found = self._known.get(topic)
        return found if found is not None and found.has_read else None

    def forget(self, topic: str) -> None:
        """Its topic is deleted, or nobody asks any more."""
        with self._lock:
            found = self._known.pop(topic, None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """End all."""
        for topic in list(self._known):
            self.forget(topic)
