"""AlterPartitionReassignments: move partitions to other brokers, or take a move back."""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.cluster.control.reassignment import Reassignment, origin
from penstock.cluster.image.image import ClusterImage
from penstock.errors import InvalidReplicationFactor, ProtocolError
from penstock.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

_FIRST_VERSION_WITH_FACTOR = 1


async def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    controller = context.broker.acting_controller()
    wanted = _wanted(request)
    may_change = request.allow_replication_factor_change
    refusals = [_refusal(one, controller.image, may_change=may_change) for one in wanted]
    possible = [one for one, refusal in zip(wanted, refusals, strict=True) if refusal is None]
    outcomes = iter(await controller.alter_reassignments(possible))
    errors = [refusal or next(outcomes) for refusal in refusals]
    return _response(request, errors, context.version)


def _wanted(request: AlterPartitionReassignmentsRequest) -> list[Reassignment]:
    return [
        Reassignment(
            topic=topic.name,
            partition=partition.partition_index,
            replicas=None if partition.replicas is None else tuple(partition.replicas),
        )
        for topic in request.topics
        for partition in topic.partitions
    ]


def _refusal(
    wanted: Reassignment, image: ClusterImage, *, may_change: bool
) -> ProtocolError | None:
    """A client can ask that the number of replicas stays (KIP-860)."""
    partition = image.partition(wanted.topic, wanted.partition)
    if may_change or partition is None or wanted.replicas is None:
        return None
    before, after = len(origin(partition)), len(wanted.replicas)
    if before == after:
        return None
    return InvalidReplicationFactor(f"The replication factor is changed from {before} to {after}")


def _response(
    request: AlterPartitionReassignmentsRequest,
    errors: list[ProtocolError | None],
    version: int,
) -> AlterPartitionReassignmentsResponse:
    left = iter(errors)
    response = AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[_result(p.partition_index, next(left)) for p in topic.partitions],
            )
            for topic in request.topics
        ],
    )
    if version >= _FIRST_VERSION_WITH_FACTOR:
        response.allow_replication_factor_change = request.allow_replication_factor_change
    return response


def _result(index: int, error: ProtocolError | None) -> ReassignablePartitionResponse:
    return fail(ReassignablePartitionResponse(partition_index=index), error)
