"""The rows of a followed store in an SQLite file, with the offsets they include.

Rows and offsets change in one transaction, so whoever reads sees both as they belong together, and
a follower that is started again goes on where its file ends. One thread writes; any number reads.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Row = tuple[bytes, bytes, int]  # Key, value, time.

_TABLES = """
CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value BLOB NOT NULL, at_ms INTEGER NOT NULL)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS offsets (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL);
"""


class RowFile:
    """The file of one follower."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.executescript(_TABLES)

    def apply(
        self, rows: Mapping[bytes, tuple[bytes | None, int]], ends: Mapping[int, int]
    ) -> None:
        """Take the newest rows of keys, None for those that are gone, and what they include."""
        gone = [(key,) for key, (value, _) in rows.items() if value is None]
        kept = [(key, value, at) for key, (value, at) in rows.items() if value is not None]
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM rows WHERE key = ?", gone)
            connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", kept)
            connection.executemany("INSERT OR REPLACE INTO offsets VALUES (?, ?)", ends.items())
            connection.execute("COMMIT")

    def clear(self) -> None:
        """Forget everything: the topic is not the one that was followed."""
        with self._connection() as connection:
            connection.executescript("BEGIN; DELETE FROM rows; DELETE FROM offsets; COMMIT;")

    @contextmanager
    def reading(self) -> Iterator["RowView"]:
        """The rows of one moment, and the offsets they include."""
        with self._connection() as connection:
            connection.execute("BEGIN")
            try:
                yield RowView(connection)
            finally:
                connection.execute("COMMIT")

    def close(self) -> None:
        """Close what threads have opened."""
        with self._lock:
            for connection in self._opened:
                connection.close()
            self._opened = []

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """This thread's own."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=30
            )
            self._local.connection = found
            with self._lock:
                self._opened.append(found)
        yield found


class RowView:
    """What a reader may ask of the rows of one moment."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @property
    def offsets(self) -> dict[int, int]:
        """For each partition of the changelog, the first offset that is not included."""
        return dict(self._connection.execute("SELECT partition, next FROM offsets"))

    def get(self, key: bytes) -> Row | None:
        """The row of a key."""
        query = "SELECT key, value, at_ms FROM rows WHERE key = ?"
        found: Row | None = self._connection.execute(query, (key,)).fetchone()
        return found

    def between(self, first: bytes | None, last: bytes | None) -> Iterable[Row]:
        """The rows between two keys, both included, in order; None is the start or the end."""
        query = "SELECT key, value, at_ms FROM rows WHERE key >= ?"
        bounds = [first or b""]
        if last is not None:
            query += " AND key <= ?"
            bounds.append(last)
        return self._connection.execute(query + " ORDER BY key", bounds)
