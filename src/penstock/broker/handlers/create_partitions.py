"""CreatePartitions: let topics grow. A topic never shrinks."""

from collections import Counter

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.membership.room_for_logs import RoomForLogs
from penstock.broker.quotas.mutations import permits
from penstock.cluster.control.controller import PartitionsToAdd
from penstock.errors import InvalidRequest, ProtocolError
from penstock.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

_FIRST_VERSION_WITH_QUOTA_ERROR = 3


async def handle(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    counts = Counter(topic.name for topic in request.topics)
    wanted = [_growth(topic) for topic in request.topics if counts[topic.name] == 1]
    outcomes = {} if request.validate_only else _not_permitted(wanted, context)
    wanted = [growth for growth in wanted if growth.name not in outcomes]
    made = await context.broker.acting_controller().create_partitions(
        wanted, validate_only=request.validate_only
    )
    outcomes.update((growth.name, made_of) for growth, made_of in zip(wanted, made, strict=True))
    twice = InvalidRequest("Duplicate topic name.")
    return CreatePartitionsResponse(
        results=[_result(name, outcomes.get(name, twice)) for name in counts]
    )


def error_response(
    request: CreatePartitionsRequest, error: ProtocolError
) -> CreatePartitionsResponse:
    """The same error for every topic."""
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreatePartitionsResponse(results=[_result(name, error) for name in names])


def _not_permitted(
    wanted: list[PartitionsToAdd], context: RequestContext
) -> dict[str, ProtocolError | None]:
    """What the client may not have now; what is not there or does not grow costs nothing."""
    allowed = permits(context, strict_from=_FIRST_VERSION_WITH_QUOTA_ERROR)
    room = RoomForLogs(context.broker)
    refused: dict[str, ProtocolError | None] = {}
    for growth in wanted:
        topic = context.broker.image.topics.get(growth.name)
        added = growth.total_count - len(topic.partitions) if topic else 0
        if added <= 0:
            continue
        try:
            allowed.take(added)
            room.take(added)
        except ProtocolError as error:
            refused[growth.name] = error
    return refused


def _growth(topic: CreatePartitionsTopic) -> PartitionsToAdd:
    assignments = topic.assignments
    return PartitionsToAdd(
        name=topic.name,
        total_count=topic.count,
        assignments=None
        if assignments is None
        else [tuple(assignment.broker_ids) for assignment in assignments],
    )


def _result(name: str, error: ProtocolError | None) -> CreatePartitionsTopicResult:
    return fail(CreatePartitionsTopicResult(name=name), error)
