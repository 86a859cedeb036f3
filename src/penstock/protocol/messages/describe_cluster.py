"""DescribeCluster: the cluster id and its brokers."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Request, api=ApiKey.DESCRIBE_CLUSTER):
    """Whether to tell of brokers or controllers, and of fenced ones."""

    include_cluster_authorized_operations: bool = boolean("0+")
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")


class DescribeClusterBroker(Struct):
    """A broker and its address."""

    broker_id: int = int32("0+")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("0+", nullable=True, default=None)
    is_fenced: bool = boolean("2+")


class DescribeClusterResponse(Response, api=ApiKey.DESCRIBE_CLUSTER):
    """The cluster as this broker knows it."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string("0+")
    controller_id: int = int32("0+", default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker, "0+")
    cluster_authorized_operations: int = int32("0+", default=-2147483648)
