"""Records that a broker writes by itself, on whichever broker leads their partition.

Dead letters and the audit topic are written this way: the topic is made if need be, records go out
in batches of a bounded size, and on return all replicas have them.
"""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, cast

from penstock.broker.context import Broker
from penstock.broker.incoming import accepted
from penstock.broker.internal_topics import create_on_use
from penstock.cluster.image.image import NO_LEADER
from penstock.errors import (
    ErrorCode,
    RequestTimedOut,
    error_for,
)
from penstock.net.peers import PeerUnreachable
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.records.batch import Record, build_batch

_VERSION: Final = 12  # The last that names topics.
_BATCH_BYTES: Final = 500_000
_WRITE_S: Final = 30.0
_NEW_TOPIC_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.02
_ALL: Final = -1


async def write_own_records(
    broker: Broker, topic: str, partition: int, records: Sequence[Record]
) -> None:
    """Write them to the partition of this number, as far as there are so many.

    On return all replicas have them; raises ProtocolError.
    """
    number, leader = await _place(broker, topic, partition)
    for batch in batches_of(records):
        if leader == broker.broker_id:
            await _append(broker, topic, number, batch)
        else:
            await _send(broker, leader, topic, number, batch)


def batches_of(records: Sequence[Record]) -> Iterator[memoryview]:
    """The records in batches of some size; a large one has a batch to itself."""
    taken: list[Record] = []
    size = 0
    for record in records:
        own = len(record.key or b"") + len(record.value or b"")
        if taken and size + own > _BATCH_BYTES:
            yield memoryview(build_batch(taken))
            taken, size = [], 0
        taken.append(record._replace(offset=len(taken)))
        size += own
    if taken:
        yield memoryview(build_batch(taken))


async def _place(broker: Broker, topic: str, partition: int) -> tuple[int, int]:
    """The number of the partition to write to, and its leader; the topic is made if need be."""
    if topic not in broker.image.topics:
        errors = await create_on_use(broker, [topic])
        if topic in errors:
            raise errors[topic]
    deadline_s = asyncio.get_running_loop().time() + _NEW_TOPIC_S
    while True:
        found = broker.image.topics.get(topic)
        if found is not None and found.partitions:
            number = partition % len(found.partitions)
            leader = found.partitions[number].state.leader
            is_here = leader == broker.broker_id and broker.partitions.get(topic, number)
            if leader != NO_LEADER and (is_here or leader != broker.broker_id):
                return number, leader
        if asyncio.get_running_loop().time() > deadline_s:
            raise RequestTimedOut(f"nobody leads the topic {topic} yet")
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _append(broker: Broker, topic: str, number: int, batch: memoryview) -> None:
    partition = broker.partitions.leader(topic, number)
    look = partial(
        accepted,
        batch,
        partition.log.config,
        topic=topic,
        partition=number,
        version=_VERSION,
        now_ms=broker.now_ms(),
    )
    batches = await broker.slow_lane.run(look)
    appended = partition.append(batches, required_acks=_ALL, now_ms=broker.now_ms())
    wait = partition.acknowledged(appended.last_offset, _ALL)
    broker.metrics.topic(topic).messages_in += batches[0][0].record_count
    if wait is not None:
        try:
            await asyncio.wait_for(wait, _WRITE_S)
        except TimeoutError:
            raise RequestTimedOut(f"not all replicas of {topic}-{number} have it yet") from None


async def _send(broker: Broker, leader: int, topic: str, number: int, batch: memoryview) -> None:
    """Produce as a client would, over the line to the other broker."""
    if broker.peers is None:
        raise RequestTimedOut(f"broker {leader} leads {topic}-{number}, and nobody knows it here")
    data = PartitionProduceData(index=number, records=batch)
    request = ProduceRequest(
        acks=_ALL,
        timeout_ms=int(_WRITE_S * 1000),
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    try:
        answer = await broker.peers.ask(
            leader, request, timeout_s=_WRITE_S, channel="own records", version=_VERSION
        )
    except PeerUnreachable as error:
        raise RequestTimedOut(f"broker {leader} leads {topic}-{number}: {error}") from error
    told = cast(ProduceResponse, answer).responses[0].partition_responses[0]
    if told.error_code != ErrorCode.NONE:
        raise error_for(told.error_code, told.error_message or "")
