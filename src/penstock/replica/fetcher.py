"""One fetcher task: copies partitions from one leading broker, one request under way at a time.

What to ask for is in `fetch_book.py`, what an answer does to a partition in `following.py`. An
answer counts only as the answer to the request just made. Whatever fails, there is a next round. A
partition that comes new while a request waits at the leader does not wait with it: that request is
given up for another.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from penstock.config.broker import BrokerConfig
from penstock.errors import CorruptRecord, ErrorCode, KafkaStorage, PenstockError
from penstock.net.peers import Peers, PeerUnreachable
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.replica.fetch_book import FetchBook, Followed
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
from penstock.storage.directories.disk_room import NoRoom
from penstock.storage.log.log import Log

log = logging.getLogger("kafka.server.ReplicaFetcherThread")

FETCH_VERSION: Final = 17
_KNOCK_VERSION: Final = 0
_FIRST_PAUSE_S: Final = 0.02
# A leader answers all waiting fetches when it takes over partitions: see FollowerSessions.hurry.
# A leader that does not answer may be busy taking over, or have led these partitions for long. A
# request given up costs the session. So this waits a little, and gives up no more often than this.
_GIVE_UP_AFTER_S: Final = 0.25
_GIVE_UP_EVERY_S: Final = 0.5
_THROTTLED_S: Final = 0.1  # How often the throttle is asked again.
_TURN_PARTITIONS: Final = 64  # After so many appends others get the event loop.
_LATEST, _EARLIEST = -1, -2
_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


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
        on_copied: Callable[[str, int], None],
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
        self._on_copied = on_copied
        self._has_cut = False
        self._loop = asyncio.get_running_loop()
        self._book = FetchBook()
        self._fail_count = 0  # Requests in a row that brought no answer.
        self._woken = asyncio.Event()
        self._asking: asyncio.Task[FetchResponse] | None = None  # None: no request is out.
        self._gave_up_s = -_GIVE_UP_EVERY_S
        self._is_given_up = False
        self._is_about_to_give_up = False
        self._is_stopped = False
        self._task = asyncio.create_task(self._run(), name=f"fetcher-{leader_id}-{number}")

    # Whom to follow

    @property
    def partition_count(self) -> int:
        return len(self._book)

    @property
    def failed_partition_count(self) -> int:
        return self._book.failed_count

    def follow(self, partition: Partition) -> None:
        """Follow a partition, or follow it in a new leader epoch."""
        if self._book.follow(partition):
            self._hurry()

    def remove(self, partition: Partition) -> None:
        self._book.remove(partition)

    def _hurry(self) -> None:
        """Ask for something new soon; a request that waits at the leader is given up for it."""
        self._woken.set()
        if self._asking is None or self._is_about_to_give_up:
            return
        self._is_about_to_give_up = True
        at_s = max(self._loop.time() + _GIVE_UP_AFTER_S, self._gave_up_s + _GIVE_UP_EVERY_S)
        self._loop.call_at(at_s, self._give_up_if_asked, self._asking)

    def _give_up_if_asked(self, asking: "asyncio.Task[FetchResponse]") -> None:
        self._is_about_to_give_up = False
        if self._asking is asking and self._book.has_news:
            self._give_up()
        elif self._asking is not None and self._book.has_news:
            self._hurry()  # Another request is out by now, and does not ask for the news either.

    def _give_up(self) -> None:
        self._gave_up_s = self._loop.time()
        self._is_given_up = True
        if self._asking is not None:
            self._asking.cancel()

    # The task

    def stop(self) -> None:
        self._is_stopped = True  # A cancellation is lost if an answer comes in the same step.
        self._task.cancel()

    async def wait_until_ended(self) -> None:
        """Wait until the task is over; a cancellation of the caller is raised."""
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while not self._is_stopped:
                await self._round()
        finally:
            if self._asking is not None:
                self._asking.cancel()

    async def _round(self) -> None:
        """One request and its answer; whatever goes wrong, there is a next round."""
        self._book.resume(self._loop.time())
        self._hold_back_throttled()
        if not self._book.has_work:
            await self._pause()
            return
        try:
            if self._fail_count:
                await self._knock()
            if self._config().flush_on_ack:
                await self._bring_to_disk()
            request = self._request()
            response = await self._ask(request)
            if response is None or self._is_stopped:
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
        self._book.lose_session()
        self._fail_count += 1
        self._woken.clear()
        await self._wait(self._pause_s(self._fail_count))

    async def _wait(self, pause_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._woken.wait()

    async def _pause(self) -> None:
        """Wait until there is something to fetch: a new partition, or a pause that is over."""
        self._woken.clear()
        now_s = self._loop.time()
        due_s = self._book.next_resume_s
        if self._book.has_held_back:
            due_s = min(due_s or now_s + _THROTTLED_S, now_s + _THROTTLED_S)
        if due_s is None:
            await self._woken.wait()
        else:
            await self._wait(max(due_s - now_s, 0))

    def _pause_s(self, fail_count: int) -> float:
        longest_s = self._config().replica_fetch_backoff_ms / 1000
        return float(min(longest_s, _FIRST_PAUSE_S * 2 ** min(fail_count - 1, 16)))

    def _put_off(self, followed: Followed) -> None:
        """Leave a partition out of the requests for a while."""
        followed.fail_count += 1
        self._book.put_off(followed, self._loop.time() + self._pause_s(followed.fail_count))

    # Asking

    async def _knock(self) -> None:
        """Whether anybody is there, before all partitions are named to a leader that is dead.

        A session that is lost begins with all of them, which takes milliseconds per thousand, just
        when this broker has to take over what the dead one led.
        """
        await self._ask_leader(ApiVersionsRequest(), _KNOCK_VERSION)

    async def _ask_leader(self, request: Request, version: int | None = None) -> Response:
        return await self._peers.ask(
            self.leader_id,
            request,
            timeout_s=self._config().replica_socket_timeout_ms / 1000,
            channel=f"fetch-{self.number}",
            version=version,
        )

    async def _bring_to_disk(self) -> None:
        """The offset we ask from says what we have, and counts: first it must be on disk."""
        behind = [f for f in self._book.about_to_ask if not f.partition.is_on_disk]
        if not behind:
            return
        outcomes = await asyncio.to_thread(_flush, [f.partition.log for f in behind])
        for followed, error in zip(behind, outcomes, strict=True):
            if error is not None or not followed.partition.is_on_disk:
                log.error("%s: %s is not on disk: %s", self, followed.partition, error)
                self._put_off(followed)

    def _request(self) -> FetchRequest:
        config, book = self._config(), self._book
        topics = book.next_topics(config.replica_fetch_max_bytes)
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._broker_id, replica_epoch=self._broker_epoch()
            ),
            max_wait_ms=self._wait_ms(config.replica_fetch_wait_max_ms),
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=book.session_id,
            session_epoch=book.session_epoch,
            topics=topics,
            forgotten_topics_data=book.next_forgotten(),
        )

    def _wait_ms(self, longest_ms: int) -> int:
        """Not longer than until a partition's pause is over, or the throttle lets one through."""
        if self._book.has_held_back:
            longest_ms = min(longest_ms, int(_THROTTLED_S * 1000))
        due_s = self._book.next_resume_s
        if due_s is None:
            return longest_ms
        return max(min(longest_ms, int((due_s - self._loop.time()) * 1000) + 1), 1)

    def _hold_back_throttled(self) -> None:
        if not self._rate.is_exceeded:
            self._book.let_through()
            return
        for followed in self._book.about_to_ask:
            if self._is_throttled(followed.partition):
                self._book.hold_back(followed)

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
        self._woken.clear()
        self._is_given_up = False
        self._asking = asking = asyncio.ensure_future(self._send(request))
        try:
            return await asking
        except asyncio.CancelledError:
            if not self._is_given_up or self._task.cancelling():
                raise
            self._book.lose_session()
            return None
        finally:
            self._asking = None

    async def _send(self, request: FetchRequest) -> FetchResponse:
        response = await self._ask_leader(request, FETCH_VERSION)
        assert isinstance(response, FetchResponse)
        return response

    # The answer

    async def _take(self, response: FetchResponse) -> None:
        if response.error_code != ErrorCode.NONE:
            await self._take_error(ErrorCode(response.error_code))
            return
        if not self._book.continues(response.session_id):
            log.warning("%s: an answer of session %d is dropped", self, response.session_id)
            await self._start_over()
            return
        outside: list[Followed] = []
        appended_count = 0
        for topic in response.responses:
            for data in topic.partitions:
                followed = self._book.find((topic.topic_id, data.partition_index))
                if followed is not None:
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
            self._book.lose_session(is_gone=True)
            return
        log.warning("%s: the leader answered %s", self, code.name)
        await self._start_over()

    def _take_partition(
        self, followed: Followed, data: PartitionData, outside: list[Followed]
    ) -> bool:
        """Take one partition's answer on; whether something was appended."""
        partition, asked = followed.partition, followed.sent
        assert asked is not None
        try:
            taken = take_answer(partition, asked, data, now_ms=self._now_ms())
        except NoRoom as error:
            log.debug("%s: %s-%d: %s", self, *partition.key, error)  # The directory told it.
            self._put_off(followed)
            return False
        except (CorruptRecord, KafkaStorage) as error:
            log.error("%s: %s-%d: %s", self, *partition.key, error)
            self._put_off(followed)
            return False
        match taken:
            case Taken.FAILED:
                self._note_failure(followed, ErrorCode(data.error_code))
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
            self._book.ask_again(followed)
        return taken is Taken.APPENDED

    def _count(self, partition: Partition, size_bytes: int) -> None:
        self._on_copied(partition.topic, size_bytes)
        if self._is_throttled(partition):
            self._rate.note(size_bytes)

    def _note_failure(self, followed: Followed, code: ErrorCode) -> None:
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
            self._book.ask_again(followed)
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
        response = await self._ask_leader(request)
        assert isinstance(response, ListOffsetsResponse)
        answer = response.topics[0].partitions[0]
        if answer.error_code != ErrorCode.NONE:
            raise PenstockError(f"ListOffsets failed: {ErrorCode(answer.error_code).name}")
        return answer.offset


def _flush(logs: Sequence[Log]) -> list[KafkaStorage | None]:
    outcomes: list[KafkaStorage | None] = []
    for one in logs:
        try:
            one.flush()
            outcomes.append(None)
        except KafkaStorage as error:
            outcomes.append(error)
    return outcomes
