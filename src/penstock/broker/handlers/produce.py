"""Produce: check each batch, append it to its partition, and answer when the acks are in.

With acks 0 nothing is awaited, and with acks 1 only the disk, if `flush.on.ack` asks for it; with
acks=all the answer waits for the high watermark. The
batch stays a view on the received frame all the way to the file.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeAlias

from penstock.broker.context import Broker, RequestContext
from penstock.broker.incoming import Batches, accepted
from penstock.broker.leader_hints import current_leader, endpoints_of
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
from penstock.replica.partition import Partition
from penstock.storage.log import Appended
from penstock.transactions.admission import Claim
from penstock.transactions.transaction import Identity

log = logging.getLogger("kafka.server.KafkaApis")

_FIRST_VERSION_WITH_ENDPOINTS = 10
_FIRST_VERSION_WITH_ABORTABLE = 11
_FIRST_VERSION_THAT_ADDS = 12  # Clients of transaction version 2 add partitions by writing.
_FIRST_VERSION_WITH_TOPIC_IDS = 13
_NO_TIME = -1
# An answer that must wait until its records are on every in-sync replica.
_Wait: TypeAlias = tuple[PartitionProduceResponse, "asyncio.Future[None]"]
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


def handle(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Awaitable[ProduceResponse] | None:
    waits: list[_Wait] = []
    if request.transactional_id is not None and context.version >= _FIRST_VERSION_THAT_ADDS:
        _announce(request, context)
    response = ProduceResponse(
        responses=[_append_topic(topic, request, context, waits) for topic in request.topic_data]
    )
    if request.acks == 0:
        _close_on_error(response)
        return None
    if waits:
        return _when_replicated(response, waits, context, timeout_s=request.timeout_ms / 1000)
    _name_leaders(response, context)
    return response


def error_response(request: ProduceRequest, error: ProtocolError) -> ProduceResponse | None:
    """The same error for every partition."""
    if request.acks == 0:
        raise CloseConnection(f"a Produce request without acks failed: {error}")
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_failed(data.index, error) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def _append_topic(
    topic: TopicProduceData, request: ProduceRequest, context: RequestContext, waits: list[_Wait]
) -> TopicProduceResponse:
    name = _name(topic, context)
    answers = []
    for data in topic.partition_data:
        try:
            answers.append(_append(name, data, request, context, waits))
        except ProtocolError as error:
            answers.append(_failed(data.index, error))
            if name is not None and name in context.broker.image.topics:
                context.broker.metrics.topic(name).failed_produce_requests += 1
    return TopicProduceResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=answers
    )


def _name(topic: TopicProduceData, context: RequestContext) -> str | None:
    if context.version >= _FIRST_VERSION_WITH_TOPIC_IDS:
        return context.broker.image.topic_names_by_id.get(topic.topic_id)
    return topic.name


def _append(
    topic: str | None,
    data: PartitionProduceData,
    request: ProduceRequest,
    context: RequestContext,
    waits: list[_Wait],
) -> PartitionProduceResponse:
    acks = request.acks
    if topic is None:
        raise UnknownTopicId("no topic has this id")
    if not -1 <= acks <= 1:
        raise InvalidRequiredAcks(f"acks is {acks}; it must be 0, 1 or -1")
    if topic in INTERNAL_TOPICS and context.client_id != "__admin_client":
        raise InvalidTopic(f"{topic} belongs to the broker")
    broker = context.broker
    partition = broker.partitions.leader(topic, data.index)
    now_ms = broker.now_ms()
    batches = accepted(data.records, partition.log.config, version=context.version, now_ms=now_ms)
    if batches[0][0].attributes & TRANSACTIONAL:
        claim = _claim(batches[0][0], request.transactional_id, context.version)
        if not broker.transactions.admission.is_admitted(partition, claim):
            return _append_when_admitted(partition, batches, claim, acks, broker, waits)
    appended = partition.append(batches, required_acks=acks, now_ms=now_ms)
    answer = _answer(data.index, appended)
    _count(batches, topic, broker)
    if acks:
        wait = partition.acknowledged(appended.last_offset, acks)
        if wait is not None:
            waits.append((answer, wait))
    return answer


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


def _claim(header: BatchHeader, transactional_id: str | None, version: int) -> Claim:
    return Claim(
        transactional_id=transactional_id,
        identity=Identity(header.producer_id, header.producer_epoch),
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
    partition: Partition,
    batches: Batches,
    claim: Claim,
    acks: int,
    broker: Broker,
    waits: list[_Wait],
) -> PartitionProduceResponse:
    """The answer, filled in once the coordinator let the batch in and its acks are there."""
    # The frame is reused as soon as we return, so what waits needs bytes of its own.
    kept = [(header, memoryview(bytearray(batch))) for header, batch in batches]
    answer = PartitionProduceResponse(index=partition.partition)

    def append() -> tuple[Appended, "asyncio.Future[None] | None"]:
        appended = partition.append(kept, required_acks=acks, now_ms=broker.now_ms())
        # Begun at once: later another broker may lead, and nobody could tell what became of it.
        return appended, partition.acknowledged(appended.last_offset, acks)

    appending = broker.transactions.admission.later(partition, claim, append)

    async def fill_in() -> None:
        appended, wait = await appending
        filled = _answer(partition.partition, appended)
        answer.base_offset = filled.base_offset
        answer.log_append_time_ms = filled.log_append_time_ms
        answer.log_start_offset = filled.log_start_offset
        _count(kept, partition.topic, broker)
        if wait is not None:
            await wait

    filling = asyncio.ensure_future(fill_in())
    # With acks=0, or when the client has hung up meanwhile, nobody else asks how it ended.
    filling.add_done_callback(lambda done: done.cancelled() or done.exception())
    waits.append((answer, filling))
    return answer


async def _when_replicated(
    response: ProduceResponse,
    waits: list[_Wait],
    context: RequestContext,
    *,
    timeout_s: float,
) -> ProduceResponse:
    await asyncio.wait([wait for _, wait in waits], timeout=max(timeout_s, 0))
    for answer, wait in waits:
        if not wait.done():
            wait.cancel()
            _fail(answer, RequestTimedOut("not all in-sync replicas have it yet"))
            continue
        error = wait.exception()
        if isinstance(error, ProtocolError):
            _fail(answer, error)
        elif error is not None:
            log.error("An append failed unexpectedly", exc_info=error)
            _fail(answer, UnknownServerError("see the broker's log"))
    _name_leaders(response, context)
    return response


def _name_leaders(response: ProduceResponse, context: RequestContext) -> None:
    """Where a partition is led by another broker, say by whom (KIP-951)."""
    leaders: list[int] = []
    if context.version < _FIRST_VERSION_WITH_ENDPOINTS:
        return
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
    return _fail(PartitionProduceResponse(index=index), error)


def _fail(answer: PartitionProduceResponse, error: ProtocolError) -> PartitionProduceResponse:
    answer.error_code = int(error.code)
    answer.error_message = str(error)
    answer.base_offset = -1
    answer.log_append_time_ms = _NO_TIME
    answer.log_start_offset = -1
    return answer


def _close_on_error(response: ProduceResponse) -> None:
    """Without acks there is no answer; a closed connection makes the client look again."""
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code != ErrorCode.NONE:
                raise CloseConnection(
                    f"a Produce request without acks failed: {answer.error_message}"
                )
