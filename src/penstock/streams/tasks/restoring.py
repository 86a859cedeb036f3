"""Pages made anew from a changelog, for a task whose pages were lost.

The newest row of each key goes into a file first, sorted by the page it will lie in, so that a
state larger than memory can be restored: one page is held at a time.
"""

import sqlite3
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from penstock.streams.plan.nodes import PlanNode, StoreSpec, StreamsTopology
from penstock.streams.steps.contract import Timer
from penstock.streams.tasks.changelogs import ChangelogRow, ChangelogWriter
from penstock.streams.tasks.paged_memory import ABOUT, about_page
from penstock.streams.tasks.pages import PageShelf, pack_page, page_count, page_of
from penstock.streams.tasks.state_values import decoded, encoded
from penstock.streams.values.records import Stamped, TimeWindow

_LONG = struct.Struct(">q")
_WINDOW_BYTES = {"windows": 12, "sessions": 16}  # Behind the key in a row's key.
_ROWS_AT_ONCE = 10_000
_TABLE = """
CREATE TABLE rows (key BLOB PRIMARY KEY, value BLOB NOT NULL, at_ms INTEGER NOT NULL) WITHOUT ROWID
"""


def restore_store(
    topology: StreamsTopology,
    store: StoreSpec,
    rows: Iterable[ChangelogRow],
    clock: Any,
    shelf: PageShelf,
    folder: Path,
) -> None:
    """Write a store's pages as its changelog tells them; `folder` is for what is only passing."""
    restorer = _Restorer(topology, store, clock)
    connection = sqlite3.connect(folder / f"{store.name}.sqlite", isolation_level=None)
    try:
        _fill(connection, rows)
        restorer.write(connection, shelf)
    finally:
        connection.close()


def _fill(connection: sqlite3.Connection, rows: Iterable[ChangelogRow]) -> None:
    connection.execute("PRAGMA journal_mode=OFF")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute(_TABLE)
    held: dict[bytes, ChangelogRow] = {}
    for row in rows:
        held[row.key] = row
        if len(held) >= _ROWS_AT_ONCE:
            _store(connection, held)
            held = {}
    _store(connection, held)


def _store(connection: sqlite3.Connection, held: dict[bytes, ChangelogRow]) -> None:
    gone = [(row.key,) for row in held.values() if row.value is None]
    kept = [row for row in held.values() if row.value is not None]
    connection.execute("BEGIN")
    connection.executemany("DELETE FROM rows WHERE key = ?", gone)
    connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", kept)
    connection.execute("COMMIT")


@dataclass(frozen=True, slots=True)
class _Restorer:
    topology: StreamsTopology
    store: StoreSpec
    clock: Any

    def write(self, connection: sqlite3.Connection, shelf: PageShelf) -> None:
        """All pages, one after the other, and the page about them."""
        (size,) = connection.execute("SELECT sum(length(key) + length(value)) FROM rows").fetchone()
        count = page_count(size or 0)
        connection.create_function("page", 1, lambda key: page_of(self._own(key), count))
        connection.create_function("own", 1, self._own)
        query = "SELECT key, value, at_ms FROM rows ORDER BY page(key), own(key), key"
        keys = groupby(map(ChangelogRow._make, connection.execute(query)), self._key_of)
        states = ((key, self._state(list(of_key))) for key, of_key in keys)
        timers: list[Timer] = []
        size_bytes = 0
        for page, entries in groupby(states, lambda one: page_of(one[0], count)):
            held = {key: state for key, state in entries if state is not None}
            data = pack_page({key: encoded(state, self._serde) for key, state in held.items()})
            shelf.save(page, data if held else None)
            size_bytes += len(data) if held else 0
            timers += [timer for state in held.values() for timer in self._timers(state)]
        about = about_page(self.clock, sorted(timers), count, size_bytes, self._serde)
        shelf.save(ABOUT, about)

    @property
    def _serde(self) -> Any:
        return self.store.value_serde

    def _own(self, key: bytes) -> bytes:
        """A row's key without its window."""
        return key[: len(key) - _WINDOW_BYTES.get(self.store.kind, 0)]

    def _key_of(self, row: ChangelogRow) -> bytes:
        return self._own(row.key)

    def _state(self, rows: list[ChangelogRow]) -> Any:
        """A key's state from its rows; None where all its windows are too old."""
        row = rows[0]
        if self.store.kind == "rows":
            return Stamped(self._value(row), row.timestamp_ms)
        if self.store.kind == "user":
            return self._value(row)
        if self.store.kind == "windows":
            return self._windows(rows)
        if self.store.kind == "sessions":
            return self._sessions(rows)
        assert row.value is not None
        return decoded(row.value, self._serde)

    def _windows(self, rows: list[ChangelogRow]) -> Any:
        starts = ((_LONG.unpack(row.key[-12:-4])[0], row) for row in rows)
        alive = [(at, Stamped(self._value(r), r.timestamp_ms)) for at, r in starts if self._is(at)]
        return tuple(sorted(alive, key=lambda one: one[0])) or None

    def _sessions(self, rows: list[ChangelogRow]) -> Any:
        ends = ((_LONG.unpack(r.key[-16:-8])[0], _LONG.unpack(r.key[-8:])[0], r) for r in rows)
        alive = [
            (TimeWindow(start_ms, end_ms), self._value(row))
            for end_ms, start_ms, row in ends
            if self._is(end_ms)
        ]
        return tuple(sorted(alive, key=lambda one: (one[0].end_ms, one[0].start_ms))) or None

    def _is(self, at_ms: int) -> bool:
        """Whether a window of this time is still the store's: the topic may keep it for longer."""
        node = self.topology.by_name.get(self.store.node)
        kept_ms = ChangelogWriter.of(self.store, node).retention_ms
        return self.clock is None or at_ms >= self.clock.stored_ms - kept_ms + 1

    def _value(self, row: ChangelogRow) -> Any:
        return self._serde.deserialize(row.value)

    def _timers(self, state: Any) -> Iterator[Timer]:
        keeper = self._keeper()
        return iter(() if keeper is None else keeper.step.timers_of(state))

    def _keeper(self) -> PlanNode | None:
        return next((n for n in self.topology.nodes if n.state == self.store.name), None)
