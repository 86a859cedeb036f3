"""ListOffsets: where a partition starts and ends, and which offset belongs to a time.

The indexes lead to the one batch that decides. Nothing is awaited, unless that batch unpacks to
much or many partitions are asked for: then a thread looks, and others have their turn in between.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.slices import TimeSlice
from penstock.errors import (
    InvalidRequest,
    LeaderNotAvailable,
    OffsetNotAvailable,
    ProtocolError,
    UnsupportedVersion,
)
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.replica.partition import Partition
from penstock.storage.log.log import Log
from penstock.storage.log.time_search import TimeSearch, TimestampOffset, UnpacksMuch

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# From which version on each mark may be asked for; other negative times mean nothing.
_FIRST_VERSION_OF = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_FIRST_VERSION_WITH_ONE_OFFSET = 1
_FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
_FIRST_VERSION_WITH_EPOCHS = 4
_CONSUMER = -1
_DEBUGGER = -2
_READ_COMMITTED = 1
_UNKNOWN = -1


_AT_ONCE: Final = 200  # So many partitions are answered in a few milliseconds.

# What a search for a time came to.
_Search: TypeAlias = Callable[[Log, int], TimestampOffset | None]


def handle(
    request: ListOffsetsRequest, context: RequestContext
) -> ListOffsetsResponse | Coroutine[Any, Any, ListOffsetsResponse]:
    if sum(len(topic.partitions) for topic in request.topics) > _AT_ONCE:
        context.is_large = True
        return _in_turns(request, context)
    try:
        return _at_once(request, context)
    except UnpacksMuch:
        return _in_turns(request, context)


def _at_once(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    asked = Counter(
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )
    search = partial(_search, at_once=True)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _answer(
                        topic.name,
                        partition,
                        request,
                        context,
                        is_twice=asked[topic.name, partition.partition_index] > 1,
                        search=search,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _in_turns(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    pace = TimeSlice()
    asked: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        for partition in topic.partitions:
            asked[topic.name, partition.partition_index] += 1
            await pace.breathe()
    response = ListOffsetsResponse(topics=[])
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            is_twice = asked[topic.name, partition.partition_index] > 1
            answer = partial(_answer, topic.name, partition, request, context, is_twice=is_twice)
            try:
                answers.append(answer(search=partial(_search, at_once=True)))
            except UnpacksMuch:
                found = await _searched(topic.name, partition, request.replica_id, context.broker)
                answers.append(answer(search=found))
            await pace.breathe()
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return response


async def _searched(
    topic: str, wanted: ListOffsetsPartition, replica_id: int, broker: Broker
) -> _Search:
    """What a thread found, which has all the time."""
    log = _find(topic, wanted.partition_index, replica_id, broker).log
    search = partial(_search, log, wanted.timestamp, at_once=False)
    try:
        found = await broker.slow_lane.run(search)
    except ProtocolError as error:
        return partial(_fail, error)
    return lambda _log, _timestamp: found


def _fail(error: ProtocolError, _log: Log, _timestamp: int) -> None:
    raise error


def _search(log: Log, timestamp: int, *, at_once: bool) -> TimestampOffset | None:
    search = TimeSearch(log, at_once=at_once)
    return search.newest() if timestamp == MAX_TIMESTAMP else search.first(timestamp)


def error_response(request: ListOffsetsRequest, error: ProtocolError) -> ListOffsetsResponse:
    """The same error for every partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _failed(partition.partition_index, error) for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _failed(index: int, error: ProtocolError) -> ListOffsetsPartitionResponse:
    return fail(ListOffsetsPartitionResponse(partition_index=index), error)


def _answer(
    topic: str,
    wanted: ListOffsetsPartition,
    request: ListOffsetsRequest,
    context: RequestContext,
    *,
    is_twice: bool,
    search: _Search,
) -> ListOffsetsPartitionResponse:
    try:
        _check(wanted, context.version, is_twice=is_twice)
        partition = _find(topic, wanted.partition_index, request.replica_id, context.broker)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        end = _end_for(partition, request)
        if context.version < _FIRST_VERSION_WITH_ONE_OFFSET:
            return _old_style(partition, wanted, end, now_ms=context.broker.now_ms())
        return _one_offset(partition, wanted, request, end, context.version, search)
    except ProtocolError as error:
        return _failed(wanted.partition_index, error)


def _check(wanted: ListOffsetsPartition, version: int, *, is_twice: bool) -> None:
    if is_twice and version >= _FIRST_VERSION_WITH_ONE_OFFSET:
        raise InvalidRequest("a partition is asked for twice")
    if wanted.timestamp < 0 and version < _FIRST_VERSION_OF.get(wanted.timestamp, version + 1):
        raise UnsupportedVersion(f"version {version} has no timestamp {wanted.timestamp}")


def _find(topic: str, index: int, replica_id: int, broker: Broker) -> Partition:
    if replica_id == _DEBUGGER:  # Looks at whatever replica it finds.
        hosted = broker.partitions.get(topic, index)
        if hosted is not None:
            return hosted
    return broker.partitions.leader(topic, index)


def _end_for(partition: Partition, request: ListOffsetsRequest) -> int:
    """What this reader sees as the end: consumers what is committed, replicas all of it."""
    if request.replica_id != _CONSUMER:
        return partition.log.log_end_offset
    if request.isolation_level == _READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark


# One offset, as of version 1


def _one_offset(
    partition: Partition,
    wanted: ListOffsetsPartition,
    request: ListOffsetsRequest,
    end: int,
    version: int,
    search: _Search,
) -> ListOffsetsPartitionResponse:
    log, timestamp = partition.log, wanted.timestamp
    answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    epoch = _UNKNOWN
    if timestamp == LATEST:
        _check_end_is_settled(partition, request, version)
        answer.offset, epoch = end, partition.leader_epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        answer.offset, epoch = log.log_start_offset, log.epoch_of(log.log_start_offset)
    elif timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        pass  # Nothing is tiered and nothing waits to be: -1, as Kafka without tiered storage.
    else:
        found = search(log, timestamp)
        if found is not None and found.offset < end:
            answer.offset, answer.timestamp = found.offset, found.timestamp
            epoch = found.leader_epoch
        else:
            _check_end_is_settled(partition, request, version)
    if version >= _FIRST_VERSION_WITH_EPOCHS:
        answer.leader_epoch = epoch
    return answer


def _check_end_is_settled(partition: Partition, request: ListOffsetsRequest, version: int) -> None:
    """A new leader does not know the end of what is committed until its own epoch is (KIP-207)."""
    if request.replica_id != _CONSUMER:
        return
    if partition.log.epoch_start_offset(partition.leader_epoch) <= partition.high_watermark:
        return
    if version >= _FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE:
        raise OffsetNotAvailable("this leader is new and does not know the end yet")
    raise LeaderNotAvailable("this leader is new and does not know the end yet")


# A list of offsets, version 0


def _old_style(
    partition: Partition, wanted: ListOffsetsPartition, end: int, *, now_ms: int
) -> ListOffsetsPartitionResponse:
    log = partition.log
    start = log.log_start_offset
    marks = [(max(offset, start), written_ms) for offset, written_ms in log.segment_marks()]
    marks.append((log.log_end_offset, now_ms))
    offsets = offsets_before(marks, wanted.timestamp, count_max=wanted.max_num_offsets, end=end)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, old_style_offsets=offsets
    )


def offsets_before(
    marks: Sequence[tuple[int, int]], timestamp: int, *, count_max: int, end: int
) -> list[int]:
    """Starts of segments not younger than a time, newest first, and none beyond `end`.

    Each mark is an offset and when the file there was last written; the last mark is the end of
    the log, now. This is all that clients before 0.10.1 could ask.
    """
    if timestamp == LATEST:
        chosen = len(marks)
    elif timestamp == EARLIEST:
        chosen = 1
    else:
        chosen = next(
            (at for at in range(len(marks), 0, -1) if marks[at - 1][1] <= timestamp),
            0,
        )
    offsets = {min(offset, end) for offset, _ in marks[:chosen]}
    return sorted(offsets, reverse=True)[: max(count_max, 0)]
