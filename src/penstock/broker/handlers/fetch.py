"""Fetch: what consumers read. Answers at once when there is enough, else waits for growth.

Records leave as slices of log files, so that they go from the page cache to the socket without
passing through memory. Only clients older than message format 2 get a converted copy.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from functools import partial
from typing import Final, TypeAlias

from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.fetching.leader_hints import current_leader, endpoints_of
from penstock.broker.fetching.long_poll import LongPoll
from penstock.broker.fetching.nearest_replica import RACK_AWARE, nearest_replica
from penstock.broker.fetching.parts import (
    FIRST_VERSION_WITH_SESSIONS,
    FIRST_VERSION_WITH_TOPIC_IDS,
    UNKNOWN,
    answered,
    failed,
    forgotten,
    topic_response,
)
from penstock.broker.fetching.sessions import NO_SESSION, FetchedPartition, FetchPlan
from penstock.broker.quotas.clients import Meter
from penstock.broker.slices import TimeSlice
from penstock.broker.waiting import Asker, Unanswered
from penstock.errors import (
    ErrorCode,
    InconsistentTopicId,
    ProtocolError,
    TopicAuthorization,
    UnknownTopicId,
    UnsupportedCompressionType,
    UnsupportedVersion,
)
from penstock.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from penstock.records.legacy import convert_down
from penstock.replica.partition import Partition, PartitionRead
from penstock.security.acls.rules import AclOperation, AclResourceType

_FIRST_VERSION_WITH_MAGIC_1 = 2
_FIRST_VERSION_WITH_MAGIC_2 = 4
_FIRST_VERSION_WITH_ZSTD = 10
_FIRST_VERSION_WITH_RACKS = 11  # From then on a consumer may read from followers (KIP-392).
_FIRST_VERSION_WITH_ENDPOINTS = 16
_READ_COMMITTED = 1
_AT_ONCE: Final = 1_000  # So many partitions are read in some milliseconds.

# A partition asked for, and what was found there.
_Found: TypeAlias = tuple[FetchedPartition, str | None, PartitionRead | ProtocolError]


def handle(
    request: FetchRequest, context: RequestContext
) -> FetchResponse | Awaitable[FetchResponse]:
    if max(request.replica_id, request.replica_state.replica_id) >= 0:
        from penstock.broker.fetching import follower_fetch

        return follower_fetch.handle(request, context)
    if context.is_large:
        return _in_turns(request, context)
    plan = _plan(list(_wanted(request, context)), request, context)
    meter = None
    if context.broker.quotas.is_active:
        meter = _bounded_by_quota(request, context)
    if len(plan.partitions) > _AT_ONCE:
        return _many(plan, request, context, meter)
    found, size, is_urgent = _look(plan, request, context)
    missing = request.min_bytes - size
    is_over = missing <= 0 or request.max_wait_ms <= 0 or not found or is_urgent
    if context.version < _FIRST_VERSION_WITH_MAGIC_2:
        if is_over:
            return _converted_response(meter, plan, found, context)
        return _many(plan, request, context, meter)
    if is_over:
        return _response_within(meter, plan, found, context)
    return _WaitingFetch(plan, request, context, missing, meter)


def error_response(request: FetchRequest, error: ProtocolError) -> FetchResponse:
    """A session error stands at the top; before sessions each partition carries it.

    A right that is missing is told by each partition in every version, as Kafka does.
    """
    topics: dict[str | bytes, FetchableTopicResponse] = {}
    for topic in request.topics:
        answer = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
        answer.partitions = [failed(partition.partition, error) for partition in topic.partitions]
        topics[topic.topic or topic.topic_id] = answer
    response = FetchResponse(responses=list(topics.values()))
    return response if isinstance(error, TopicAuthorization) else fail(response, error)


# What is asked


def _wanted(request: FetchRequest, context: RequestContext) -> Iterator[FetchedPartition]:
    uses_topic_ids = context.version >= FIRST_VERSION_WITH_TOPIC_IDS
    for topic in request.topics:
        named = topic.topic_id if uses_topic_ids else topic.topic
        for partition in topic.partitions:
            yield FetchedPartition(
                key=(named, partition.partition),
                fetch_offset=partition.fetch_offset,
                bytes_max=partition.partition_max_bytes,
                current_leader_epoch=partition.current_leader_epoch,
                last_fetched_epoch=partition.last_fetched_epoch,
                log_start_offset=partition.log_start_offset,
            )


def _plan(
    wanted: list[FetchedPartition], request: FetchRequest, context: RequestContext
) -> FetchPlan:
    if context.version < FIRST_VERSION_WITH_SESSIONS:
        return FetchPlan(partitions=tuple(wanted), session=None, is_incremental=False)
    return context.broker.fetch_sessions.plan(
        session_id=request.session_id,
        epoch=request.session_epoch,
        wanted=wanted,
        forgotten=forgotten(request, context.version),
        uses_topic_ids=context.version >= FIRST_VERSION_WITH_TOPIC_IDS,
        now_ms=context.broker.now_ms(),
        reader=context.session,
    )


# What the client's quota allows


def _bounded_by_quota(request: FetchRequest, context: RequestContext) -> Meter | None:
    """The client's meter; what it asks for is cut to what it could ever get at once."""
    meter = context.broker.quotas.of(context.session.principal, context.client_id).fetch
    if meter is not None:
        request.max_bytes = min(request.max_bytes, meter.burst)
        request.min_bytes = min(request.min_bytes, request.max_bytes)
    return meter


def _response_within(
    meter: Meter | None, plan: FetchPlan, found: list[_Found], context: RequestContext
) -> FetchResponse:
    if not _may_pass(meter, found, context):
        return _nothing_yet(plan, context)
    told = _Told(plan, context)
    for one in found:
        told.add(*one)
    return told.response()


def _may_pass(meter: Meter | None, found: list[_Found], context: RequestContext) -> bool:
    if meter is None:
        return True
    context.throttle_ms, may_pass = meter.admit(
        sum(map(_size, found)), context.broker.quotas.now_ms()
    )
    return may_pass


def _nothing_yet(plan: FetchPlan, context: RequestContext) -> FetchResponse:
    """No records now, and nothing told of the partitions: the next answer says it all."""
    if plan.is_incremental:
        return FetchResponse(session_id=plan.session_id, responses=[])
    context.broker.fetch_sessions.forget(plan.session_id)  # An empty answer cannot begin one.
    return FetchResponse(session_id=NO_SESSION, responses=[])


# What is there


def _look(
    plan: FetchPlan, request: FetchRequest, context: RequestContext
) -> tuple[list[_Found], int, bool]:
    """What is there, how many bytes of records, and whether it should not wait for more."""
    found, size, is_urgent = [], 0, False
    for one in _read(plan, request, context):
        found.append(one)
        size += _size(one)
        is_urgent = is_urgent or _is_urgent(one)
    return found, size, is_urgent


def _read(plan: FetchPlan, request: FetchRequest, context: RequestContext) -> Iterator[_Found]:
    broker = context.broker
    left = min(request.max_bytes, broker.config.fetch_max_bytes)
    is_committed_only = request.isolation_level == _READ_COMMITTED
    is_first = True  # The first batch is returned whatever its size, or a reader could not move.
    seeks_nearest = bool(request.rack_id) and broker.config.replica_selector_class == RACK_AWARE
    for wanted in plan:
        topic = None
        try:
            topic, partition = _find(wanted, context)
            if context.version < _FIRST_VERSION_WITH_ZSTD:
                _check_format(partition, context.version)
            if seeks_nearest and partition.is_leader:
                nearest = _nearest(wanted, partition, request.rack_id, broker)
                if nearest is not None:
                    yield wanted, topic, nearest
                    continue
            read = _read_partition(
                wanted,
                partition,
                bytes_max=min(wanted.bytes_max, left),
                is_committed_only=is_committed_only,
                min_one=is_first,
            )
        except ProtocolError as error:
            yield wanted, topic, error
            continue
        size = len(read.records)
        left = max(left - size, 0)
        is_first = is_first and not size
        yield wanted, topic, read


def _find(wanted: FetchedPartition, context: RequestContext) -> tuple[str, Partition]:
    named, index = wanted.key
    broker = context.broker
    find = broker.partitions.leader
    if context.version >= _FIRST_VERSION_WITH_RACKS:
        find = broker.partitions.replica
    topic = named if isinstance(named, str) else broker.image.topic_names_by_id.get(named)
    if topic is None:
        raise UnknownTopicId("no topic has this id")
    # Asked at every fetch, because a session remembers partitions and rules change.
    if context.rights is not None and not context.rights.may(
        AclOperation.READ, AclResourceType.TOPIC, topic
    ):
        raise TopicAuthorization("Topic authorization failed.")
    if isinstance(named, str):
        return topic, find(topic, index)
    partition = find(topic, index)
    if partition.topic_id != named:
        raise InconsistentTopicId(f"{topic} has another id on disk")
    return topic, partition


def _nearest(
    wanted: FetchedPartition, partition: Partition, rack: str, broker: Broker
) -> PartitionRead | None:
    """Instead of records, a nearer replica that has them; None: none is nearer than we are."""
    partition.check_leader_epoch(wanted.current_leader_epoch)
    replica = nearest_replica(partition, wanted.fetch_offset, rack, broker.image.brokers)
    return None if replica < 0 else partition.elsewhere(replica)


def _check_format(partition: Partition, version: int) -> None:
    """Refuse an old client what it could not read."""
    config = partition.log.config
    if version < _FIRST_VERSION_WITH_MAGIC_2 and not config.message_downconversion_enable:
        raise UnsupportedVersion("message.downconversion.enable is off for this topic")
    if config.compression_type == "zstd":
        raise UnsupportedCompressionType("zstd needs version 10 of the Fetch API")


def _read_partition(
    wanted: FetchedPartition,
    partition: Partition,
    *,
    bytes_max: int,
    is_committed_only: bool,
    min_one: bool,
) -> PartitionRead:
    partition.check_leader_epoch(wanted.current_leader_epoch)
    diverged = partition.diverging_epoch(wanted.last_fetched_epoch, wanted.fetch_offset)
    if diverged is not None:
        return partition.nothing(diverging=diverged)
    return partition.read(
        wanted.fetch_offset,
        bytes_max=bytes_max,
        is_committed_only=is_committed_only,
        min_one=min_one,
    )


def _size(one: _Found) -> int:
    read = one[2]
    return 0 if isinstance(read, ProtocolError) else len(read.records)


def _is_urgent(one: _Found) -> bool:
    """Whether something is there that should not wait."""
    read = one[2]
    return (
        isinstance(read, ProtocolError)
        or read.diverging is not None
        or read.preferred_replica != UNKNOWN
    )


# Waiting


def _needed(missing: int, request: FetchRequest) -> int:
    """How much partitions must grow before it is worth to look again.

    The end of a transaction is small, and lets readers of what is committed have all of it.
    """
    return min(missing, 1) if request.isolation_level == _READ_COMMITTED else missing


class _WaitingFetch(Unanswered):
    """A fetch until the partitions that it reads have grown by as much as is missing."""

    __slots__ = ("_context", "_meter", "_missing", "_plan", "_request", "_watched")

    def __init__(
        self,
        plan: FetchPlan,
        request: FetchRequest,
        context: RequestContext,
        missing: int,
        meter: Meter | None,
    ) -> None:
        super().__init__(context.broker.waiting_room)
        self._plan = plan
        self._request = request
        self._context = context
        self._missing = _needed(missing, request)
        self._meter = meter
        self._watched: list[Partition] = []

    def start(self, asker: Asker) -> None:
        self._watch(self._hosted())
        now_s = asyncio.get_running_loop().time()
        self.begin(asker, now_s + self._request.max_wait_ms / 1000)

    def grown(self, size_bytes: int) -> None:
        self._missing -= size_bytes
        if self._missing <= 0:
            self.wake_soon()

    def look(self) -> FetchResponse | None:
        context, request = self._context, self._request
        found, size, is_urgent = _look(self._plan, request, context)
        missing = request.min_bytes - size
        is_over = self.is_late or is_urgent or context.broker.is_stopping
        if missing > 0 and not is_over:
            self._missing = _needed(missing, request)
            hosted = self._hosted()
            if hosted != self._watched:  # A topic was made anew under its name.
                self._unwatch()
                self._watch(hosted)
            return None
        return _response_within(self._meter, self._plan, found, context)

    def leave(self) -> None:
        super().leave()
        self._unwatch()

    def _hosted(self) -> list[Partition]:
        found = (_hosted(wanted, self._context) for wanted in self._plan)
        return [partition for partition in found if partition is not None]

    def _watch(self, partitions: list[Partition]) -> None:
        self._watched = partitions
        for partition in partitions:
            partition.watch(self)

    def _unwatch(self) -> None:
        for partition in self._watched:
            partition.unwatch(self)
        self._watched = []


def _hosted(wanted: FetchedPartition, context: RequestContext) -> Partition | None:
    try:
        return _find(wanted, context)[1]
    except ProtocolError:
        return None


# Many partitions


async def _in_turns(request: FetchRequest, context: RequestContext) -> FetchResponse:
    """A request that names many partitions."""
    pace = TimeSlice()
    wanted = []
    for partition in _wanted(request, context):
        wanted.append(partition)
        await pace.breathe()
    plan = _plan(wanted, request, context)
    meter = None
    if context.broker.quotas.is_active:
        meter = _bounded_by_quota(request, context)
    return await _many(plan, request, context, meter)


async def _many(
    plan: FetchPlan, request: FetchRequest, context: RequestContext, meter: Meter | None
) -> FetchResponse:
    """Reads, waits and answers like the others, but lets those have their turn meanwhile."""
    context.is_large = True
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + request.max_wait_ms / 1000
    pace = TimeSlice()
    while True:
        poll = LongPoll(request.min_bytes, loop)
        watched: list[Partition] = []
        try:
            # Watched first: what comes while others have their turn would not be noticed.
            for wanted in plan if request.max_wait_ms > 0 else ():
                if partition := _hosted(wanted, context):
                    partition.watch(poll)
                    watched.append(partition)
                await pace.breathe()
            found, missing, is_urgent = [], request.min_bytes, not plan.partitions
            for one in _read(plan, request, context):
                found.append(one)
                missing -= _size(one)
                is_urgent |= _is_urgent(one)
                await pace.breathe()
            is_over = loop.time() >= deadline_s or context.broker.is_stopping
            if missing <= 0 or is_over or is_urgent:
                break
            poll.need(_needed(missing, request))
            timer = loop.call_at(deadline_s, poll.stop)
            try:
                await poll.future
            finally:
                timer.cancel()
        finally:
            for partition in watched:
                partition.unwatch(poll)
    if context.version < _FIRST_VERSION_WITH_MAGIC_2:
        found = await _converted_reads(found, context)
    if not _may_pass(meter, found, context):
        return _nothing_yet(plan, context)
    told = _Told(plan, context)
    for one in found:
        told.add(*one)
        await pace.breathe()
    return told.response()


# Old formats


async def _converted_response(
    meter: Meter | None, plan: FetchPlan, found: list[_Found], context: RequestContext
) -> FetchResponse:
    return _response_within(meter, plan, await _converted_reads(found, context), context)


async def _converted_reads(found: list[_Found], context: RequestContext) -> list[_Found]:
    """Records are unpacked and written anew for old clients, which others must not wait for."""
    magic = 1 if context.version >= _FIRST_VERSION_WITH_MAGIC_1 else 0
    # Read before anything is awaited: a segment may be deleted meanwhile.
    in_memory = [(wanted, topic, _in_memory(read)) for wanted, topic, read in found]
    convert = partial(_converted, in_memory, magic)
    return await context.broker.slow_lane.run(convert)


def _in_memory(read: PartitionRead | ProtocolError) -> PartitionRead | ProtocolError:
    if isinstance(read, ProtocolError) or isinstance(read.records, bytes):
        return read
    return read._replace(records=bytes(read.records.read()))


def _converted(found: list[_Found], magic: int) -> list[_Found]:
    return [
        (wanted, topic, _converted_read(read, magic, wanted.fetch_offset))
        for wanted, topic, read in found
    ]


def _converted_read(
    read: PartitionRead | ProtocolError, magic: int, start_offset: int
) -> PartitionRead | ProtocolError:
    if isinstance(read, ProtocolError):
        return read
    assert isinstance(read.records, bytes)
    try:
        records = convert_down(read.records, magic=magic, start_offset=start_offset)
    except ProtocolError as error:
        return error
    return read._replace(records=records)


# The answer


class _Told:
    """An answer that is put together partition by partition."""

    __slots__ = ("_context", "_leaders", "_plan", "_topics")

    def __init__(self, plan: FetchPlan, context: RequestContext) -> None:
        self._plan = plan
        self._context = context
        self._topics: dict[str | bytes, FetchableTopicResponse] = {}
        self._leaders: list[int] = []

    def add(
        self, wanted: FetchedPartition, topic: str | None, read: PartitionRead | ProtocolError
    ) -> None:
        context = self._context
        data = _partition_data(wanted, topic, read, context)
        if data.error_code and context.version >= _FIRST_VERSION_WITH_ENDPOINTS:
            self._leaders += _name_leader(data, topic, context)
        if self._plan.session is not None and not _is_news(self._plan, wanted, data):
            return
        named = wanted.key[0]
        answer = self._topics.get(named)
        if answer is None:
            answer = self._topics[named] = topic_response(named)
        answer.partitions.append(data)

    def response(self) -> FetchResponse:
        response = FetchResponse(
            session_id=self._plan.session_id, responses=list(self._topics.values())
        )
        if self._leaders:
            response.node_endpoints = [
                NodeEndpoint(node_id=broker_id, host=at.host, port=at.port, rack=rack)
                for broker_id, at, rack in endpoints_of(self._leaders, self._context)
            ]
        return response


def _name_leader(data: PartitionData, topic: str | None, context: RequestContext) -> list[int]:
    """Tell who leads instead, if it is known; the broker to be described."""
    leader = current_leader(data.error_code, topic, data.partition_index, context)
    if leader is None:
        return []
    data.current_leader = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    return [leader[0]]


def _is_news(plan: FetchPlan, wanted: FetchedPartition, data: PartitionData) -> bool:
    if data.error_code != ErrorCode.NONE:
        wanted.tell_error()
        return True
    has_records = bool(data.records is not None and len(data.records))
    is_news = wanted.tell(
        high_watermark=data.high_watermark,
        log_start_offset=data.log_start_offset,
        has_records=has_records,
    )
    if has_records and plan.session is not None:
        plan.session.had_its_turn(wanted.key)
    return (
        is_news
        or not plan.is_incremental
        or data.diverging_epoch.end_offset != UNKNOWN
        or data.preferred_read_replica != UNKNOWN
    )


def _partition_data(
    wanted: FetchedPartition,
    topic: str | None,
    read: PartitionRead | ProtocolError,
    context: RequestContext,
) -> PartitionData:
    index = wanted.key[1]
    if isinstance(read, ProtocolError):
        return failed(index, read)
    if topic is not None:
        metrics = context.broker.metrics.topic(topic)
        metrics.fetch_requests += 1
        metrics.bytes_out += len(read.records)
    data = answered(index, read, _aborted(read))
    if read.preferred_replica != UNKNOWN:
        data.preferred_read_replica = read.preferred_replica
    return data


def _aborted(read: PartitionRead) -> list[AbortedTransaction] | None:
    if read.aborted is None:
        return None
    return [
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in read.aborted
    ]
