"""ElectLeaders: hand partitions to their preferred leaders, or give leaderless ones any leader."""

from collections.abc import Mapping

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import code_of, fail
from penstock.cluster.control.controller import ElectionKind
from penstock.cluster.image.image import PartitionKey
from penstock.errors import InvalidRequest, ProtocolError
from penstock.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_FIRST_VERSION_WITH_ERROR = 1


async def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    try:
        keys = _keys(request)
        controller = context.broker.acting_controller()
        outcomes = await controller.elect_leaders(_kind(request.election_type), keys)
    except ProtocolError as error:
        response = error_response(request, error)
        if context.version >= _FIRST_VERSION_WITH_ERROR:
            response.error_code = code_of(error)
        return response
    return ElectLeadersResponse(replica_election_results=_results(outcomes))


def error_response(request: ElectLeadersRequest, error: ProtocolError) -> ElectLeadersResponse:
    """The same error for every partition, which is all that the oldest version can say."""
    outcomes: dict[PartitionKey, ProtocolError | None] = dict.fromkeys(_keys(request) or (), error)
    return ElectLeadersResponse(replica_election_results=_results(outcomes))


def _kind(number: int) -> ElectionKind:
    try:
        return ElectionKind(number)
    except ValueError:
        raise InvalidRequest(f"Unknown election type {number}") from None


def _keys(request: ElectLeadersRequest) -> list[PartitionKey] | None:
    """None: all there are."""
    if request.topic_partitions is None:
        return None
    keys = [(t.topic, number) for t in request.topic_partitions for number in t.partitions]
    return list(dict.fromkeys(keys))


def _results(
    outcomes: Mapping[PartitionKey, ProtocolError | None],
) -> list[ReplicaElectionResult]:
    by_topic: dict[str, list[PartitionResult]] = {}
    for (topic, number), error in outcomes.items():
        by_topic.setdefault(topic, []).append(_result(number, error))
    return [
        ReplicaElectionResult(topic=topic, partition_result=results)
        for topic, results in by_topic.items()
    ]


def _result(number: int, error: ProtocolError | None) -> PartitionResult:
    return fail(PartitionResult(partition_id=number), error)
