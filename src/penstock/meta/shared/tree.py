"""The tree of nodes in a file that several processes have open: synchronous, one thread each.

Beside the nodes the file has the sessions, and a journal of the latest changes from which each
process learns what the others did. Every read and every write begins by reading the journal on,
in the same transaction: whoever sees a change has been told of it, and whoever's session was ended
by others can neither read nor write. How processes call each other is meta/shared/bells.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from penstock.meta.shared.gate import WriterGate
from penstock.meta.sqlite.tree import Changed, SqliteTree
from penstock.meta.store import Change, SessionLost

# Apart from the layouts of meta/sqlite/tree.py: a broker alone on the file does without them.
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS sessions"
    " (id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, bell TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS changes"
    " (zxid INTEGER, position INTEGER, path TEXT NOT NULL, change TEXT NOT NULL,"
    " PRIMARY KEY (zxid, position)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS journal (trimmed INTEGER NOT NULL)",
    "INSERT INTO journal SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM journal)",
)
_STATE: Final = "SELECT zxid, (SELECT trimmed FROM journal) FROM counter"
_NEWS: Final = "SELECT path, change FROM changes WHERE zxid > ? ORDER BY zxid, position"
_SESSIONS: Final = "SELECT id, bell FROM sessions"
_OWNERS: Final = "SELECT DISTINCT owner FROM nodes WHERE owner <> 0"
_KEPT: Final = 16_384  # Transactions in the journal: minutes of the busiest cluster.
_TRIM_EVERY: Final = 256


@dataclass(slots=True, kw_only=True)
class News:
    """What a transaction learned or did."""

    changed: list[Changed] = field(default_factory=list)
    sessions: Mapping[int, str] | None = None  # All sessions' bells; None: as before.
    is_own: bool = False  # There is something in it for the others.


class SharedTree(SqliteTree):
    """An open file; `take_news` is to be called after each use."""

    BUSY_S: ClassVar[float] = (
        5.0  # Others hold SQLite's own locks for a moment as they come and go.
    )

    def __init__(self, path: Path, gate: WriterGate, make_room: Callable[[], bool]) -> None:
        self._gate = gate
        self._session_id = 0  # Until it is begun.
        self._seen = 0
        self._sessions: dict[int, str] = {}  # As of what was seen last.
        self._news = News()
        self._own: tuple[int, Sequence[Changed]] | None = None
        super().__init__(path, make_room)

    def _set_up(self) -> None:
        with self._gate.held():
            self._refuse_foreign()
            self._with_room(lambda: self._db.execute("PRAGMA journal_mode = WAL"))
            self._db.execute("PRAGMA synchronous = FULL")
            self._with_room(self._prepare)

    def _prepare(self) -> None:
        with super()._transaction():
            self._upgrade()
            for statement in _TABLES:
                self._db.execute(statement)

    # Sessions

    def begin_session(self, *, bell: str, pid: int, is_answered: Callable[[str], bool]) -> int:
        """A new session, after those whose processes are dead were ended; its id."""
        with self._errors_as_ours():
            self._session_id = self._with_room(lambda: self._begin(bell, pid, is_answered))
        self._gate.session_id = self._session_id
        return self._session_id

    def _begin(self, bell: str, pid: int, is_answered: Callable[[str], bool]) -> int:
        with self._transaction():
            self._bury({one for one, name in self._sessions.items() if not is_answered(name)})
            session_id = self._next_zxid()
            self._db.execute("INSERT INTO sessions VALUES (?, ?, ?)", (session_id, pid, bell))
            self._note_changes(session_id, ())
        return session_id

    def _bury(self, dead: set[int]) -> None:
        """End sessions, and forget nodes whose sessions are nowhere."""
        alive = self._sessions.keys() - dead
        for session_id in dead:
            self._forget_session(session_id)
        owners = {owner for (owner,) in self._db.execute(_OWNERS)}
        for owner in owners - alive:
            zxid = self._next_zxid()
            self._note_changes(zxid, self._drop_owned(owner))

    def end_session(self, session_id: int) -> list[Changed]:
        """Delete a session and its nodes, ours or another's; nothing if it is over already."""
        with self._errors_as_ours():
            with self._moment():
                is_there = session_id in self._sessions
            return self._with_room(lambda: self._end(session_id)) if is_there else []

    def _end(self, session_id: int) -> list[Changed]:
        changed: list[Changed] = []
        with self._transaction():
            if session_id in self._sessions:
                changed = self._drop_owned(session_id)
                self._forget_session(session_id)
                self._note_changes(self._next_zxid(), changed)
        return changed

    def _drop_owned(self, session_id: int) -> list[Changed]:
        rows = self._db.execute(
            "DELETE FROM nodes WHERE owner = ? AND owner <> 0 RETURNING parent, name", (session_id,)
        ).fetchall()
        return [(f"{parent}/{name}", Change.DELETED) for parent, name in rows]

    def _forget_session(self, session_id: int) -> None:
        self._db.execute("DELETE FROM sessions WHERE id = ?", (session_id,))

    def bells(self) -> set[str]:
        """Of all sessions, ours among them."""
        return set(self._sessions.values())

    # News

    def catch_up(self) -> None:
        """Read the journal on; SessionLost if others have ended our session."""
        with self._errors_as_ours(), self._moment():
            pass

    def take_news(self) -> News | None:
        """What was learned since it was last asked; None: nothing."""
        news, self._news = self._news, News()
        return news if news.changed or news.is_own or news.sessions is not None else None

    def _read_on(self) -> None:
        ((zxid, trimmed),) = self._db.execute(_STATE).fetchall()
        if zxid == self._seen:
            return
        self._take_sessions(dict(self._db.execute(_SESSIONS).fetchall()))
        if self._session_id and (self._session_id not in self._sessions or self._seen < trimmed):
            raise SessionLost(f"session {self._session_id} with {self.path} was ended by others")
        if self._session_id:
            for path, change in self._db.execute(_NEWS, (self._seen,)):
                self._news.changed.append((path, Change(change)))
        self._seen = zxid

    def _take_sessions(self, sessions: dict[int, str]) -> None:
        if sessions != self._sessions:
            self._sessions = sessions
            self._news.sessions = sessions

    # Transactions

    @contextmanager
    def _moment(self) -> Iterator[None]:
        self._db.execute("BEGIN")
        try:
            self._read_on()
            yield
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._gate.held():
            self._own = None
            with super()._transaction():
                self._read_on()
                yield
            self._take_own()

    def _note_changes(self, zxid: int, changed: Sequence[Changed]) -> None:
        self._db.executemany(
            "INSERT INTO changes VALUES (?, ?, ?, ?)",
            [(zxid, at, path, change.value) for at, (path, change) in enumerate(changed)],
        )
        if zxid % _TRIM_EVERY == 0:
            self._trim(zxid - _KEPT)
        before = self._own[1] if self._own else ()
        self._own = (zxid, [*before, *changed])

    def _trim(self, last: int) -> None:
        if last > 0:
            self._db.execute("DELETE FROM changes WHERE zxid <= ?", (last,))
            self._db.execute("UPDATE journal SET trimmed = ?", (last,))

    def _take_own(self) -> None:
        """After the commit: what we did is news for our own watches, too."""
        if self._own is None:
            return
        self._seen, changed = self._own
        self._news.changed.extend(changed)
        self._news.is_own = True
        self._own = None
        # Some may have been begun or ended by us.
        self._take_sessions(dict(self._db.execute(_SESSIONS).fetchall()))
