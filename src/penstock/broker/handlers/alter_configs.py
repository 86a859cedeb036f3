"""AlterConfigs: all overrides of a resource at once; what is not stated is at its default again."""

from functools import partial

from penstock.broker.config_resources import (
    Alteration,
    alter_each,
    alterable_key,
    store_alteration,
)
from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.cluster.image.image import CLUSTER_WIDE, ConfigKey
from penstock.config.altered import replace_broker, replace_group, replace_topic
from penstock.errors import ProtocolError
from penstock.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    alter = partial(_alter, broker=context.broker, validate_only=request.validate_only)
    outcomes = await alter_each(request.resources, alter)
    return AlterConfigsResponse(
        responses=[
            _response(resource, error)
            for resource, error in zip(request.resources, outcomes, strict=True)
        ]
    )


def error_response(request: AlterConfigsRequest, error: ProtocolError) -> AlterConfigsResponse:
    """The same error for every resource."""
    return AlterConfigsResponse(
        responses=[_response(resource, error) for resource in request.resources]
    )


async def _alter(resource: AlterConfigsResource, broker: Broker, *, validate_only: bool) -> None:
    key = alterable_key(resource, broker)
    altered = _replacement(resource, key, broker)
    await store_alteration(broker, key, altered, validate_only=validate_only)


def _replacement(resource: AlterConfigsResource, key: ConfigKey, broker: Broker) -> Alteration:
    entries = [(config.name, config.value) for config in resource.configs]
    if key[0] == "topics":
        return lambda _current: replace_topic(entries, broker.config)
    if key[0] == "groups":
        return lambda _current: replace_group(entries, broker.config)
    return lambda current: replace_broker(
        current, entries, broker.config, cluster_wide=key[1] == CLUSTER_WIDE
    )


def _response(
    resource: AlterConfigsResource, error: ProtocolError | None
) -> AlterConfigsResourceResponse:
    response = AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    return fail(response, error)
