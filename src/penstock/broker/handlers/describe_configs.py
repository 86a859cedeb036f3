"""DescribeConfigs: the settings of topics, brokers, loggers and groups, and their sources."""

from collections.abc import Callable

from penstock.broker.config_resources import (
    ResourceType,
    check_is_this_broker,
    resource_type_of,
)
from penstock.broker.context import Broker, RequestContext
from penstock.cluster.topic_names import check_topic_name
from penstock.config.described import (
    Entry,
    Source,
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
    return DescribeConfigsResult(
        error_code=int(error.code),
        error_message=str(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


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


def _topic(resource: DescribeConfigsResource, broker: Broker) -> list[Entry]:
    name = resource.resource_name
    check_topic_name(name)
    if name not in broker.image.topics:
        raise UnknownTopicOrPartition(f"there is no topic {name}")
    overrides = broker.image.config("topics", name)
    return describe_topic(overrides, broker.config, resource.configuration_keys)


def _broker(resource: DescribeConfigsResource, broker: Broker) -> list[Entry]:
    if not resource.resource_name:
        return describe_broker_default(broker.config, resource.configuration_keys)
    check_is_this_broker(resource.resource_name, broker.broker_id)
    return describe_broker(broker.config, resource.configuration_keys)


def _loggers(resource: DescribeConfigsResource, broker: Broker) -> list[Entry]:
    if not resource.resource_name:
        raise InvalidRequest("loggers belong to a broker: its id must not be empty")
    check_is_this_broker(resource.resource_name, broker.broker_id)
    return describe_loggers(logs.levels(), resource.configuration_keys)


def _client_metrics(resource: DescribeConfigsResource, _broker: Broker) -> list[Entry]:
    """This broker collects no metrics of clients, so a subscription to them has no settings."""
    if not resource.resource_name:
        raise InvalidRequest("the name of a subscription to client metrics must not be empty")
    return []


def _group(resource: DescribeConfigsResource, broker: Broker) -> list[Entry]:
    if not resource.resource_name:
        raise InvalidRequest("the name of a group must not be empty")
    overrides = broker.image.config("groups", resource.resource_name)
    return describe_group(overrides, broker.config, resource.configuration_keys)


_DESCRIBE: dict[ResourceType, Callable[[DescribeConfigsResource, Broker], list[Entry]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.BROKER: _broker,
    ResourceType.BROKER_LOGGER: _loggers,
    ResourceType.CLIENT_METRICS: _client_metrics,
    ResourceType.GROUP: _group,
}


# The answer


def _config(
    entry: Entry, request: DescribeConfigsRequest, version: int
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
        result.is_default = entry.source is Source.DEFAULT
    return result


def _synonyms(entry: Entry) -> list[DescribeConfigsSynonym]:
    return [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=int(synonym.source))
        for synonym in entry.synonyms
    ]
