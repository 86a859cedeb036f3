"""DescribeConfigs: the settings of topics, brokers, loggers and groups, and their sources."""

from collections.abc import Callable

from penstock.broker.config_resources import (
    ConfigResourceType,
    check_is_this_broker,
    resource_type_of,
)
from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.cluster.topics.names import check_topic_name
from penstock.config.described import (
    DescribedSetting,
    SettingSource,
    describe_broker,
    describe_broker_default,
    describe_group,
    describe_loggers,
    describe_topic,
)
from penstock.errors import InvalidRequest, ProtocolError, UnknownTopicOrPartition
from penstock.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from penstock.telemetry import logs


def handle(request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_result(resource, request, context) for resource in request.resources]
    )


def error_response(
    request: DescribeConfigsRequest, error: ProtocolError
) -> DescribeConfigsResponse:
    """The same error for every resource."""
    return DescribeConfigsResponse(
        results=[_failed(resource, error) for resource in request.resources]
    )


def _failed(resource: DescribeConfigsResource, error: ProtocolError) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    return fail(result, error)


def _result(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResult:
    try:
        entries = _DESCRIBE[resource_type_of(resource)](resource, context.broker)
    except ProtocolError as error:
        return _failed(resource, error)
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_config(entry, request, context.version) for entry in entries],
    )


# The entries, by kind of resource


def _topic(resource: DescribeConfigsResource, broker: Broker) -> list[DescribedSetting]:
    name = resource.resource_name
    check_topic_name(name)
    if name not in broker.image.topics:
        raise UnknownTopicOrPartition(f"there is no topic {name}")
    overrides = broker.image.config("topics", name)
    return describe_topic(overrides, broker.config, resource.configuration_keys)


def _broker(resource: DescribeConfigsResource, broker: Broker) -> list[DescribedSetting]:
    if not resource.resource_name:
        return describe_broker_default(broker.config, resource.configuration_keys)
    refusal = f"Unexpected broker id, expected {broker.broker_id} or empty string,"
    check_is_this_broker(resource.resource_name, broker.broker_id, noun="Broker", refusal=refusal)
    return describe_broker(broker.config, resource.configuration_keys)


def _loggers(resource: DescribeConfigsResource, broker: Broker) -> list[DescribedSetting]:
    if not resource.resource_name:
        raise InvalidRequest("Broker id must not be empty")
    refusal = f"Unexpected broker id, expected {broker.broker_id}"
    check_is_this_broker(resource.resource_name, broker.broker_id, noun="Broker", refusal=refusal)
    return describe_loggers(logs.levels(), resource.configuration_keys)


def _client_metrics(resource: DescribeConfigsResource, _broker: Broker) -> list[DescribedSetting]:
    """This broker collects no metrics of clients, so a subscription to them has no settings."""
    if not resource.resource_name:
        raise InvalidRequest("Client metrics subscription name must not be empty")
    return []


def _group(resource: DescribeConfigsResource, broker: Broker) -> list[DescribedSetting]:
    if not resource.resource_name:
        raise InvalidRequest("Group name must not be empty")
    overrides = broker.image.config("groups", resource.resource_name)
    return describe_group(overrides, broker.config, resource.configuration_keys)


_DESCRIBE: dict[
    ConfigResourceType, Callable[[DescribeConfigsResource, Broker], list[DescribedSetting]]
] = {
    ConfigResourceType.TOPIC: _topic,
    ConfigResourceType.BROKER: _broker,
    ConfigResourceType.BROKER_LOGGER: _loggers,
    ConfigResourceType.CLIENT_METRICS: _client_metrics,
    ConfigResourceType.GROUP: _group,
}


# The answer


def _config(
    entry: DescribedSetting, request: DescribeConfigsRequest, version: int
) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=int(entry.source),
        is_sensitive=entry.is_sensitive,
        synonyms=_synonyms(entry) if request.include_synonyms else [],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )
    if version == 0:  # Only then there is a flag instead of the source.
        result.is_default = entry.source is SettingSource.DEFAULT
    return result


def _synonyms(entry: DescribedSetting) -> list[DescribeConfigsSynonym]:
    return [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=int(synonym.source))
        for synonym in entry.synonyms
    ]
