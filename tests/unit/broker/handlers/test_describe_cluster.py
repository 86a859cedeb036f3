"""DescribeCluster: who is in the cluster, as seen through a listener."""

from typing import Any

import pytest

from penstock.broker.visible import CLUSTER_OPERATIONS
from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_cluster import DescribeClusterRequest


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_one_broker_is_told_and_is_its_own_controller(served: Any, version: int) -> None:
    response = served.ask(DescribeClusterRequest(), version)
    (broker,) = response.brokers
    assert response.error_code == ErrorCode.NONE
    assert response.cluster_id == served.broker.image.cluster_id
    assert response.controller_id == broker.broker_id == 7
    assert (broker.host, broker.rack, broker.is_fenced) == ("127.0.0.1", None, False)


def test_operations_are_told_only_when_asked_for(served: Any) -> None:
    quiet = served.ask(DescribeClusterRequest(), 2)
    assert quiet.cluster_authorized_operations == -(2**31)
    told = served.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 0)
    assert told.cluster_authorized_operations == CLUSTER_OPERATIONS


def test_controllers_are_not_to_be_found_at_a_broker(served: Any) -> None:
    response = served.ask(DescribeClusterRequest(endpoint_type=2), 1)
    assert response.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert response.brokers == []


def test_an_unknown_kind_of_endpoint_is_refused(served: Any) -> None:
    response = served.ask(DescribeClusterRequest(endpoint_type=9), 2)
    assert response.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    assert response.error_message
