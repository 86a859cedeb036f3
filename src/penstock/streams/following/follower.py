"""A follower: reads a store's changelog as it grows, and answers by key, range and window.

It sees committed batches alone, never half of one, and it goes on answering when the application
has ended. Any number of processes may follow a store, each into a file of its own.
"""

import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.operations.topics import describe_topics
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import CommandError, PenstockError
from penstock.streams.following.reading import committed_rows
from penstock.streams.following.rows import RowFile, RowView
from penstock.streams.plan.nodes import StoreSpec, StreamsTopology
from penstock.streams.plan.stages import changelog_topic
from penstock.streams.tasks.changelogs import READABLE, has_changelog
from penstock.streams.values.records import Stamped, TimeWindow, Windowed
from penstock.streams.values.serdes import Serde
from penstock.streams.words.kafka_words import KafkaWords

LOOK_S = 0.02
_RETRY_S = 0.5
_TIMEOUT_MS = 10_000
_START_BYTES, _SEQUENCE_BYTES = 8, 4


class StoreNotCurrent(PenstockError):
    """A follower did not get as far as was asked for in time."""


@dataclass(frozen=True, slots=True)
class StoreView(KafkaWords):
    """A store at one moment."""

    _rows: RowView
    _store: StoreSpec
    _span_ms: int  # Of a window; sessions have their own.

    @property
    def offsets(self) -> dict[int, int]:
        """For each partition of the changelog, the first offset that is not in this view."""
        return self._rows.offsets

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        row = self.get_stamped(key)
        return None if row is None else row.value

    def get_stamped(self, key: Any) -> Stamped | None:
        """The value of a key with its time, or None."""
        self._only("rows", "user")
        row = self._rows.get(self._bytes(key))
        return None if row is None else Stamped(self._value(row[1]), row[2])

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        """The keys between two, both included; None is the start or the end."""
        self._only("rows", "user")
        low = None if first is None else self._bytes(first)
        high = None if last is None else self._bytes(last)
        for key, value, _ in self._rows.between(low, high):
            yield self._store.key_serde.deserialize(key), self._value(value)

    def prefix_scan(
        self, prefix: Any, serde: Serde[Any] | None = None
    ) -> Iterator[tuple[Any, Any]]:
        """The keys whose bytes begin with those of a prefix, by the store's serde or another."""
        self._only("rows", "user")
        start = (serde or self._store.key_serde).serialize(prefix) or b""
        for key, value, _ in self._rows.between(start, None):
            if not key.startswith(start):
                return
            yield self._store.key_serde.deserialize(key), self._value(value)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All keys and values, in the order of the keys' bytes; windowed keys by time too."""
        if self._store.kind in ("rows", "user"):
            yield from self.range()
            return
        for data, value, _ in self._rows.between(None, None):
            key, window = self._windowed(data)
            windowed = Windowed(self._store.key_serde.deserialize(key), window)
            yield windowed, self._value(value)

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[TimeWindow, Any]]:
        """A key's windows that start within the times, or its sessions that touch them."""
        self._only("windows", "sessions")
        wanted = self._bytes(key)
        found = []
        for data, value, _ in self._rows.between(wanted, wanted + b"\xff" * 16):
            its, window = self._windowed(data)
            if its == wanted and self._touches(window, from_ms, to_ms):
                found.append((window, self._value(value)))
        return sorted(found, key=lambda one: (one[0].end_ms, one[0].start_ms))

    def _touches(self, window: TimeWindow, from_ms: int, to_ms: int) -> bool:
        if self._store.kind == "sessions":
            return window.end_ms >= from_ms and window.start_ms <= to_ms
        return from_ms <= window.start_ms <= to_ms

    def _windowed(self, data: bytes) -> tuple[bytes, TimeWindow]:
        if self._store.kind == "sessions":
            end_ms, start_ms = _long(data[-16:-8]), _long(data[-8:])
            return data[:-16], TimeWindow(start_ms, end_ms)
        key = data[: -_START_BYTES - _SEQUENCE_BYTES]
        start_ms = _long(data[len(key) : len(key) + _START_BYTES])
        return key, TimeWindow(start_ms, start_ms + self._span_ms)

    def _value(self, data: bytes) -> Any:
        assert self._store.value_serde is not None
        return self._store.value_serde.deserialize(data)

    def _bytes(self, key: Any) -> bytes:
        return self._store.key_serde.serialize(key) or b""

    def _only(self, *kinds: str) -> None:
        if self._store.kind not in kinds:
            raise TypeError(f"store {self._store.name!r} holds {self._store.kind}, not {kinds[0]}")


class StoreFollower(KafkaWords):
    """Follows one store; close it, or use it in a `with`."""

    def __init__(
        self,
        topology: StreamsTopology,
        application_id: str,
        store: str,
        client: Mapping[str, str],
        *,
        folder: Path | None = None,  # None: its file ends with it.
    ) -> None:
        self._store, self._span_ms = _found(topology, store)
        self.topic = f"{application_id}-{changelog_topic(self._store)}"
        self._client = dict(client)
        self._own_folder = None if folder else tempfile.TemporaryDirectory(prefix="penstock-")
        chosen = folder or Path(self._own_folder.name)  # type: ignore[union-attr]
        self._rows = RowFile(chosen / f"{store}.db")
        self._stop = threading.Event()
        self._moved = threading.Condition()
        self._offsets = self._included()
        self.failure: str | None = None  # Of the latest look; None: it went well.
        self._thread = threading.Thread(target=self._follow, name=f"follow {store}", daemon=True)
        self._thread.start()

    def __enter__(self) -> "StoreFollower":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop following."""
        self._stop.set()
        self._thread.join()
        self._rows.close()
        if self._own_folder is not None:
            self._own_folder.cleanup()

    @contextmanager
    def view(self) -> Iterator[StoreView]:
        """The store at one moment: several questions, one answer to how current they are."""
        with self._rows.reading() as rows:
            yield StoreView(rows, self._store, self._span_ms)

    @property
    def offsets(self) -> dict[int, int]:
        """For each partition of the changelog, the first offset that an answer does not include."""
        with self.view() as view:
            return view.offsets

    def get(self, key: Any) -> Any:
        """The value of a key now, or None."""
        with self.view() as view:
            return view.get(key)

    def range(self, first: Any = None, last: Any = None) -> list[tuple[Any, Any]]:
        """The keys between two, both included; None is the start or the end."""
        with self.view() as view:
            return list(view.range(first, last))

    def prefix_scan(self, prefix: Any, serde: Serde[Any] | None = None) -> list[tuple[Any, Any]]:
        """The keys whose bytes begin with those of a prefix, by the store's serde or another."""
        with self.view() as view:
            return list(view.prefix_scan(prefix, serde))

    def all(self) -> list[tuple[Any, Any]]:
        """All keys and values."""
        with self.view() as view:
            return list(view.all())

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[TimeWindow, Any]]:
        """A key's windows that start within the times, or its sessions that touch them."""
        with self.view() as view:
            return view.fetch(key, from_ms, to_ms)

    def wait_for(self, offsets: Mapping[int, int], timeout_s: float = 30.0) -> None:
        """Wait until answers include the changelog up to these offsets; StoreNotCurrent if not."""

        def is_there() -> bool:
            return all(self._offsets.get(at, 0) >= offset for at, offset in offsets.items())

        with self._moved:
            if not self._moved.wait_for(is_there, timeout_s):
                told = f" ({self.failure})" if self.failure else ""
                raise StoreNotCurrent(
                    f"After {timeout_s:g} s the follower of {self.topic} includes "
                    f"{self._offsets}, not {dict(offsets)}{told}."
                )

    def wait_until_current(self, timeout_s: float = 30.0) -> None:
        """Wait until answers include all that is committed to the changelog now."""
        with self._connected() as cluster:
            ends = self._ends(cluster)
        self.wait_for(ends, timeout_s)

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                with self._connected() as cluster:
                    self._check_topic(cluster)
                    while not self._stop.wait(LOOK_S):
                        self._look(cluster)
                        self.failure = None
            except PenstockError as error:
                self.failure = str(error)
                self._stop.wait(_RETRY_S)

    def _look(self, cluster: ClusterClient) -> None:
        """Read what was committed since the last look."""
        ends = self._ends(cluster)
        for partition, end in ends.items():
            begin = self._offsets.get(partition, 0)
            if end > begin:
                self._rows.apply(self._newest(partition, begin, end), {partition: end})
        if any(self._offsets.get(at) != end for at, end in ends.items()):
            with self._moved:
                self._offsets = self._included()
                self._moved.notify_all()

    def _newest(
        self, partition: int, begin: int, end: int
    ) -> dict[bytes, tuple[bytes | None, int]]:
        """The newest value of each key between two offsets."""
        at = TopicPartition(self.topic, partition)
        rows = committed_rows(self._client, at, begin, end)
        return {row.key: (row.value, row.timestamp_ms) for row in rows}

    def _check_topic(self, cluster: ClusterClient) -> None:
        """A topic that ends before what was read is another one: begin anew."""
        ends = self._ends(cluster)
        if any(ends.get(at, 0) < offset for at, offset in self._offsets.items()):
            self._rows.clear()
            with self._moved:
                self._offsets = {}

    def _ends(self, cluster: ClusterClient) -> dict[int, int]:
        described = describe_topics(cluster, [self.topic])[self.topic]
        partitions = [TopicPartition(self.topic, part.partition) for part in described.partitions]
        found = list_offsets(
            cluster,
            dict.fromkeys(partitions, int(OffsetSpec.LATEST)),
            timeout_ms=_TIMEOUT_MS,
            read_committed=True,
        )
        return {
            at.partition: one.offset
            for at, one in found.items()
            if isinstance(one, OffsetAndTimestamp)
        }

    def _included(self) -> dict[int, int]:
        with self._rows.reading() as rows:
            return rows.offsets

    def _connected(self) -> ClusterClient:
        from penstock.client.wire.raw_cluster import cluster_for

        return cluster_for(self._client)


def _found(topology: StreamsTopology, name: str) -> tuple[StoreSpec, int]:
    """A store that may be asked, and the span of its windows."""
    told = [store for store in topology.stores if has_changelog(topology, store)]
    known = {store.name: store for store in told if store.kind in READABLE}
    if name not in known:
        raise CommandError(
            f"There is no store {name!r} to ask; known are: {', '.join(known) or 'none'}."
        )
    node = topology.by_name.get(known[name].node)
    windows = getattr(node.step, "windows", None) if node else None
    span_ms = getattr(windows, "size_ms", 0) or getattr(windows, "difference_ms", 0)
    return known[name], int(span_ms)


def _long(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)
