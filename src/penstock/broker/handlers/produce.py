"""Produce: check each batch, append it to its partition, and answer when the acks are in.

With acks 0 nothing is awaited, and with acks 1 only the disk, if `flush.on.ack` asks for it; with
acks=all the answer waits for the high watermark. The
batch stays a view on the received frame all the way to the file.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.fetching.leader_hints import current_leader, endpoints_of
from penstock.broker.incoming import Batches, TakesLong, accepted
from penstock.broker.slices import TimeSlice
from penstock.cluster.topics.names import INTERNAL_TOPICS
from penstock.errors import (
    ErrorCode,
    InvalidRequiredAcks,
    InvalidTopic,
    NotEnoughReplicas,
    ProtocolError,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicId,
)
from penstock.net.connection import CloseConnection
from penstock.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from penstock.records.batch import HEADER_BYTES, TRANSACTIONAL, BatchHeader, read_header
from penstock.records.validate import RecordsRejected, TimestampsRejected
from penstock.replica.partition import Partition
from penstock.storage.log.log import Appended
from penstock.transactions.admission import BatchClaim, PlaceInLine
from penstock.transactions.transaction import ProducerIdentity

log = logging.getLogger("kafka.server.KafkaApis")

_FIRST_VERSION_WITH_ENDPOINTS = 10
_FIRST_VERSION_WITH_ABORTABLE = 11
_FIRST_VERSION_THAT_ADDS = 12  # Clients of transaction version 2 add partitions by writing.
_FIRST_VERSION_WITH_TOPIC_IDS = 13
_NO_TIME = -1
_AT_ONCE: Final = 300  # So many partitions are appended to in some ten milliseconds.
_REFUSED_BY_THE_LOG = frozenset(
    {
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
_Settled: TypeAlias = ProduceResponse | Awaitable[ProduceResponse | None] | None


class _Later(NamedTuple):
    """A partition whose answer waits: for its replicas, or until its records can be appended."""

    number: int  # Of the partition.
    wait: "asyncio.Future[Any]"
    answer: PartitionProduceResponse | None  # None: the future's result is the answer.


_Result: TypeAlias = PartitionProduceResponse | _Later


def handle(request: ProduceRequest, context: RequestContext) -> _Settled:
    partition_count = 0
    for topic in request.topic_data:
        partition_count += len(topic.partition_data)
    if partition_count > _AT_ONCE:
        _keep_records(request)
        context.holds = context.is_large = True
        return _append_in_turns(request, context)
    if request.transactional_id is not None and context.version >= _FIRST_VERSION_THAT_ADDS:
        _announce(request, context)
    results = []
    for topic in request.topic_data:
        results.append(_append_topic(topic, request, context))  # noqa: PERF401 - costs a call
    return _answer_all(results, request, context)


def _answer_all(
    results: list[list[_Result]], request: ProduceRequest, context: RequestContext
) -> _Settled:
    """The answer, or what waits for all of it."""
    if context.appending is not None:
        return _answer_looked_at(context.appending, results, request, context)
    if request.acks == 0:
        _close_on_error(results)
        return None
    topics: list[TopicProduceResponse] = []
    for topic, answers in zip(request.topic_data, results, strict=True):
        for answer in answers:
            if type(answer) is _Later:
                return _answer_later(results, request, context)
        topics.append(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=answers,  # type: ignore[arg-type]  # All are there.
            )
        )
    response = ProduceResponse(responses=topics)
    if context.version >= _FIRST_VERSION_WITH_ENDPOINTS:
        _name_leaders(response, context)
    return response


def _topic_response(
    topic: TopicProduceData, answers: list[PartitionProduceResponse]
) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=answers
    )


def error_response(request: ProduceRequest, error: ProtocolError) -> ProduceResponse | None:
    """The same error for every partition."""
    if request.acks == 0:
        raise CloseConnection(f"a Produce request without acks failed: {error}")
    return ProduceResponse(
        responses=[
            _topic_response(topic, [_failed(data.index, error) for data in topic.partition_data])
            for topic in request.topic_data
        ]
    )


def _append_topic(
    topic: TopicProduceData, request: ProduceRequest, context: RequestContext
) -> list[_Result]:
    name = _name(topic, context)
    results: list[_Result] = []
    for data in topic.partition_data:
        results.append(_append_or_fail(name, data, request, context))  # noqa: PERF401 - as above
    return results


def _append_or_fail(
    topic: str | None, data: PartitionProduceData, request: ProduceRequest, context: RequestContext
) -> _Result:
    try:
        return _append(topic, data, request, context)
    except TakesLong:
        return _append_later(topic, data, request, context)
    except ProtocolError as error:
        answer = _failed(data.index, error)
        if topic is not None and topic in context.broker.image.topics:
            context.broker.metrics.topic(topic).failed_produce_requests += 1
            _tell_log_start(answer, topic, context.broker)
        return answer


def _name(topic: TopicProduceData, context: RequestContext) -> str | None:
    if context.version >= _FIRST_VERSION_WITH_TOPIC_IDS:
        return context.broker.image.topic_names_by_id.get(topic.topic_id)
    return topic.name


def _append(
    topic: str | None, data: PartitionProduceData, request: ProduceRequest, context: RequestContext
) -> _Result:
    acks = request.acks
    if topic is None:
        raise UnknownTopicId("no topic has this id")
    if not -1 <= acks <= 1:
        raise InvalidRequiredAcks(f"acks is {acks}; it must be 0, 1 or -1")
    if topic in INTERNAL_TOPICS and context.client_id != "__admin_client":
        raise InvalidTopic(f"{topic} belongs to the broker")
    if context.appending is not None:
        raise TakesLong  # Not to overtake what came before it in the same request.
    broker = context.broker
    partition = broker.partitions.leader(topic, data.index)
    now_ms = broker.now_ms()
    batches = accepted(
        data.records,
        partition.log.config,
        topic=topic,
        partition=data.index,
        version=context.version,
        now_ms=now_ms,
        at_once=True,
    )
    if partition.log.config.schema_checks:
        broker.validation.check_at_once(partition, batches)
    return _append_accepted(partition, batches, request, context, now_ms)


def _append_accepted(
    partition: Partition,
    batches: Batches,
    request: ProduceRequest,
    context: RequestContext,
    now_ms: int,
) -> _Result:
    broker, acks = context.broker, request.acks
    if batches[0][0].attributes & TRANSACTIONAL:
        claim = _claim(batches[0][0], request.transactional_id, context.version)
        if not broker.transactions.admission.is_admitted(partition, claim):
            return _append_when_admitted(partition, batches, claim, acks, broker)
    appended = partition.append(batches, required_acks=acks, now_ms=now_ms)
    answer = _answer(partition.partition, appended)
    _count(batches, partition.topic, broker)
    if acks:
        wait = partition.acknowledged(appended.last_offset, acks)
        if wait is not None:
            return _Later(partition.partition, wait, answer)
    return answer


# Requests about many partitions


def _keep_records(request: ProduceRequest) -> None:
    """The frame is reused as soon as we return, so what waits needs bytes of its own."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))


async def _append_in_turns(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | None:
    """Others have their turn in between, but nothing that came later on the connection."""
    pace = TimeSlice()
    if request.transactional_id is not None and context.version >= _FIRST_VERSION_THAT_ADDS:
        _announce(request, context)
    results: list[list[_Result]] = []
    for topic in request.topic_data:
        name = _name(topic, context)
        of_topic: list[_Result] = []
        for data in topic.partition_data:
            of_topic.append(_append_or_fail(name, data, request, context))
            await pace.breathe()
        results.append(of_topic)
    settled = _answer_all(results, request, context)
    return await settled if isinstance(settled, Awaitable) else settled


# Batches whose records must be looked at, and are many


def _append_later(
    topic: str | None, data: PartitionProduceData, request: ProduceRequest, context: RequestContext
) -> _Later:
    """Append once a thread has looked at the records, behind what the request brought before."""
    # The frame is reused as soon as we return, so what waits needs bytes of its own.
    kept = None if data.records is None else memoryview(bytearray(data.records))
    appending = asyncio.create_task(
        _append_looked_at(topic or "", data.index, kept, request, context, before=context.appending)
    )
    context.appending = appending
    context.holds = True
    answering = asyncio.create_task(_answer_of(appending))
    answering.add_done_callback(_note_end)
    return _Later(data.index, answering, None)


async def _append_looked_at(
    topic: str,
    index: int,
    records: memoryview | None,
    request: ProduceRequest,
    context: RequestContext,
    *,
    before: "asyncio.Task[_Result] | None",
) -> _Result:
    if before is not None:
        await asyncio.wait([before])
    broker = context.broker
    try:
        look = partial(
            accepted,
            records,
            broker.partitions.leader(topic, index).log.config,
            topic=topic,
            partition=index,
            version=context.version,
            now_ms=broker.now_ms(),
        )
        batches = await broker.slow_lane.run(look)
        partition = broker.partitions.leader(topic, index)
        if partition.log.config.schema_checks:
            batches = await broker.validation.check(partition, batches)
            partition = broker.partitions.leader(topic, index)
        return _append_accepted(partition, batches, request, context, broker.now_ms())
    except ProtocolError:
        if topic in broker.image.topics:
            broker.metrics.topic(topic).failed_produce_requests += 1
        raise


async def _answer_of(appending: "asyncio.Task[_Result]") -> PartitionProduceResponse:
    result = await appending
    if not isinstance(result, _Later):
        return result
    found: PartitionProduceResponse | None = await result.wait
    answer = result.answer or found
    assert answer is not None
    return answer


async def _answer_looked_at(
    last_append: "asyncio.Task[_Result]",
    results: list[list[_Result]],
    request: ProduceRequest,
    context: RequestContext,
) -> ProduceResponse | None:
    # The client's time is for replicas. What was appended must not be called late because of us.
    await asyncio.wait([last_append])
    response = await _answer_later(results, request, context)
    for topic in response.responses:
        name = topic.name or context.broker.image.topic_names_by_id.get(topic.topic_id)
        for answer in topic.partition_responses:
            if answer.error_code and name is not None:
                _tell_log_start(answer, name, context.broker)
    if request.acks == 0:
        _close_on_error([topic.partition_responses for topic in response.responses])
        return None
    return response


def _note_end(done: "asyncio.Task[PartitionProduceResponse]") -> None:
    """With acks=0, or when the client has hung up meanwhile, nobody else asks how it ended."""
    if not done.cancelled():
        done.exception()


def _answer(index: int, appended: Appended) -> PartitionProduceResponse:
    append_ms = appended.log_append_ms
    return PartitionProduceResponse(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=_NO_TIME if append_ms is None else append_ms,
        log_start_offset=appended.log_start_offset,
    )


def _count(batches: Batches, topic: str, broker: Broker) -> None:
    metrics = broker.metrics.topic(topic)
    metrics.produce_requests += 1
    for header, batch in batches:
        metrics.bytes_in += len(batch)
        metrics.messages_in += header.record_count


# Batches of transactions


def _claim(header: BatchHeader, transactional_id: str | None, version: int) -> BatchClaim:
    return BatchClaim(
        transactional_id=transactional_id,
        identity=ProducerIdentity(header.producer_id, header.producer_epoch),
        first_sequence=header.base_sequence,
        adds_partition=version >= _FIRST_VERSION_THAT_ADDS,
        knows_abortable=version >= _FIRST_VERSION_WITH_ABORTABLE,
        busy=NotEnoughReplicas,  # Old clients retry it, and do not ask for metadata first.
    )


def _announce(request: ProduceRequest, context: RequestContext) -> None:
    """Add all partitions of the request at once; each batch is still checked on its own."""
    broker = context.broker
    found = []
    for topic in request.topic_data:
        name = _name(topic, context)
        for data in topic.partition_data:
            partition = broker.partitions.get(name or "", data.index)
            if partition is not None and data.records and len(data.records) >= HEADER_BYTES:
                header = read_header(data.records)
                claim = _claim(header, request.transactional_id, context.version)
                found.append((partition, claim))
    broker.transactions.admission.announce(found)


def _append_when_admitted(
    partition: Partition, batches: Batches, claim: BatchClaim, acks: int, broker: Broker
) -> _Later:
    """Append once the coordinator lets the batch in."""
    # The frame is reused as soon as we return, so what waits needs bytes of its own.
    kept = [(header, memoryview(bytearray(batch))) for header, batch in batches]
    turn = broker.transactions.admission.line_up(partition, claim)
    appending = asyncio.create_task(_append_in_turn(turn, kept, acks, broker))
    appending.add_done_callback(_note_end)
    appending.add_done_callback(turn.end)  # It may be cancelled before it has begun.
    return _Later(partition.partition, appending, None)


async def _append_in_turn(
    turn: PlaceInLine, batches: Batches, acks: int, broker: Broker
) -> PartitionProduceResponse:
    partition = turn.partition
    async with turn:
        appended = partition.append(batches, required_acks=acks, now_ms=broker.now_ms())
        # Begun at once: later another broker may lead, and nobody could tell what became of it.
        wait = partition.acknowledged(appended.last_offset, acks)
    _count(batches, partition.topic, broker)
    if wait is not None:
        await wait
    return _answer(partition.partition, appended)


# Answers that wait


async def _answer_later(
    results: list[list[_Result]], request: ProduceRequest, context: RequestContext
) -> ProduceResponse:
    """Wait for replicas as long as the client does; a partition that is late has timed out."""
    waits = [r.wait for of_topic in results for r in of_topic if isinstance(r, _Later)]
    await asyncio.wait(waits, timeout=max(request.timeout_ms / 1000, 0))
    response = ProduceResponse(
        responses=[
            _topic_response(topic, [_answer_by_now(result) for result in of_topic])
            for topic, of_topic in zip(request.topic_data, results, strict=True)
        ]
    )
    if context.version >= _FIRST_VERSION_WITH_ENDPOINTS:
        _name_leaders(response, context)
    return response


def _answer_by_now(result: _Result) -> PartitionProduceResponse:
    if not isinstance(result, _Later):
        return result
    number, wait, answer = result
    if not wait.done():
        wait.cancel()
        return _failed(number, RequestTimedOut("not all in-sync replicas have it yet"))
    error = wait.exception()
    if error is None:
        found: PartitionProduceResponse = wait.result() if answer is None else answer
        return found
    if isinstance(error, ProtocolError):
        return _failed(number, error)
    log.error("An append failed unexpectedly", exc_info=error)
    return _failed(number, UnknownServerError("see the broker's log"))


def _name_leaders(response: ProduceResponse, context: RequestContext) -> None:
    """Where a partition is led by another broker, say by whom (KIP-951)."""
    leaders: list[int] = []
    for topic in response.responses:
        for answer in topic.partition_responses:
            if not answer.error_code:
                continue
            name = topic.name or context.broker.image.topic_names_by_id.get(topic.topic_id)
            leader = current_leader(answer.error_code, name, answer.index, context)
            if leader is not None:
                answer.current_leader = LeaderIdAndEpoch(
                    leader_id=leader[0], leader_epoch=leader[1]
                )
                leaders.append(leader[0])
    if leaders:
        response.node_endpoints = [
            NodeEndpoint(node_id=broker_id, host=at.host, port=at.port, rack=rack)
            for broker_id, at, rack in endpoints_of(leaders, context)
        ]


def _failed(index: int, error: ProtocolError) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(index=index, base_offset=-1)
    fail(answer, error)
    if isinstance(error, RecordsRejected | TimestampsRejected):
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in error.errors
        ]
    return answer


def _tell_log_start(answer: PartitionProduceResponse, topic: str, broker: Broker) -> None:
    """Where the log itself refused the batch, Kafka tells where it starts."""
    partition = broker.partitions.get(topic, answer.index)
    if partition is not None and answer.error_code in _REFUSED_BY_THE_LOG:
        answer.log_start_offset = partition.log.log_start_offset


def _close_on_error(results: Iterable[Iterable[_Result]]) -> None:
    """Without acks there is no answer; a closed connection makes the client look again."""
    for of_topic in results:
        for answer in of_topic:
            if isinstance(answer, PartitionProduceResponse) and answer.error_code:
                raise CloseConnection(
                    f"a Produce request without acks failed: {answer.error_message}"
                )
