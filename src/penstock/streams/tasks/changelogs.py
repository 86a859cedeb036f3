"""What a state's changes say in its changelog topic: rows as Kafka Streams writes them.

A row's key is the key's bytes, with the window's start behind it for windows and end and start for
sessions; its time is the row's. A window that its store has let go gets no tombstone, because the
topic forgets it by its own retention; what it was at last is told, also where it came and went
within one batch. What joins and `suppress` hold has no form that others could read: its rows are
the states as they lie in pages, for nobody but a task that lost them.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.streams.plan.nodes import PlanNode, StoreKind, StoreSpec, StreamsTopology
from penstock.streams.tasks.paged_memory import Changed
from penstock.streams.tasks.state_values import decoded
from penstock.streams.values.records import TimeWindow
from penstock.streams.values.serdes import Serde

READABLE: tuple[StoreKind, ...] = ("rows", "windows", "sessions", "user")  # By anybody.
_LONG = struct.Struct(">q")
_SEQUENCE = b"\0\0\0\0"  # Behind the start of a window; joins would count there.


class ChangelogRow(NamedTuple):
    """A record of the changelog."""

    key: bytes
    value: bytes | None
    timestamp_ms: int


def has_changelog(topology: StreamsTopology, store: StoreSpec) -> bool:
    """Whether a store's states are told in a topic; a global table's topic is its own."""
    if not store.changelog or store.is_global:
        return False
    return store.kind in READABLE or any(node.state == store.name for node in topology.nodes)


def retention_ms(node: PlanNode | None) -> int:
    """How long a node's store keeps a window; 0 where it has none."""
    windows = getattr(node.step, "windows", None) if node else None
    return windows.retention_ms if windows else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogWriter:
    """Turns changes of one store into rows."""

    kind: StoreKind
    value_serde: Serde[Any]
    retention_ms: int = 0

    @classmethod
    def of(cls, store: StoreSpec, node: PlanNode | None) -> "ChangelogWriter":
        """For a store, and the node that keeps it; None: it is a user's."""
        assert store.value_serde is not None
        return cls(kind=store.kind, value_serde=store.value_serde, retention_ms=retention_ms(node))

    def rows(self, change: Changed, stream_ms: int) -> Iterator[ChangelogRow]:
        """The rows of one key's change; `stream_ms` is the time of what has none of its own."""
        if self.kind == "rows":
            yield self._row(change.key, change.after, stream_ms)
        elif self.kind == "user":
            yield ChangelogRow(change.key, self._bytes(change.after), max(0, stream_ms))
        elif self.kind == "windows":
            yield from self._windows(change, stream_ms)
        elif self.kind == "sessions":
            yield from self._sessions(change)
        else:
            yield ChangelogRow(change.key, change.data, max(0, stream_ms))

    def _row(self, key: bytes, row: Any, stream_ms: int) -> ChangelogRow:
        if row is None:
            return ChangelogRow(key, None, max(0, stream_ms))
        return ChangelogRow(key, self._bytes(row.value), row.timestamp_ms)

    def lapses(self, before: Any, after: Any, clock: Any) -> dict[Any, Any]:
        """The windows or sessions that a new state has let go for their age, as they were."""
        if self.kind not in ("windows", "sessions") or not before:
            return {}
        oldest_ms, now = clock.stored_ms - self.retention_ms + 1, dict(after or ())
        gone = [(window, row) for window, row in before if window not in now]
        if self.kind == "windows":
            return {start_ms: row for start_ms, row in gone if start_ms < oldest_ms}
        return {
            window: value
            for window, value in gone
            if window.end_ms < oldest_ms and not any(_holds(other, window) for other in now)
        }

    def _windows(self, change: Changed, stream_ms: int) -> Iterator[ChangelogRow]:
        for start_ms, row in self._differences(change):
            key = change.key + _LONG.pack(start_ms) + _SEQUENCE
            yield self._row(key, row, stream_ms)

    def _sessions(self, change: Changed) -> Iterator[ChangelogRow]:
        for window, value in self._differences(change):
            key = change.key + _LONG.pack(window.end_ms) + _LONG.pack(window.start_ms)
            yield ChangelogRow(key, self._bytes(value), window.end_ms)

    def _differences(self, change: Changed) -> Iterator[tuple[Any, Any]]:
        """Windows that are other than before the batch, and what they are; None: gone."""
        before, after = dict(self._before(change)), {**change.lapsed, **dict(change.after or ())}
        for window in sorted(before.keys() | after.keys()):
            if before.get(window) != after.get(window):
                yield window, after.get(window)

    def _before(self, change: Changed) -> Any:
        if change.before is None:
            return ()
        return decoded(change.before, self.value_serde)

    def _bytes(self, value: Any) -> bytes | None:
        return self.value_serde.serialize(value)


def _holds(session: TimeWindow, other: TimeWindow) -> bool:
    """Whether a session has swallowed another."""
    return session.start_ms <= other.start_ms and other.end_ms <= session.end_ms
