"""The tree of nodes in one SQLite file: synchronous, used from one thread.

Each multi is one transaction that also carries the store's transaction counter, so a crash leaves
the tree as it was before a multi or after it. Sessions, watches and the event loop belong to
meta/sqlite/store.py.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, TypeVar

from penstock.errors import ConfigError
from penstock.meta.store import (
    ANY_VERSION,
    PERSISTENT,
    BadVersion,
    Change,
    Check,
    Create,
    Delete,
    MetaError,
    MultiFailed,
    NoChildrenForEphemerals,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    OpFailed,
    OutcomeUnknown,
    Result,
    Set,
    Stat,
    StoreUnavailable,
    parent_and_name,
)

APPLICATION_ID = 0x50454E53  # "PENS": tells our file from any other SQLite database.

# One script per layout, each leading from the one before; user_version counts those applied.
# The root is the row ("", ""), the parent of /a is written "", that of /a/b is "/a".
_LAYOUTS = (
    """
    CREATE TABLE nodes (
        parent TEXT NOT NULL,
        name TEXT NOT NULL,
        data BLOB NOT NULL,
        version INTEGER NOT NULL,
        czxid INTEGER NOT NULL,
        mzxid INTEGER NOT NULL,
        owner INTEGER NOT NULL,
        next_sequence INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (parent, name)
    ) WITHOUT ROWID;
    CREATE INDEX ephemerals ON nodes (owner) WHERE owner <> 0;
    CREATE TABLE counter (zxid INTEGER NOT NULL);
    INSERT INTO counter VALUES (0);
    INSERT INTO nodes VALUES ('', '', x'', 0, 0, 0, 0, 0);
    """,
)

_GET = "SELECT data, version, czxid, mzxid, owner FROM nodes WHERE parent = ? AND name = ?"
_STAT = "SELECT version, czxid, mzxid, owner FROM nodes WHERE parent = ? AND name = ?"
_CHILDREN = "SELECT name FROM nodes WHERE parent = ? AND name <> '' ORDER BY name"
_ANY_CHILD = "SELECT 1 FROM nodes WHERE parent = ? LIMIT 1"
_INSERT = (
    "INSERT INTO nodes (parent, name, data, version, czxid, mzxid, owner)"
    " VALUES (?, ?, ?, 0, ?, ?, ?)"
)
_WRITE = (
    "UPDATE nodes SET data = ?1, version = version + 1, mzxid = ?2"
    " WHERE parent = ?3 AND name = ?4 AND ?5 IN (version, -1)"
    " RETURNING version, czxid, mzxid, owner"
)
_DELETE = "DELETE FROM nodes WHERE parent = ? AND name = ?"
_COUNT = "UPDATE counter SET zxid = zxid + 1 RETURNING zxid"
_NEXT_SEQUENCE = (
    "UPDATE nodes SET next_sequence = next_sequence + 1 WHERE parent = ? AND name = ?"
    " RETURNING next_sequence - 1"
)

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NOT_WRITABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


T = TypeVar("T")


class StoreDamaged(ConfigError, MetaError):
    """The file's content cannot be used; the message says which file and what to do."""


Changed = tuple[str, Change]  # A path, and what happened to the node there.


class SqliteTree:
    """An open file. Raises ConfigError when it cannot be opened, MetaError afterwards."""

    BUSY_S: ClassVar[float] = 0.0  # How long another process may keep this one from the file.

    def __init__(self, path: Path, make_room: Callable[[], bool] = lambda: False) -> None:
        self.path = path
        self._make_room = make_room  # Whether a full disk has some now that it had not before.
        with self._errors_as_ours():
            self._db = sqlite3.connect(
                path, isolation_level=None, timeout=self.BUSY_S, check_same_thread=False
            )
        try:
            with self._errors_as_ours():
                self._set_up()
        except BaseException:
            self._db.close()
            raise

    def _set_up(self) -> None:
        # The exclusive lock is taken by the first access and kept until close.
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._refuse_foreign()
        self._with_room(lambda: self._db.execute("PRAGMA journal_mode = WAL"))
        self._db.execute("PRAGMA synchronous = FULL")
        self._with_room(self._prepare)

    def _prepare(self) -> None:
        with self._transaction():
            self._upgrade()
            # Their sessions ended with the process that had this file open before us.
            self._db.execute("DELETE FROM nodes WHERE owner <> 0")

    def _pragma(self, name: str) -> int:
        (value,) = self._db.execute(f"PRAGMA {name}").fetchone()
        return int(value)

    def _refuse_foreign(self) -> None:
        layout = self._pragma("user_version")
        has_tables = self._db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
        if has_tables and self._pragma("application_id") != APPLICATION_ID:
            raise StoreDamaged(
                f"The file {self.path} is an SQLite database of another program, not Penstock's "
                "metadata. Move it away, or point log.dirs to another directory."
            )
        if layout > len(_LAYOUTS):
            raise StoreDamaged(
                f"The metadata file {self.path} was written by a newer Penstock (layout {layout}, "
                f"this one knows up to {len(_LAYOUTS)}). Start the newer version on it."
            )

    def _upgrade(self) -> None:
        layout = self._pragma("user_version")
        if layout == len(_LAYOUTS):
            return
        for script in _LAYOUTS[layout:]:
            for statement in script.split(";"):
                self._db.execute(statement)
        self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._db.execute(f"PRAGMA user_version = {len(_LAYOUTS)}")

    def close(self) -> None:
        """Fold the write-ahead log into the file and let go of the lock."""
        with self._errors_as_ours():
            self._db.close()

    def new_session(self) -> int:
        """A number no session of this file ever had: a transaction of its own."""
        with self._errors_as_ours():
            return self._with_room(self._count_alone)

    def _count_alone(self) -> int:
        with self._transaction():
            return self._next_zxid()

    def end_session(self, session_id: int) -> list[Changed]:
        """Delete the session's nodes; returns what happened, for watchers."""
        with self._errors_as_ours():
            return self._with_room(lambda: self._delete_owned(session_id))

    def _delete_owned(self, session_id: int) -> list[Changed]:
        with self._transaction():
            rows = self._db.execute(
                "DELETE FROM nodes WHERE owner = ? AND owner <> 0 RETURNING parent, name",
                (session_id,),
            ).fetchall()
            changed = [(f"{parent}/{name}", Change.DELETED) for parent, name in rows]
            if rows:
                self._note_changes(self._next_zxid(), changed)
        return changed

    def get(self, path: str) -> Node:
        node = self.multi_get((path,))[0]
        if node is None:
            raise NoNode(path)
        return node

    def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        with self._errors_as_ours(), self._moment():
            return [self._find(path) for path in paths]

    def children(self, path: str) -> list[str]:
        with self._errors_as_ours(), self._moment():
            self._stat(path)
            return [name for (name,) in self._db.execute(_CHILDREN, (path.rstrip("/"),))]

    def exists(self, path: str) -> bool:
        with self._errors_as_ours(), self._moment():
            return self._db.execute(_STAT, parent_and_name(path)).fetchone() is not None

    def multi(self, ops: Sequence[Op], session_id: int) -> tuple[list[Result], list[Changed]]:
        """Apply all or nothing; returns each result, and what happened, for watchers."""
        with self._errors_as_ours():
            return self._with_room(lambda: self._apply_all(ops, session_id))

    def _apply_all(self, ops: Sequence[Op], session_id: int) -> tuple[list[Result], list[Changed]]:
        results: list[Result] = []
        changed: list[Changed] = []
        with self._transaction():
            zxid = self._next_zxid()
            for index, op in enumerate(ops):
                try:
                    results.append(self._apply(op, zxid, session_id, changed))
                except OpFailed as reason:
                    raise MultiFailed(index, op, reason) from reason
            self._note_changes(zxid, changed)
        return results, changed

    def _note_changes(self, zxid: int, changed: Sequence[Changed]) -> None:
        """Inside the transaction: write down what it changes, for those who cannot be told."""

    @contextmanager
    def _moment(self) -> Iterator[None]:
        """All reads inside see one state: here by the one thread and the exclusive lock."""
        yield

    def _find(self, path: str) -> Node | None:
        row = self._db.execute(_GET, parent_and_name(path)).fetchone()
        return row and (row[0], Stat(*row[1:]))

    def _stat(self, path: str) -> Stat:
        row = self._db.execute(_STAT, parent_and_name(path)).fetchone()
        if row is None:
            raise NoNode(path)
        return Stat(*row)

    def _apply(self, op: Op, zxid: int, session_id: int, changed: list[Changed]) -> Result:
        match op:
            case Set():
                changed.append((op.path, Change.WRITTEN))
                return self._write(op, zxid)
            case Create():
                path = self._create(op, zxid, session_id)
                changed.append((path, Change.CREATED))
                return path
            case Delete():
                changed.append((op.path, Change.DELETED))
                self._delete(op)
                return None
            case Check():
                self._stat_at(op.path, op.version)
                return None

    def _create(self, op: Create, zxid: int, session_id: int) -> str:
        parent, name = parent_and_name(op.path)
        if self._stat(parent).owner != PERSISTENT:
            raise NoChildrenForEphemerals(op.path)
        if op.sequential:
            ((number,),) = self._db.execute(_NEXT_SEQUENCE, parent_and_name(parent)).fetchall()
            name = f"{name}{number:010d}"
        owner = session_id if op.ephemeral else PERSISTENT
        try:
            self._db.execute(_INSERT, (parent, name, op.data, zxid, zxid, owner))
        except sqlite3.IntegrityError:
            raise NodeExists(f"{parent}/{name}") from None
        return f"{parent}/{name}"

    def _write(self, op: Set, zxid: int) -> Stat:
        parent, name = parent_and_name(op.path)
        rows = self._db.execute(_WRITE, (op.data, zxid, parent, name, op.version)).fetchall()
        if not rows:
            self._stat(op.path)  # Raises NoNode; otherwise it was the version.
            raise BadVersion(op.path)
        return Stat(*rows[0])

    def _delete(self, op: Delete) -> None:
        self._stat_at(op.path, op.version)
        if self._db.execute(_ANY_CHILD, (op.path,)).fetchone():
            raise NotEmpty(op.path)
        self._db.execute(_DELETE, parent_and_name(op.path))

    def _stat_at(self, path: str, version: int) -> Stat:
        stat = self._stat(path)
        if version not in (ANY_VERSION, stat.version):
            raise BadVersion(path)
        return stat

    def _next_zxid(self) -> int:
        ((zxid,),) = self._db.execute(_COUNT).fetchall()
        return int(zxid)

    def _with_room(self, work: Callable[[], T]) -> T:
        """Do it again where the disk was full and is not now: nothing of it was done."""
        while True:
            try:
                return work()
            except sqlite3.OperationalError as error:
                if _primary_code(error) != sqlite3.SQLITE_FULL or not self._make_room():
                    raise

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._commit()
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if _primary_code(error) != sqlite3.SQLITE_IOERR:
                raise
            # The pages may be in the file all the same, and come back after a crash.
            raise OutcomeUnknown(f"writing {self.path} failed: {error}") from error

    @contextmanager
    def _errors_as_ours(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: sqlite3.Error) -> MetaError | ConfigError:
        code = _primary_code(error)
        if code in _DAMAGED:
            return StoreDamaged(
                f"The metadata file {self.path} is damaged ({error}). Put a copy of it back, or "
                "move it away: topics are then found again in log.dirs, without their settings."
            )
        if code == sqlite3.SQLITE_BUSY:
            return ConfigError(
                f"The metadata file {self.path} is in use by another process. "
                "Stop that broker first, or give this one another log.dirs."
            )
        if code in _NOT_WRITABLE:
            return ConfigError(
                f"The metadata file {self.path} cannot be opened for writing ({error}). Check "
                "that its directory exists and that this user may write there."
            )
        return StoreUnavailable(f"{self.path} cannot be used now: {error}")


def _primary_code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
