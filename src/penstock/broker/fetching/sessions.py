"""Incremental fetch sessions (KIP-227): what a consumer asked before need not be said again.

A session remembers the partitions of a fetcher and what it was last told of each, so that a
request names only changes and an answer holds only news. Pure bookkeeping: time comes in, no log
is read here.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from penstock.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicId,
    InvalidFetchSessionEpoch,
)
from penstock.net.session import Session

if TYPE_CHECKING:
    from penstock.broker.context import Broker
    from penstock.broker.fetching.follower_sessions import FollowerSessions
    from penstock.replica.throttle import ReplicationRate

NO_SESSION = 0
FIRST_EPOCH = 0  # A full fetch that asks for a session.
FINAL_EPOCH = -1  # A full fetch that wants none, and closes the one it names.
_EPOCH_MAX = 0x7FFFFFFF
_SESSION_ID_MAX = 0x7FFFFFFF

Key: TypeAlias = tuple[str | bytes, int]  # Topic name, or topic id from version 13 on; partition.


@dataclass(slots=True, kw_only=True)
class FetchedPartition:
    """What a fetcher wants of one partition, and what it was told last."""

    key: Key
    fetch_offset: int
    bytes_max: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    told_high_watermark: int = -1
    told_log_start_offset: int = -1

    def want(self, newer: "FetchedPartition") -> None:
        self.fetch_offset = newer.fetch_offset
        self.bytes_max = newer.bytes_max
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch
        self.log_start_offset = newer.log_start_offset

    def tell(self, *, high_watermark: int, log_start_offset: int, has_records: bool) -> bool:
        """Note what an answer would say; whether it is news to the fetcher."""
        is_news = (
            has_records
            or high_watermark != self.told_high_watermark
            or log_start_offset != self.told_log_start_offset
        )
        self.told_high_watermark = high_watermark
        self.told_log_start_offset = log_start_offset
        return is_news

    def tell_error(self) -> None:
        """After an error the next good answer is news, whatever it says."""
        self.told_high_watermark = -1


class FetchSession:
    """One fetcher's partitions, in the order in which they get their turn."""

    def __init__(self, *, session_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.reader: Session | None = None  # On whose connection it is used; None: on none.
        self.partitions: OrderedDict[Key, FetchedPartition] = OrderedDict()

    def update(self, wanted: Iterable[FetchedPartition], forgotten: Iterable[Key]) -> None:
        for key in forgotten:
            self.partitions.pop(key, None)
        for partition in wanted:
            known = self.partitions.get(partition.key)
            if known is None:
                self.partitions[partition.key] = partition
            else:
                known.want(partition)

    def had_its_turn(self, key: Key) -> None:
        """One that got records goes to the end, so that a busy partition starves no other."""
        if key in self.partitions:
            self.partitions.move_to_end(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPlan:
    """The partitions one request reads, and the session it belongs to."""

    partitions: tuple[FetchedPartition, ...]
    session: FetchSession | None  # None: answered in full, nothing is remembered.
    is_incremental: bool

    @property
    def session_id(self) -> int:
        return self.session.session_id if self.session else NO_SESSION

    def __iter__(self) -> Iterator[FetchedPartition]:
        return iter(self.partitions)


class FetchSessions:
    """The broker's sessions; the least recently used one gives way when the slots are full."""

    def __init__(self, *, slots: int, evict_after_ms: int) -> None:
        self._slots = slots
        self._evict_after_ms = evict_after_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._followers: FollowerSessions | None = None  # None: no follower ever asked.
        self._leader_rate: ReplicationRate | None = None

    @property
    def followers(self) -> "FollowerSessions":
        """The sessions of followers, which a broker alone never needs."""
        if self._followers is None:
            from penstock.broker.fetching.follower_sessions import FollowerSessions
            from penstock.replica.surroundings import monotonic_ms

            self._followers = FollowerSessions(monotonic_ms)
        return self._followers

    def leader_rate(self, broker: "Broker") -> "ReplicationRate":
        """How fast throttled followers may copy from here."""
        if self._leader_rate is None:
            from penstock.replica.surroundings import monotonic_ms
            from penstock.replica.throttle import ReplicationRate, window_s

            self._leader_rate = ReplicationRate(
                lambda: broker.config.leader_replication_throttled_rate,
                window_s=lambda: window_s(broker.config),
                clock_ms=monotonic_ms,
            )
        return self._leader_rate

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(
        self,
        *,
        session_id: int,
        epoch: int,
        wanted: list[FetchedPartition],
        forgotten: list[Key],
        uses_topic_ids: bool,
        now_ms: int,
        reader: Session | None = None,
    ) -> FetchPlan:
        """The partitions a request reads; its session ends when the `reader` leaves."""
        if not self._may_use(session_id, reader):
            # Its answers would name topics that somebody else asked for.
            raise FetchSessionIdNotFound(f"there is no fetch session {session_id}")
        if epoch in (FIRST_EPOCH, FINAL_EPOCH):
            self.forget(session_id)
            session = None
            if epoch == FIRST_EPOCH and wanted:
                session = self._create(wanted, uses_topic_ids=uses_topic_ids, now_ms=now_ms)
                if session is not None and reader is not None:
                    self._give_to(reader, session)
            return FetchPlan(partitions=tuple(wanted), session=session, is_incremental=False)
        session = self._find_session(session_id, epoch, uses_topic_ids=uses_topic_ids)
        session.update(wanted, forgotten)
        if not session.partitions:
            self.forget(session_id)
            return FetchPlan(partitions=(), session=None, is_incremental=False)
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        session.last_used_ms = now_ms
        if session.reader is not reader and reader is not None:
            self._give_to(reader, session)
        self._sessions.move_to_end(session_id)
        return FetchPlan(
            partitions=tuple(session.partitions.values()), session=session, is_incremental=True
        )

    def _may_use(self, session_id: int, reader: Session | None) -> bool:
        """Whether the session is the reader's; one that is not there may be asked for by all."""
        session = self._sessions.get(session_id)
        if session is None or session.reader is None or reader is None:
            return True
        return session.reader.principal == reader.principal

    def forget(self, session_id: int) -> None:
        """End a session, if there is one: its fetcher closed it, or was never told of it."""
        session = self._sessions.pop(session_id, None)
        if session is not None and session.reader is not None:
            session.reader.cancel_at_close(session)

    def _give_to(self, reader: Session, session: FetchSession) -> None:
        """A client that lost its connection begins anew, so the session need not outlive it."""
        if session.reader is not None:
            session.reader.cancel_at_close(session)
        session.reader = reader
        reader.at_close(session, partial(self.forget, session.session_id))

    def _find_session(self, session_id: int, epoch: int, *, uses_topic_ids: bool) -> FetchSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise FetchSessionIdNotFound(f"there is no fetch session {session_id}")
        if session.epoch != epoch:
            raise InvalidFetchSessionEpoch(
                f"fetch session {session_id} is at epoch {session.epoch}, not {epoch}"
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise FetchSessionTopicId(
                f"fetch session {session_id} began with other names for topics"
            )
        return session

    def _create(
        self, wanted: list[FetchedPartition], *, uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | None:
        if not self._make_room(len(wanted), now_ms=now_ms):
            return None
        session = FetchSession(
            session_id=self._unused_id(), uses_topic_ids=uses_topic_ids, now_ms=now_ms
        )
        session.update(wanted, ())
        self._sessions[session.session_id] = session
        return session

    def _make_room(self, size: int, *, now_ms: int) -> bool:
        if self._slots <= 0:
            return False
        if len(self._sessions) < self._slots:
            return True
        oldest = next(iter(self._sessions.values()))
        is_stale = now_ms - oldest.last_used_ms > self._evict_after_ms
        # A session of more partitions saves more, once the smaller one is old enough.
        is_outgrown = (
            len(oldest.partitions) < size and now_ms - oldest.created_ms > self._evict_after_ms
        )
        if is_stale or is_outgrown:
            self.forget(oldest.session_id)
            return True
        return False

    def _unused_id(self) -> int:
        # Drawn, not counted: a guessed id must not open another client's session.
        while True:
            drawn = secrets.randbelow(_SESSION_ID_MAX) + 1
            if drawn not in self._sessions:
                return drawn
