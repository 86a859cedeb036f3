"""The fetch sessions of followers: one remembers where a follower is, and hears what is new for it.

A session of thousands of partitions must cost nothing while nothing happens, so each partition
tells the session of appends and of marks that moved, and a request is answered by looking at those
alone. Requests are taken only in the order of their session epochs: anything else changes nothing.

A partition is in one session of a follower at a time. A request that begins a new one ends every
older session it overlaps, so that a request that was long on its way cannot stay in charge: the
follower's next one finds its session gone, and says everything anew.
"""

import secrets
from collections.abc import Callable, Iterable
from typing import Final

from penstock.errors import FetchSessionIdNotFound, InvalidFetchSessionEpoch
from penstock.replica.in_sync import Seen
from penstock.replica.partition import Partition
from penstock.replica.reads import FollowerFetch

FULL: Final = 0
_EPOCH_MAX: Final = 0x7FFFFFFF
_SESSION_ID_MAX: Final = 0x7FFFFFFF
_STALE_MS: Final = 120_000
_HURRY_MS: Final = 500  # For so long after a hurry began...
_HURRIED_WAIT_MS: Final = 20  # ...a request with no answer waits no longer than this.

Key = tuple[str | bytes, int]


class SessionPartition:
    """One partition of a session; the partition's watcher."""

    __slots__ = (
        "bytes_max",
        "fetch",
        "key",
        "partition",
        "session",
        "told_high_watermark",
        "told_log_start_offset",
        "topic",
    )

    def __init__(self, key: Key, session: "FollowerSession") -> None:
        self.key = key
        self.session = session
        self.topic: str | None = None
        self.partition: Partition | None = None  # None: it was not there when it was asked for.
        self.fetch: FollowerFetch | None = None
        self.bytes_max = 0
        self.told_high_watermark = -1
        self.told_log_start_offset = -1

    def grown(self, size_bytes: int) -> None:
        session = self.session
        session.dirty[self] = None
        if session.on_growth is not None:
            session.on_growth(size_bytes)

    def moved(self) -> None:
        self.session.dirty[self] = None

    def belongs_to(self, partition: Partition | None) -> None:
        """Listen to a partition, and to none before it."""
        if partition is self.partition:
            return
        if self.partition is not None:
            self.partition.unwatch_as_follower(self, self.session.seen)
        self.partition = partition
        if partition is not None:
            partition.watch_as_follower(self)


class FollowerSession:
    """The partitions one fetcher of a follower copies from here."""

    def __init__(self, *, session_id: int, replica_id: int, replica_epoch: int, at_ms: int) -> None:
        self.session_id = session_id
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.epoch = FULL  # Of the last request that was taken.
        self.seen = Seen(at_ms)
        self.entries: dict[Key, SessionPartition] = {}
        self.dirty: dict[
            SessionPartition, None
        ] = {}  # Something is new, or was not told for lack of room.
        self.on_growth: Callable[[int], None] | None = None  # None: no request waits.

    def close(self) -> None:
        for entry in self.entries.values():
            entry.belongs_to(None)
        self.entries.clear()
        self.dirty.clear()


class FollowerSessions:
    """The sessions of all followers; they are never in the way of those of consumers."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._sessions: dict[int, FollowerSession] = {}
        self._owners: dict[tuple[int, Key], FollowerSession] = {}
        self._hurried_until_ms = -1

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, replica_id: int, replica_epoch: int, *, closes: int) -> FollowerSession:
        """A new session in the place of `closes`, and of all of the broker's earlier lives."""
        now_ms = self._clock_ms()
        for session in tuple(self._sessions.values()):
            is_replaced = session.session_id == closes and session.replica_id == replica_id
            is_of_the_dead = (
                session.replica_id == replica_id and session.replica_epoch < replica_epoch
            )
            if is_replaced or is_of_the_dead or now_ms - session.seen.at_ms > _STALE_MS:
                self._close(session)
        session = FollowerSession(
            session_id=self._unused_id(),
            replica_id=replica_id,
            replica_epoch=replica_epoch,
            at_ms=now_ms,
        )
        self._sessions[session.session_id] = session
        return session

    def continue_session(
        self, session_id: int, epoch: int, replica_id: int, replica_epoch: int
    ) -> FollowerSession:
        """Take the next request of a session; raises if it is not the next one."""
        session = self._sessions.get(session_id)
        if session is None or session.replica_id != replica_id:
            raise FetchSessionIdNotFound(f"there is no fetch session {session_id}")
        expected = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        if expected != epoch or session.replica_epoch != replica_epoch:
            raise InvalidFetchSessionEpoch(
                f"fetch session {session_id} expects epoch {expected}, not {epoch}"
            )
        session.epoch = epoch
        session.seen.at_ms = self._clock_ms()
        return session

    def entry(self, session: FollowerSession, key: Key) -> SessionPartition:
        """The session's entry of a partition; any other session of the follower is over then."""
        found = session.entries.get(key)
        if found is not None:
            return found
        owner = self._owners.get((session.replica_id, key))
        if owner is not None and owner is not session:
            self._close(owner)
        self._owners[session.replica_id, key] = session
        made = session.entries[key] = SessionPartition(key, session)
        return made

    def forget(self, session: FollowerSession, keys: Iterable[Key]) -> None:
        for key in keys:
            entry = session.entries.pop(key, None)
            if entry is not None:
                entry.belongs_to(None)
                session.dirty.pop(entry, None)
                self._owners.pop((session.replica_id, key), None)

    def _close(self, session: FollowerSession) -> None:
        if self._sessions.pop(session.session_id, None) is None:
            return
        for key in session.entries:
            if self._owners.get((session.replica_id, key)) is session:
                del self._owners[session.replica_id, key]
        session.close()
        if session.on_growth is not None:
            session.on_growth(_EPOCH_MAX)  # Wakes a request that waits, so that it ends.

    def hurry(self) -> None:
        """Answer all waiting fetches soon: this broker has begun to lead partitions.

        A follower has one request out at a time. While that waits here, the follower cannot ask
        for the new partitions. It may learn of them a little later than this broker, so for a
        while its next requests are answered soon, too.
        """
        self._hurried_until_ms = self._clock_ms() + _HURRY_MS
        for session in self._sessions.values():
            if session.on_growth is not None:
                session.on_growth(0)

    @property
    def is_hurried(self) -> bool:
        return self._clock_ms() < self._hurried_until_ms

    def wait_ms(self, asked_ms: int) -> int:
        """How long a request may wait here: `wait_s`, or less for a while after `hurry`."""
        return min(asked_ms, _HURRIED_WAIT_MS) if self.is_hurried else asked_ms

    def is_open(self, session: FollowerSession) -> bool:
        return self._sessions.get(session.session_id) is session

    def _unused_id(self) -> int:
        while True:
            drawn = secrets.randbelow(_SESSION_ID_MAX) + 1
            if drawn not in self._sessions:
                return drawn
