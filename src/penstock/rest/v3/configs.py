"""The routes of settings: of topics, of single brokers, and of all brokers together.

All three are the same four operations on other resources: list, look at one, set or reset one, and
change several at once or not at all.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.client.admin import Admin
from penstock.client.operations.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    Operation,
    ResourceType,
)
from penstock.http.handlers import Request, Response, Route
from penstock.rest.errors import BadRequest
from penstock.rest.proxy import Proxy
from penstock.rest.v3.asking import (
    NotThere,
    is_true,
    links_of,
    nothing,
    number,
    objects,
    optional_text,
    segment,
    text_of,
)
from penstock.rest.v3.bodies import answer, read_document
from penstock.rest.v3.links import Document, Links, collection, resource
from penstock.rest.v3.replicas import topic_of, topics_of

_CLUSTER = "/v3/clusters/{cluster:segment}"
_ONE = "/{name:segment}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigOwner:
    """Whose settings a path means."""

    kind: str
    resource: ConfigResource
    place: tuple[str | int, ...]  # Of the list of its settings.
    name: str  # The resource's, to which `/config=` is added.
    fields: Mapping[str, object]


Owner = Callable[[Request, Links], ConfigOwner]


class SettingResources:
    """Handlers for one proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._ask = proxy.brokers.ask

    def routes(self) -> list[Route]:
        owners: list[tuple[str, Owner]] = [
            (_CLUSTER + "/topics/{topic:segment}/configs", _of_topic),
            (_CLUSTER + "/brokers/{broker:segment}/configs", _of_broker),
            (_CLUSTER + "/broker-configs", _of_cluster),
        ]
        found = [
            Route(_CLUSTER + "/topics/-/configs", self._of_all_topics, methods=["GET"]),
            Route(_CLUSTER + "/brokers/-/configs", self._of_all_brokers, methods=["GET"]),
        ]
        for path, owner in owners:
            found += [
                Route(path, self._for(owner, self._list), methods=["GET"]),
                Route(f"{path}:alter", self._for(owner, self._alter), methods=["POST"]),
                Route(path + _ONE, self._for(owner, self._get), methods=["GET"]),
                Route(path + _ONE, self._for(owner, self._set), methods=["PUT"]),
                Route(path + _ONE, self._for(owner, self._reset), methods=["DELETE"]),
            ]
        return found

    def _for(
        self,
        owner: Owner,
        handle: Callable[[Request, Links, ConfigOwner], Awaitable[Response]],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def handler(request: Request) -> Response:
            links = await links_of(self._proxy, request)
            return await handle(request, links, owner(request, links))

        return handler

    async def _list(self, request: Request, links: Links, owner: ConfigOwner) -> Response:
        entries = await self._ask(lambda admin: entries_of(admin, owner))
        found = [config_document(links, owner, one) for one in entries]
        return answer(request, collection(f"{owner.kind}List", links.to(*owner.place), found))

    async def _get(self, request: Request, links: Links, owner: ConfigOwner) -> Response:
        entries = await self._ask(lambda admin: entries_of(admin, owner))
        found = _entry(entries, segment(request, "name"))
        return answer(request, config_document(links, owner, found))

    async def _set(self, request: Request, links: Links, owner: ConfigOwner) -> Response:
        name = segment(request, "name")
        value = optional_text(await read_document(request), "value")
        await self._change(owner, [ConfigChange(name=name, value=value)])
        return nothing()

    async def _reset(self, request: Request, links: Links, owner: ConfigOwner) -> Response:
        change = ConfigChange(name=segment(request, "name"), operation=Operation.DELETE)
        await self._change(owner, [change])
        return nothing()

    async def _alter(self, request: Request, links: Links, owner: ConfigOwner) -> Response:
        body = await read_document(request)
        changes = [config_change(one) for one in objects(body, "data")]
        await self._change(owner, changes, validate_only=is_true(body, "validate_only"))
        return nothing()

    async def _change(
        self, owner: ConfigOwner, changes: list[ConfigChange], *, validate_only: bool = False
    ) -> None:
        await self._ask(lambda admin: _alter(admin, owner, changes, validate_only))

    async def _of_all_topics(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        found = await self._ask(lambda admin: _all_topic_configs(admin, links))
        at = links.to("topics", "-", "configs")
        return answer(request, collection("KafkaTopicConfigList", at, found))

    async def _of_all_brokers(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        found = await self._ask(lambda admin: _all_broker_configs(admin, links))
        at = links.to("brokers", "-", "configs")
        return answer(request, collection("KafkaBrokerConfigList", at, found))


def topic_owner(links: Links, topic: str) -> ConfigOwner:
    """A topic."""
    return ConfigOwner(
        kind="KafkaTopicConfig",
        resource=ConfigResource(ResourceType.TOPIC, topic),
        place=("topics", topic, "configs"),
        name=links.name(topic=topic),
        fields={"cluster_id": links.cluster_id, "topic_name": topic},
    )


def broker_owner(links: Links, broker_id: int) -> ConfigOwner:
    """A broker."""
    return ConfigOwner(
        kind="KafkaBrokerConfig",
        resource=ConfigResource(ResourceType.BROKER, str(broker_id)),
        place=("brokers", broker_id, "configs"),
        name=links.name(broker=broker_id),
        fields={"cluster_id": links.cluster_id, "broker_id": broker_id},
    )


def _of_topic(request: Request, links: Links) -> ConfigOwner:
    return topic_owner(links, segment(request, "topic"))


def _of_broker(request: Request, links: Links) -> ConfigOwner:
    return broker_owner(links, number(request, "broker"))


def _of_cluster(request: Request, links: Links) -> ConfigOwner:
    return ConfigOwner(
        kind="KafkaClusterConfig",
        resource=ConfigResource(ResourceType.BROKER, ""),
        place=("broker-configs",),
        name=links.name(),
        fields={"cluster_id": links.cluster_id, "config_type": "BROKER"},
    )


def entries_of(admin: Admin, owner: ConfigOwner) -> list[ConfigEntry]:
    """The settings of one owner, who must exist."""
    _check(admin, owner)
    return admin.describe_configs([owner.resource])[owner.resource]


def config_change(one: Mapping[str, Any]) -> ConfigChange:
    """One alteration of a batch."""
    word = (optional_text(one, "operation") or "SET").upper()
    if word not in Operation.__members__:
        raise BadRequest(f"operation {word} is not one of {', '.join(Operation.__members__)}.")
    return ConfigChange(
        name=text_of(one, "name"), value=optional_text(one, "value"), operation=Operation[word]
    )


def config_document(links: Links, owner: ConfigOwner, entry: ConfigEntry) -> Document:
    """A setting with where its value comes from."""
    key = "broker-config" if owner.kind == "KafkaClusterConfig" else "config"
    fields = {
        **owner.fields,
        "name": entry.name,
        "value": entry.value,
        "is_default": entry.source is ConfigSource.DEFAULT_CONFIG,
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
        "source": entry.source.name,
        "synonyms": [
            {"name": one.name, "value": one.value, "source": one.source.name}
            for one in entry.synonyms
        ],
    }
    at = links.to(*owner.place, entry.name)
    return resource(owner.kind, at, f"{owner.name}/{key}={entry.name}", fields)


def _alter(
    admin: Admin, owner: ConfigOwner, changes: list[ConfigChange], validate_only: bool
) -> None:
    known = {one.name for one in entries_of(admin, owner)}
    if owner.resource.type is ResourceType.TOPIC:  # Those of brokers need not be listed.
        for change in changes:
            if change.name not in known:
                raise NotThere(f"Config {change.name} cannot be found for {owner.kind}.")
    admin.alter_configs({owner.resource: changes}, validate_only=validate_only)


def _check(admin: Admin, owner: ConfigOwner) -> None:
    """DescribeConfigs of a broker that is not there would only be a connection that fails."""
    kind, name = owner.resource
    if kind is ResourceType.TOPIC:
        topic_of(admin, name)
    elif name:
        brokers = {str(one.node.id) for one in admin.describe_cluster().brokers}
        if name not in brokers:
            raise NotThere(f"Broker {name} cannot be found.")


def _entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    for entry in entries:
        if entry.name == name:
            return entry
    raise NotThere(f"Config {name} cannot be found.")


def _all_topic_configs(admin: Admin, links: Links) -> list[Document]:
    owners = [topic_owner(links, one.name or "") for one in topics_of(admin, None)]
    found = admin.describe_configs([one.resource for one in owners])
    return [
        config_document(links, owner, entry)
        for owner in owners
        for entry in found.get(owner.resource, ())
    ]


def _all_broker_configs(admin: Admin, links: Links) -> list[Document]:
    """Those that were changed while the brokers ran."""
    dynamic = (ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    owners = [broker_owner(links, one.node.id) for one in admin.describe_cluster().brokers]
    found = admin.describe_configs([one.resource for one in owners])
    return [
        config_document(links, owner, entry)
        for owner in owners
        for entry in found.get(owner.resource, ())
        if entry.source in dynamic
    ]
