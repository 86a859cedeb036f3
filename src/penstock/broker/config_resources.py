"""Things that have settings: topics, brokers, loggers, groups. Which is meant, and may it change.

Shared by DescribeConfigs, AlterConfigs and IncrementalAlterConfigs. What a change makes of the
settings is decided in config/altered.py, and the controller stores it; brokers act on it when
they see it in the image.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Protocol, TypeAlias, TypeVar

from penstock.broker.context import Broker
from penstock.cluster.control.controller import EntityOverrides
from penstock.cluster.image.image import CLUSTER_WIDE, ConfigKey
from penstock.cluster.topics.names import check_topic_name
from penstock.errors import (
    ConfigError,
    InvalidRequest,
    InvalidUpdateVersion,
    ProtocolError,
    UnknownTopicOrPartition,
)


class ConfigResourceType(IntEnum):
    """As numbered on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(Protocol):
    """What the requests of all three APIs say of a resource."""

    resource_type: int
    resource_name: str


R = TypeVar("R", bound=Resource)

# From the settings a resource has to those it shall have.
Alteration: TypeAlias = Callable[[Mapping[str, str]], dict[str, str]]


def resource_type_of(resource: Resource) -> ConfigResourceType:
    try:
        return ConfigResourceType(resource.resource_type)
    except ValueError:
        raise InvalidRequest(f"Unknown resource type {resource.resource_type}") from None


def check_is_this_broker(name: str, broker_id: int, *, noun: str, refusal: str) -> None:
    """Settings of one broker are asked of that broker.

    The words are Kafka's, which has its own in each place that checks this.
    """
    try:
        wanted = int(name)
    except ValueError:
        raise InvalidRequest(f"{noun} id must be an integer, but it is: {name}") from None
    if wanted != broker_id:
        raise InvalidRequest(f"{refusal} but received {name}")


def check_is_a_broker(name: str, broker: Broker) -> None:
    """Settings of any broker are changed by the controller, to which the others pass them on."""
    known = name.isdigit() and int(name) in broker.image.brokers
    if not known:
        refusal = f"Unexpected broker id, expected {broker.broker_id},"
        check_is_this_broker(name, broker.broker_id, noun="Node", refusal=refusal)


def check_topic_exists(name: str, broker: Broker) -> None:
    if not name:
        raise InvalidRequest("Default topic resources are not allowed.")
    check_topic_name(name)
    if name not in broker.image.topics:
        raise UnknownTopicOrPartition(f"The topic '{name}' does not exist.")


def alterable_key(resource: Resource, broker: Broker) -> ConfigKey:
    """Where the settings of a resource are stored; raises for one that cannot be changed."""
    kind, name = resource_type_of(resource), resource.resource_name
    if kind is ConfigResourceType.TOPIC:
        check_topic_exists(name, broker)
        return ("topics", name)
    if kind is ConfigResourceType.BROKER:
        if not name:
            return ("brokers", CLUSTER_WIDE)
        check_is_a_broker(name, broker)
        return ("brokers", str(int(name)))
    if kind is ConfigResourceType.GROUP:
        if not name:
            raise InvalidRequest("Default group resources are not allowed.")
        return ("groups", name)
    raise InvalidRequest(f"Unknown resource type {int(kind)}")


def named_twice(resources: Iterable[Resource]) -> set[tuple[int, str]]:
    """The resources that a request names twice; refused, as two changes could contradict."""
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    return {key for key, count in counts.items() if count > 1}


async def alter_each(
    resources: Sequence[R], alter: Callable[[R], Awaitable[None]]
) -> list[ProtocolError | None]:
    """Alter one resource after the other; what is wrong with one does not stop the others."""
    twice = named_twice(resources)
    outcomes: list[ProtocolError | None] = []
    for resource in resources:
        try:
            if (resource.resource_type, resource.resource_name) in twice:
                raise InvalidRequest("Each resource must appear at most once.")
            await alter(resource)
            outcomes.append(None)
        except ProtocolError as error:
            outcomes.append(error)
    return outcomes


def check_can_follow(broker: Broker, own: Mapping[str, str]) -> None:
    """Refuse settings of this broker that name what it cannot use, such as a key store."""
    config = broker.config.with_dynamic(broker.image.config("brokers", CLUSTER_WIDE), own)
    for check in broker.config_checks:
        try:
            check(config)
        except ConfigError as error:
            raise InvalidRequest(
                f"Invalid config value for resource ConfigResource(type=BROKER, "
                f"name='{broker.broker_id}'): {error}"
            ) from error


async def store_alteration(
    broker: Broker, key: ConfigKey, altered: Alteration, *, validate_only: bool
) -> None:
    """Replace the settings; begins again if another client was faster, so that none is lost."""
    while True:
        controller = broker.acting_controller()
        version = controller.config_version(*key)
        config = altered(controller.image.config(*key))
        if validate_only:
            return
        change = EntityOverrides(kind=key[0], name=key[1], config=config, expected_version=version)
        try:
            await controller.set_configs([change])
        except InvalidUpdateVersion:
            continue
        return
