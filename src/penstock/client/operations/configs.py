"""Settings of topics and brokers: read them with their sources, change them one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from penstock.client.wire.cluster import ClusterClient
from penstock.errors import error_for
from penstock.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from penstock.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


class ResourceType(IntEnum):
    """What settings can belong to."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class Operation(IntEnum):
    """What an alteration does with a key."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """A topic, a broker, ...; a broker with an empty name stands for all brokers."""

    type: ResourceType
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    """A place where the value could come from, and what stands there."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """A setting as it acts now; `synonyms` are in order of precedence."""

    name: str
    value: str | None  # None: unset, or sensitive.
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """One alteration of one key."""

    name: str
    value: str | None = None
    operation: Operation = Operation.SET


def describe_configs(
    cluster: ClusterClient,
    resources: Sequence[ConfigResource],
    *,
    synonyms: bool = True,
    documentation: bool = False,
) -> dict[ConfigResource, list[ConfigEntry]]:
    """All settings of the resources; the first resource that fails is raised."""
    found: dict[ConfigResource, list[ConfigEntry]] = {}
    for node_id, group in _by_node(resources).items():
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=r.type, resource_name=r.name, configuration_keys=None
                )
                for r in group
            ],
            include_synonyms=synonyms,
            include_documentation=documentation,
        )
        if node_id is None:
            answer = cluster.ask_any(request, DescribeConfigsResponse)
        else:
            answer = cluster.ask_node(node_id, request, DescribeConfigsResponse)
        for result in answer.results:
            if result.error_code:
                raise error_for(result.error_code, result.error_message or "")
            resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
            found[resource] = [_entry(config, resource) for config in result.configs]
    return found


def alter_configs(
    cluster: ClusterClient,
    changes: Mapping[ConfigResource, Sequence[ConfigChange]],
    *,
    validate_only: bool = False,
) -> None:
    """Change keys one by one, leaving all others; the first resource that fails is raised."""
    for node_id, group in _by_node(list(changes)).items():
        request = IncrementalAlterConfigsRequest(
            resources=[_altered(resource, changes[resource]) for resource in group],
            validate_only=validate_only,
        )
        if node_id is None:
            answer = cluster.ask_any(request, IncrementalAlterConfigsResponse)
        else:
            answer = cluster.ask_node(node_id, request, IncrementalAlterConfigsResponse)
        for result in answer.responses:
            if result.error_code:
                raise error_for(result.error_code, result.error_message or "")


def list_config_resources(cluster: ClusterClient, kind: ResourceType) -> list[str]:
    """The names of all resources of a type that have settings of their own."""
    request = ListConfigResourcesRequest(resource_types=[kind])
    answer = cluster.ask_any(request, ListConfigResourcesResponse)
    if answer.error_code:
        raise error_for(answer.error_code)
    return sorted(found.resource_name for found in answer.config_resources)


def _by_node(resources: Sequence[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """A broker answers for itself; for everything else any broker does (None)."""
    groups: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        own = resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
        node_id = int(resource.name) if own and resource.name else None
        groups.setdefault(node_id, []).append(resource)
    return groups


def _altered(resource: ConfigResource, changes: Sequence[ConfigChange]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            AlterableConfig(name=c.name, config_operation=c.operation, value=c.value)
            for c in changes
        ],
    )


def _entry(config: DescribeConfigsResourceResult, resource: ConfigResource) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=_source(config, resource),
        is_sensitive=config.is_sensitive,
        is_read_only=config.read_only,
        synonyms=tuple(
            ConfigSynonym(name=s.name, value=s.value, source=_known(s.source))
            for s in config.synonyms
        ),
        documentation=config.documentation,
    )


def _source(config: DescribeConfigsResourceResult, resource: ConfigResource) -> ConfigSource:
    if config.config_source >= 0:
        return _known(config.config_source)
    # Version 0 only says whether it is a default.
    if config.is_default:
        return ConfigSource.DEFAULT_CONFIG
    is_topic = resource.type is ResourceType.TOPIC
    return ConfigSource.DYNAMIC_TOPIC_CONFIG if is_topic else ConfigSource.STATIC_BROKER_CONFIG


def _known(source: int) -> ConfigSource:
    try:
        return ConfigSource(source)
    except ValueError:
        return ConfigSource.UNKNOWN
