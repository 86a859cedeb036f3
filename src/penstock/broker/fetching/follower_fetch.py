"""Fetches of followers: what other brokers copy from the partitions this broker leads.

Apart from those of consumers because everything about them differs: they read to the end of the
log, what they say of their own logs moves the high watermark, no quota of clients holds them up,
and their sessions are told what is new instead of looking.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from penstock.broker.between_brokers import follower_of
from penstock.broker.context import Broker, RequestContext
from penstock.broker.fetching.follower_sessions import FULL, FollowerSession, Key, SessionPartition
from penstock.broker.fetching.parts import (
    FIRST_VERSION_WITH_SESSIONS,
    FIRST_VERSION_WITH_TOPIC_IDS,
    UNKNOWN,
    answered,
    failed,
    forgotten,
    topic_response,
)
from penstock.errors import (
    FetchSessionIdNotFound,
    InconsistentTopicId,
    ProtocolError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from penstock.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from penstock.replica.partition import Partition
from penstock.replica.reads import FollowerFetch, PartitionRead
from penstock.replica.throttle import is_throttled

_NO_SESSION = 0


def handle(
    request: FetchRequest, context: RequestContext
) -> FetchResponse | Coroutine[Any, Any, FetchResponse]:
    work = _Fetch(request, context)
    work.look(work.begin(), is_again=False)
    if work.is_done or request.max_wait_ms <= 0:
        return work.response()
    return work.wait()


class _Fetch:
    """One request of a follower, from its arrival to its answer."""

    def __init__(self, request: FetchRequest, context: RequestContext) -> None:
        self._request = request
        self._broker = context.broker
        self._version = context.version
        self._replica_id = follower_of(request)
        self._replica_epoch = request.replica_state.replica_epoch
        self._sessions = context.broker.fetch_sessions.followers
        self._rate = context.broker.fetch_sessions.leader_rate(context.broker)
        self._session: FollowerSession
        self._is_full = True
        self._is_remembered = True
        self._epoch = FULL
        self._size = 0
        self._has_errors = False
        self._found: dict[SessionPartition, PartitionData] = {}

    # What is asked

    def begin(self) -> list[SessionPartition]:
        """Take the request into its session; the entries to look at."""
        request, sessions = self._request, self._sessions
        self._is_full = request.session_epoch <= FULL
        if self._is_full:
            session = sessions.begin(
                self._replica_id, self._replica_epoch, closes=request.session_id
            )
            has_sessions = self._version >= FIRST_VERSION_WITH_SESSIONS
            self._is_remembered = has_sessions and request.session_epoch == FULL
        else:
            session = sessions.continue_session(
                request.session_id, request.session_epoch, self._replica_id, self._replica_epoch
            )
            sessions.forget(session, forgotten(request, self._version))
        self._session, self._epoch = session, session.epoch
        named = [
            self._entry(topic.topic_id, topic.topic, partition)
            for topic in request.topics
            for partition in topic.partitions
        ]
        return list(dict.fromkeys([*named, *session.dirty]))

    def _entry(self, topic_id: bytes, topic: str, wanted: FetchPartition) -> SessionPartition:
        has_ids = self._version >= FIRST_VERSION_WITH_TOPIC_IDS
        key: Key = (topic_id if has_ids else topic, wanted.partition)
        entry = self._sessions.entry(self._session, key)
        entry.bytes_max = wanted.partition_max_bytes
        entry.fetch = FollowerFetch(
            replica_id=self._replica_id,
            replica_epoch=self._replica_epoch,
            fetch_offset=wanted.fetch_offset,
            log_start_offset=wanted.log_start_offset,
            current_leader_epoch=wanted.current_leader_epoch,
            last_fetched_epoch=wanted.last_fetched_epoch,
        )
        entry.told_high_watermark = UNKNOWN  # Who names a partition is told of it.
        entry.topic, found = _find(key, self._broker)
        entry.belongs_to(found)
        return entry

    # What is there

    @property
    def is_done(self) -> bool:
        return self._has_errors or self._size >= self._request.min_bytes

    def look(self, entries: Iterable[SessionPartition], *, is_again: bool) -> None:
        """Read what is new; what does not fit stays for the next request."""
        left = min(self._request.max_bytes, self._broker.config.fetch_max_bytes) - self._size
        dirty = self._session.dirty
        for entry in entries:
            dirty.pop(entry, None)
            before = self._found.pop(entry, None)
            if before is not None and before.records is not None:  # It is read anew as a whole.
                self._size -= len(before.records)
                left += len(before.records)
            try:
                read, is_all = self._read(entry, left, is_again=is_again)
            except ProtocolError as error:
                self._has_errors = True
                self._found[entry] = failed(entry.key[1], error)
                continue
            size = len(read.records)
            left -= size
            self._size += size
            self._has_errors |= read.diverging is not None
            if not is_all:
                dirty[entry] = None
            if size or self._is_news(entry, read):
                self._found[entry] = answered(entry.key[1], read, aborted=None)

    def _read(
        self, entry: SessionPartition, left: int, *, is_again: bool
    ) -> tuple[PartitionRead, bool]:
        """What a follower gets of a partition, and whether nothing was held back."""
        partition, fetch = entry.partition, entry.fetch
        assert fetch is not None
        if partition is None:
            raise _why_not_there(entry.key, self._broker)
        is_held_back = self._is_throttled(partition) and self._rate.is_exceeded
        bytes_max = 0 if is_held_back else min(entry.bytes_max, max(left, 0))
        read = partition.read_as_follower(
            fetch,
            bytes_max=bytes_max,
            # The first batch comes whatever its size, or a follower could not move.
            min_one=not self._size and not is_held_back,
            is_again=is_again,
            seen=self._session.seen,
        )
        size = len(read.records)
        if size:
            self._count(entry, partition, size)
        is_all = size > 0 or fetch.fetch_offset >= partition.log.log_end_offset
        return read, is_all or read.diverging is not None

    def _is_throttled(self, partition: Partition) -> bool:
        words = partition.log.config.leader_replication_throttled_replicas
        state = partition.state
        return (
            bool(words)
            and is_throttled(words, partition.partition, self._broker.broker_id)
            and state is not None
            and self._replica_id not in state.isr
        )

    def _count(self, entry: SessionPartition, partition: Partition, size: int) -> None:
        if entry.topic is not None:
            self._broker.metrics.topic(entry.topic).replication_bytes_out += size
        if self._is_throttled(partition):
            self._rate.note(size)

    def _is_news(self, entry: SessionPartition, read: PartitionRead) -> bool:
        return (
            self._is_full
            or read.diverging is not None
            or read.high_watermark != entry.told_high_watermark
            or read.log_start_offset != entry.told_log_start_offset
        )

    # Waiting

    async def wait(self) -> FetchResponse:
        """Look again whenever something was appended, until there is enough or time is up."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._sessions.wait_ms(self._request.max_wait_ms) / 1000
        session = self._session
        while True:
            grown = loop.create_future()

            def wake(_size_bytes: int, grown: "asyncio.Future[None]" = grown) -> None:
                if not grown.done():
                    grown.set_result(None)

            session.on_growth = wake
            timer = loop.call_at(deadline_s, wake, 0)
            try:
                await grown
            finally:
                timer.cancel()
                if session.on_growth is wake:
                    session.on_growth = None
            if session.epoch != self._epoch or not self._sessions.is_open(session):
                # Another request took over: this one must not take anything from it.
                raise FetchSessionIdNotFound("the fetch session went on without this request")
            self.look(tuple(session.dirty), is_again=True)
            is_over = loop.time() >= deadline_s or self._sessions.is_hurried
            if self.is_done or is_over or self._broker.is_stopping:
                return self.response()

    # The answer

    def response(self) -> FetchResponse:
        session = self._session
        topics: dict[str | bytes, FetchableTopicResponse] = {}
        for entry, data in self._found.items():
            named = entry.key[0]
            topic = topics.get(named)
            if topic is None:
                topic = topics[named] = topic_response(named)
            topic.partitions.append(data)
            entry.told_high_watermark = data.high_watermark
            entry.told_log_start_offset = data.log_start_offset
        if not self._is_remembered:
            self._sessions.forget(session, tuple(session.entries))
        session_id = session.session_id if self._is_remembered else _NO_SESSION
        return FetchResponse(session_id=session_id, responses=list(topics.values()))


def _find(key: Key, broker: Broker) -> tuple[str | None, Partition | None]:
    named, index = key
    topic = broker.image.topic_names_by_id.get(named) if isinstance(named, bytes) else named
    if topic is None:
        return None, None
    found = broker.partitions.get(topic, index)
    if found is not None and isinstance(named, bytes) and found.topic_id != named:
        return topic, None
    return topic, found


def _why_not_there(key: Key, broker: Broker) -> ProtocolError:
    named, index = key
    if isinstance(named, bytes):
        topic = broker.image.topic_names_by_id.get(named)
        if topic is None:
            return UnknownTopicId("no topic has this id")
        if broker.partitions.get(topic, index) is not None:
            return InconsistentTopicId(f"{topic} has another id on disk")
        named = topic
    return UnknownTopicOrPartition(f"{named}-{index} is not on this broker")
