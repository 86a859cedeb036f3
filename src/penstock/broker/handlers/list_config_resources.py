"""ListConfigResources: the names of what has, or can have, settings of its own."""

from collections.abc import Callable, Iterable

from penstock.broker.config_resources import ConfigResourceType
from penstock.broker.context import RequestContext
from penstock.cluster.image.image import ClusterImage
from penstock.errors import ErrorCode
from penstock.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


def handle(
    request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    """Before version 1 a client could ask for subscriptions to client metrics alone."""
    is_old = context.version == 0
    wanted = (
        [ConfigResourceType.CLIENT_METRICS] if is_old else request.resource_types or list(_NAMES)
    )
    if not set(wanted) <= set(_NAMES):
        return ListConfigResourcesResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    image = context.broker.image
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(wanted)
            for name in _NAMES[ConfigResourceType(kind)](image)
        ]
    )


def _brokers(image: ClusterImage) -> Iterable[str]:
    return map(str, sorted(image.brokers))


def _groups(image: ClusterImage) -> Iterable[str]:
    """Those with settings of their own; the coordinators know the others."""
    return sorted(name for kind, name in image.configs if kind == "groups")


_NAMES: dict[ConfigResourceType, Callable[[ClusterImage], Iterable[str]]] = {
    ConfigResourceType.CLIENT_METRICS: lambda _image: (),  # Nobody can make one here.
    ConfigResourceType.BROKER_LOGGER: _brokers,
    ConfigResourceType.BROKER: _brokers,
    ConfigResourceType.TOPIC: lambda image: sorted(image.topics),
    ConfigResourceType.GROUP: _groups,
}
