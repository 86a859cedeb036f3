"""One fetcher task: copies partitions from one leading broker, one request under way at a time.

Requests belong to an incremental fetch session: each names only the partitions whose position
changed, so a thousand quiet ones cost nothing. An answer counts only as the answer to the request
just made; whenever that is in doubt, the session is given up and the next request says it all.

A partition that fails is left out for a while, longer each time, and the others go on. One that
comes new while a request waits at the leader does not wait with it: that request is given up.
"""

import asyncio
import heapq
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from penstock.config.broker import BrokerConfig
from penstock.errors import CorruptRecord, ErrorCode, KafkaStorage, PenstockError
from penstock.net.peers import Peers, PeerUnreachable
from penstock.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.replica.following import (
    Position,
    Taken,
    is_current,
    position_of,
    settle_out_of_range,
    take_answer,
)
from penstock.replica.partition import Partition
from penstock.replica.throttle import ReplicationRate, is_throttled

log = logging.getLogger("kafka.server.ReplicaFetcherThread")

FETCH_VERSION: Final = 17
_NO_SESSION: Final = 0
_FULL: Final = 0
_EPOCH_MAX: Final = 0x7FFFFFFF
_FIRST_PAUSE_S: Final = 0.02
_PATIENCE_S: Final = 0.02  # A request out for longer waits at the leader, and may be given up...
_GIVE_UP_EVERY_S: Final = 0.1  # ...but not for each of many partitions that come one by one.
_THROTTLED_S: Final = 0.1  # How often one that is held back is looked at.
_TURN_PARTITIONS: Final = 64  # So many appends in a row, and then somebody else may run.
_LATEST, _EARLIEST = -1, -2
_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

Key = tuple[bytes, int]


class Followed:
    """A partition in the care of a fetcher."""

    __slots__ = ("fail_count", "is_out", "is_paused", "key", "partition", "sent")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key: Key = (partition.topic_id, partition.partition)
        self.sent: Position | None = None  # What the leader's session knows; None: nothing.
        self.fail_count = 0
        self.is_paused = False
        self.is_out = False  # Not followed any more.


class Fetcher:
    """Follows partitions of one leader until it is stopped."""

    def __init__(
        self,
        *,
        leader_id: int,
        number: int,
        broker_id: int,
        broker_epoch: Callable[[], int],
        peers: Peers,
        config: Callable[[], BrokerConfig],
        now_ms: Callable[[], int],
        rate: ReplicationRate,
        on_cut: Callable[[], None],
        on_bytes: Callable[[str, int], None],
    ) -> None:
        self.leader_id = leader_id
        self.number = number
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._peers = peers
        self._config = config
        self._now_ms = now_ms
        self._rate = rate
        self._on_cut = on_cut
        self._on_bytes = on_bytes
        self._has_cut = False
        self._loop = asyncio.get_running_loop()
        self._followed: dict[Partition, Followed] = {}
        self._by_key: dict[Key, Followed] = {}
        self._changed: dict[Followed, None] = {}  # To be named in the next request.
        self._forgotten: dict[Key, None] = {}  # The session has them, and should not.
        self._paused: list[tuple[float, int, Followed]] = []
        self._pause_count = 0
        self._held_back: dict[Followed, None] = {}  # Throttled; asked for when there is room.
        self._session_id = _NO_SESSION
        self._session_epoch = _FULL
        self._fail_count = 0  # Requests in a row that brought no answer.
        self._woken = asyncio.Event()
        self._asking: asyncio.Task[FetchResponse] | None = None  # None: no request is out.
        self._asked_s = 0.0
        self._gave_up_s = -_GIVE_UP_EVERY_S
        self._is_given_up = False
        self._task = asyncio.create_task(self._run(), name=f"fetcher-{leader_id}-{number}")

    # Whom to follow

    @property
    def partition_count(self) -> int:
        return len(self._followed)

    @property
    def failed_partition_count(self) -> int:
        return sum(1 for followed in self._followed.values() if followed.fail_count)

    def follow(self, partition: Partition) -> None:
        """Take a partition on, or look at it again: its leader epoch may be another."""
        followed = self._followed.get(partition)
        if followed is None:
            followed = self._followed[partition] = Followed(partition)
            self._by_key[followed.key] = followed
        elif followed.sent is not None and followed.sent.leader_epoch == partition.leader_epoch:
            return  # The next request says the rest.
        followed.is_paused = False
        followed.fail_count = 0
        self._changed[followed] = None
        self._hurry()

    def remove(self, partition: Partition) -> None:
        followed = self._followed.pop(partition, None)
        if followed is None:
            return
        followed.is_out = True
        if self._by_key.get(followed.key) is followed:
            del self._by_key[followed.key]
        self._changed.pop(followed, None)
        self._held_back.pop(followed, None)
        self._forget(followed)

    def _forget(self, followed: Followed) -> None:
        if followed.sent is not None:
            self._forgotten[followed.key] = None
            followed.sent = None

    def _hurry(self) -> None:
        """Something is to be asked now; a request that waits at the leader is given up for it."""
        self._woken.set()
        now_s = self._loop.time()
        if self._asking is None or now_s < self._gave_up_s + _GIVE_UP_EVERY_S:
            return
        if now_s >= self._asked_s + _PATIENCE_S:
            self._give_up()
        else:
            self._loop.call_at(self._asked_s + _PATIENCE_S, self._give_up_if_asked, self._asked_s)

    def _give_up_if_asked(self, asked_s: float) -> None:
        if self._asking is not None and self._asked_s == asked_s and self._changed:
            self._give_up()

    def _give_up(self) -> None:
        self._gave_up_s = self._loop.time()
        self._is_given_up = True
        if self._asking is not None:
            self._asking.cancel()

    # The task

    def stop(self) -> None:
        self._task.cancel()

    async def ended(self) -> None:
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        try:
            while True:
                await self._round()
        finally:
            if self._asking is not None:
                self._asking.cancel()

    async def _round(self) -> None:
        """One request and its answer; whatever goes wrong, there is a next round."""
        self._resume()
        if not self._has_work():
            await self._pause()
            return
        try:
            request = self._request()
            response = await self._ask(request)
            if response is None:
                return
            self._fail_count = 0
            await self._take(response)
        except PeerUnreachable as error:
            if not self._fail_count:
                log.warning("%s: %s", self, error)
            await self._start_over()
        except Exception:
            log.exception("%s failed and goes on", self)
            await self._start_over()

    def __repr__(self) -> str:
        me, leader, number = self._broker_id, self.leader_id, self.number
        return f"[ReplicaFetcher replicaId={me}, leaderId={leader}, fetcherId={number}]"

    async def _start_over(self) -> None:
        self._lose_session()
        self._fail_count += 1
        self._woken.clear()
        await self._wait(self._pause_s(self._fail_count))

    async def _wait(self, pause_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._woken.wait()

    async def _pause(self) -> None:
        """Nothing can be asked for now: until somebody comes, or a pause is over."""
        self._woken.clear()
        now_s = self._loop.time()
        due_s = self._paused[0][0] if self._paused else None
        if self._held_back:
            due_s = min(due_s or now_s + _THROTTLED_S, now_s + _THROTTLED_S)
        if due_s is None:
            await self._woken.wait()
        else:
            await self._wait(max(due_s - now_s, 0))

    def _pause_s(self, fail_count: int) -> float:
        longest_s = self._config().replica_fetch_backoff_ms / 1000
        return float(min(longest_s, _FIRST_PAUSE_S * 2 ** min(fail_count - 1, 16)))

    # Partitions that fail

    def _put_off(self, followed: Followed) -> None:
        """Leave a partition out of the requests for a while."""
        if followed.is_out:
            return
        followed.fail_count += 1
        followed.is_paused = True
        self._changed.pop(followed, None)
        self._forget(followed)
        self._pause_count += 1
        due_s = self._loop.time() + self._pause_s(followed.fail_count)
        heapq.heappush(self._paused, (due_s, self._pause_count, followed))

    def _resume(self) -> None:
        now_s = self._loop.time()
        while self._paused and self._paused[0][0] <= now_s:
            followed = heapq.heappop(self._paused)[2]
            if followed.is_paused and not followed.is_out:
                followed.is_paused = False
                self._changed[followed] = None

    def _has_work(self) -> bool:
        """Whether there is a partition that is neither paused nor held back."""
        self._hold_back_throttled()
        if not self._paused and not self._held_back:
            return bool(self._followed)
        idle = {f for _, _, f in self._paused if f.is_paused and not f.is_out}
        return len(idle.union(self._held_back)) < len(self._followed)

    # Asking

    def _lose_session(self) -> None:
        """The next request names everything, and closes the session, if there is one."""
        self._session_epoch = _FULL
        self._forgotten.clear()
        for followed in self._followed.values():
            followed.sent = None
            if not followed.is_paused:
                self._changed[followed] = None

    def _request(self) -> FetchRequest:
        config = self._config()
        topics: dict[bytes, FetchTopic] = {}
        for followed in self._changed:
            topic_id, number = followed.key
            position = followed.sent = position_of(followed.partition)
            self._forgotten.pop(followed.key, None)
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic_id=topic_id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=number,
                    current_leader_epoch=position.leader_epoch,
                    fetch_offset=position.fetch_offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=config.replica_fetch_max_bytes,
                )
            )
        self._changed.clear()
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._broker_id, replica_epoch=self._broker_epoch()
            ),
            max_wait_ms=self._wait_ms(config.replica_fetch_wait_max_ms),
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=self._forgotten_topics(),
        )

    def _forgotten_topics(self) -> list[ForgottenTopic]:
        if self._session_epoch == _FULL:
            self._forgotten.clear()  # A full request names what is wanted, and nothing else is.
        forgotten: dict[bytes, ForgottenTopic] = {}
        for topic_id, number in self._forgotten:
            topic = forgotten.setdefault(topic_id, ForgottenTopic(topic_id=topic_id, partitions=[]))
            topic.partitions.append(number)
        self._forgotten.clear()
        return list(forgotten.values())

    def _wait_ms(self, longest_ms: int) -> int:
        """Not longer than until a partition's pause is over, or the throttle lets one through."""
        if self._held_back:
            longest_ms = min(longest_ms, int(_THROTTLED_S * 1000))
        if not self._paused:
            return longest_ms
        until_s = self._paused[0][0] - self._loop.time()
        return max(min(longest_ms, int(until_s * 1000) + 1), 1)

    def _hold_back_throttled(self) -> None:
        is_exceeded = self._rate.is_exceeded
        if not is_exceeded:
            self._changed |= self._held_back
            self._held_back.clear()
            return
        for followed in tuple(self._changed):
            if self._is_throttled(followed.partition):
                del self._changed[followed]
                self._held_back[followed] = None
                self._forget(followed)

    def _is_throttled(self, partition: Partition) -> bool:
        words = partition.log.config.follower_replication_throttled_replicas
        state = partition.state
        return (
            is_throttled(words, partition.partition, self._broker_id)
            and state is not None
            and self._broker_id not in state.isr
        )

    async def _ask(self, request: FetchRequest) -> FetchResponse | None:
        """The answer; None: the request was given up for another."""
        config = self._config()
        self._woken.clear()
        self._is_given_up = False
        self._asked_s = self._loop.time()
        self._asking = asking = asyncio.ensure_future(self._asked(request, config))
        try:
            return await asking
        except asyncio.CancelledError:
            if not self._is_given_up or self._task.cancelling():
                raise
            self._lose_session()
            return None
        finally:
            self._asking = None

    async def _asked(self, request: FetchRequest, config: BrokerConfig) -> FetchResponse:
        response = await self._peers.ask(
            self.leader_id,
            request,
            timeout_s=config.replica_socket_timeout_ms / 1000,
            channel=f"fetch-{self.number}",
            version=FETCH_VERSION,
        )
        assert isinstance(response, FetchResponse)
        return response

    # The answer

    async def _take(self, response: FetchResponse) -> None:
        if response.error_code != ErrorCode.NONE:
            await self._take_error(ErrorCode(response.error_code))
            return
        if not self._continues(response.session_id):
            log.warning("%s: an answer of session %d is dropped", self, response.session_id)
            await self._start_over()
            return
        outside: list[Followed] = []
        appended_count = 0
        for topic in response.responses:
            for data in topic.partitions:
                followed = self._by_key.get((topic.topic_id, data.partition_index))
                if followed is not None and followed.sent is not None:
                    appended_count += self._take_partition(followed, data, outside)
                if appended_count >= _TURN_PARTITIONS:
                    appended_count = 0
                    await asyncio.sleep(0)
        for followed in outside:
            await self._settle_out_of_range(followed)
        if self._has_cut:
            self._has_cut = False
            self._on_cut()

    async def _take_error(self, code: ErrorCode) -> None:
        if code in _SESSION_ERRORS:
            self._session_id = _NO_SESSION
            self._lose_session()
            return
        log.warning("%s: the leader answered %s", self, code.name)
        await self._start_over()

    def _continues(self, session_id: int) -> bool:
        """Whether the answer is of the session the request was made in, or begins one."""
        if self._session_epoch != _FULL:
            if session_id != self._session_id:
                return False
            epoch = self._session_epoch
            self._session_epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
            return True
        self._session_id = session_id
        if session_id != _NO_SESSION:
            self._session_epoch = 1
        else:  # The leader keeps none: everything must be said each time.
            self._lose_session()
        return True

    def _take_partition(
        self, followed: Followed, data: PartitionData, outside: list[Followed]
    ) -> bool:
        """Take one partition's answer on; whether something was appended."""
        partition, asked = followed.partition, followed.sent
        assert asked is not None
        try:
            taken = take_answer(partition, asked, data, now_ms=self._now_ms())
        except (CorruptRecord, KafkaStorage) as error:
            log.error("%s: %s-%d: %s", self, *partition.key, error)
            self._put_off(followed)
            return False
        match taken:
            case Taken.FAILED:
                self._failed(followed, ErrorCode(data.error_code))
                return False
            case Taken.OUT_OF_RANGE:
                outside.append(followed)
                return False
            case Taken.CUT:
                self._has_cut = True
                log.info(
                    "%s: Truncating %s-%d to %d, where the leader's log goes another way",
                    self,
                    *partition.key,
                    partition.log.log_end_offset,
                )
        followed.fail_count = 0
        if taken is Taken.APPENDED:
            self._count(partition, len(data.records or b""))
        # Where only the start moved the leader is told too: DeleteRecords waits for it. After a
        # cut the same position may be asked for again, with another epoch or none.
        if taken is Taken.CUT or position_of(partition) != asked:
            self._changed[followed] = None
        return taken is Taken.APPENDED

    def _count(self, partition: Partition, size_bytes: int) -> None:
        self._on_bytes(partition.topic, size_bytes)
        if self._is_throttled(partition):
            self._rate.note(size_bytes)

    def _failed(self, followed: Followed, code: ErrorCode) -> None:
        level = logging.INFO if followed.fail_count == 4 else logging.DEBUG
        log.log(level, "%s: %s-%d: %s", self, *followed.partition.key, code.name)
        self._put_off(followed)

    # Outside the leader's log

    async def _settle_out_of_range(self, followed: Followed) -> None:
        partition, asked = followed.partition, followed.sent
        if asked is None or followed.is_out:
            return
        try:
            leader_end = await self._leader_offset(partition, asked, _LATEST)
            leader_start = await self._leader_offset(partition, asked, _EARLIEST)
            if is_current(partition, asked):
                settle_out_of_range(partition, leader_start, leader_end)
                self._has_cut = True
                log.warning(
                    "%s: %s-%d was at %d, outside the leader's [%d, %d]; it goes on at %d",
                    self,
                    *partition.key,
                    asked.fetch_offset,
                    leader_start,
                    leader_end,
                    partition.log.log_end_offset,
                )
            self._changed[followed] = None
        except (PeerUnreachable, PenstockError) as error:
            log.warning("%s: %s-%d: %s", self, *partition.key, error)
            self._put_off(followed)

    async def _leader_offset(self, partition: Partition, asked: Position, timestamp: int) -> int:
        request = ListOffsetsRequest(
            replica_id=self._broker_id,
            topics=[
                ListOffsetsTopic(
                    name=partition.topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=partition.partition,
                            current_leader_epoch=asked.leader_epoch,
                            timestamp=timestamp,
                        )
                    ],
                )
            ],
        )
        response = await self._peers.ask(
            self.leader_id,
            request,
            timeout_s=self._config().replica_socket_timeout_ms / 1000,
            channel=f"fetch-{self.number}",
        )
        assert isinstance(response, ListOffsetsResponse)
        answer = response.topics[0].partitions[0]
        if answer.error_code != ErrorCode.NONE:
            raise PenstockError(f"ListOffsets failed: {ErrorCode(answer.error_code).name}")
        return answer.offset
