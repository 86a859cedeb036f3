"""IncrementalAlterConfigs: set, delete, append and subtract single settings.

Settings of topics, brokers and groups are stored and act where a broker sees them in the image.
Levels of loggers are this process's own: they act at once and are forgotten with it.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

from penstock.broker.config_resources import (
    Alteration,
    ConfigResourceType,
    alter_each,
    alterable_key,
    check_can_follow,
    check_is_this_broker,
    store_alteration,
)
from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.cluster.image.image import CLUSTER_WIDE, ConfigKey
from penstock.config.altered import (
    AlterConfigOp,
    alter_broker,
    alter_group,
    alter_loggers,
    alter_topic,
)
from penstock.errors import ProtocolError
from penstock.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.telemetry import logs

if TYPE_CHECKING:
    from penstock.broker.membership.forwarding import Forwarder


async def handle(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    alter = partial(_alter, broker=context.broker, validate_only=request.validate_only)
    outcomes = await alter_each(request.resources, alter)
    return IncrementalAlterConfigsResponse(
        responses=[
            _response(resource, error)
            for resource, error in zip(request.resources, outcomes, strict=True)
        ]
    )


async def pass_on(
    request: IncrementalAlterConfigsRequest, context: RequestContext, forwarder: "Forwarder"
) -> IncrementalAlterConfigsResponse:
    """Loggers are those of this very process; the rest is the controller's to alter.

    Whether this broker can follow settings of its own, such as a key store, only it can see.
    """
    refused = [_own_refusal(resource, context.broker) for resource in request.resources]
    if any(refused):
        answered = [one for one in zip(request.resources, refused, strict=True) if one[1]]
        left = [one for one, error in zip(request.resources, refused, strict=True) if not error]
        response = IncrementalAlterConfigsResponse()
        if left:
            rest = IncrementalAlterConfigsRequest(
                resources=left, validate_only=request.validate_only
            )
            response = await pass_on(rest, context, forwarder)
        response.responses += [_response(resource, error) for resource, error in answered]
        return response
    validate_only = request.validate_only
    kinds: dict[bool, list[AlterConfigsResource]] = {True: [], False: []}
    for resource in request.resources:
        kinds[resource.resource_type == ConfigResourceType.BROKER_LOGGER].append(resource)
    response = IncrementalAlterConfigsResponse()
    if kinds[True]:
        own = IncrementalAlterConfigsRequest(resources=kinds[True], validate_only=validate_only)
        response.responses += (await handle(own, context)).responses
    if kinds[False] or not kinds[True]:
        rest = IncrementalAlterConfigsRequest(resources=kinds[False], validate_only=validate_only)
        answer = await forwarder.forward(rest, context)
        response.responses += cast(IncrementalAlterConfigsResponse, answer).responses
    return response


def error_response(
    request: IncrementalAlterConfigsRequest, error: ProtocolError
) -> IncrementalAlterConfigsResponse:
    """The same error for every resource."""
    return IncrementalAlterConfigsResponse(
        responses=[_response(resource, error) for resource in request.resources]
    )


async def _alter(resource: AlterConfigsResource, broker: Broker, *, validate_only: bool) -> None:
    changes = [
        AlterConfigOp(config.name, config.config_operation, config.value)
        for config in resource.configs
    ]
    if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
        refusal = f"Unexpected node id. Expected {broker.broker_id},"
        check_is_this_broker(resource.resource_name, broker.broker_id, noun="Node", refusal=refusal)
        _alter_loggers(changes, validate_only=validate_only)
        return
    key = alterable_key(resource, broker)
    altered = _alteration(changes, key, broker)
    await store_alteration(broker, key, altered, validate_only=validate_only)


def _alteration(changes: list[AlterConfigOp], key: ConfigKey, broker: Broker) -> Alteration:
    if key[0] == "topics":
        return lambda current: alter_topic(current, changes, broker.config)
    if key[0] == "groups":
        return lambda current: alter_group(current, changes, broker.config)

    def alter(current: Mapping[str, str]) -> dict[str, str]:
        cluster_wide = key[1] == CLUSTER_WIDE
        new = alter_broker(current, changes, broker.config, cluster_wide=cluster_wide)
        if key[1] == str(broker.broker_id):
            check_can_follow(broker, new)
        return new

    return alter


def _own_refusal(resource: AlterConfigsResource, broker: Broker) -> ProtocolError | None:
    """Why this broker could not follow these settings of its own; None: it could."""
    is_own = resource.resource_name == str(broker.broker_id)
    if resource.resource_type != ConfigResourceType.BROKER or not is_own:
        return None
    changes = [AlterConfigOp(one.name, one.config_operation, one.value) for one in resource.configs]
    key = ("brokers", resource.resource_name)
    try:
        _alteration(changes, key, broker)(broker.image.config(*key))
    except ProtocolError as error:
        return error
    return None


def _alter_loggers(changes: list[AlterConfigOp], *, validate_only: bool) -> None:
    levels = alter_loggers(changes, logs.levels())
    if validate_only:
        return
    for name, level in levels.items():
        logs.set_level(name, level)


def _response(
    resource: AlterConfigsResource, error: ProtocolError | None
) -> AlterConfigsResourceResponse:
    response = AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    return fail(response, error)
