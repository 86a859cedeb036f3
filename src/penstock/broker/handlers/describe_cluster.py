"""DescribeCluster: the brokers, the controller and the cluster's id."""

from penstock.broker.context import RequestContext
from penstock.broker.visible import CLUSTER_OPERATIONS, reachable
from penstock.errors import MismatchedEndpointType, UnsupportedEndpointType
from penstock.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS = 1
_CONTROLLERS = 2


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    _check_endpoint_type(request.endpoint_type)
    image = context.broker.image
    endpoints = reachable(
        image, context.session.listener, include_inactive=request.include_fenced_brokers
    )
    response = DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=image.brokers[broker_id].rack,
                is_fenced=not image.brokers[broker_id].is_active,
            )
            for broker_id, endpoint in endpoints.items()
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _check_endpoint_type(endpoint_type: int) -> None:
    if endpoint_type == _CONTROLLERS:
        raise MismatchedEndpointType(
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type"
            " CONTROLLER"
        )
    if endpoint_type != _BROKERS:
        raise UnsupportedEndpointType(f"Unsupported endpoint type {endpoint_type}")
