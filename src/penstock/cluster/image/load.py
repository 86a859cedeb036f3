"""Reads the cluster out of the store, as a new controller does once.

Names first, then all nodes by the thousand, so that ten thousand partitions take a handful of
round trips. Whatever changes meanwhile bears a higher version and is noticed when written.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.cluster import znodes
from penstock.cluster.image.image import (
    BrokerImage,
    ConfigKey,
    PartitionImage,
    PartitionKey,
    PartitionState,
    TopicImage,
)
from penstock.cluster.token_nodes import read_token, token_path
from penstock.cluster.znodes import BrokerNode, FenceNode, FenceState, NodeUnreadable, TopicNode
from penstock.meta.store import MetaStore, Node
from penstock.security.acls.index import Entries
from penstock.security.acls.nodes import (
    RESOURCE_PARENTS,
    decode_entries,
    resource_of_path,
)
from penstock.security.acls.rules import ResourcePattern
from penstock.security.delegation import TokenInformation

PATHS_PER_READ = 5000  # Keeps one answer of a ZooKeeper below its usual size limit.


class Unsettled(NamedTuple):
    """A topic somebody began to make, grow or remove in several steps and did not finish."""

    name: str
    node: TopicNode
    version: int


class LoadedTopics(NamedTuple):
    topics: Mapping[str, TopicImage]
    versions: Mapping[str, int]  # Of the topics' own nodes, by topic name.
    unsettled: Sequence[Unsettled]


class LoadedConfigs(NamedTuple):
    configs: Mapping[ConfigKey, Mapping[str, str]]
    versions: Mapping[ConfigKey, int]


class LoadedAcls(NamedTuple):
    acls: Mapping[ResourcePattern, Entries]
    versions: Mapping[ResourcePattern, int]


class LoadedTokens(NamedTuple):
    tokens: Mapping[str, TokenInformation]
    versions: Mapping[str, int]


class Fence(NamedTuple):
    node: FenceNode
    version: int


class LoadedBrokers(NamedTuple):
    brokers: Mapping[int, BrokerImage]
    fences: Mapping[int, Fence]  # Of all brokers there ever were, alive or not.


async def read_nodes(store: MetaStore, paths: Sequence[str]) -> list[Node | None]:
    starts = range(0, len(paths), PATHS_PER_READ)
    reads = [store.multi_get(paths[start : start + PATHS_PER_READ]) for start in starts]
    return [node for nodes in await asyncio.gather(*reads) for node in nodes]


async def load_topics(store: MetaStore) -> LoadedTopics:
    names = await store.children(znodes.TOPICS)
    found = await read_nodes(store, [znodes.topic_path(name) for name in names])
    nodes: dict[str, TopicNode] = {}
    versions: dict[str, int] = {}
    unsettled: list[Unsettled] = []
    for name, node in zip(names, found, strict=True):
        if node is None:
            continue
        nodes[name] = TopicNode.decode(znodes.topic_path(name), node[0])
        versions[name] = node[1].version
        if nodes[name].unsettled is not None:
            unsettled.append(Unsettled(name, nodes[name], node[1].version))
    states = await load_states(store, [(name, p) for name in nodes for p in nodes[name].partitions])
    topics = {
        name: topic_image(name, node, states) for name, node in nodes.items() if node.partitions
    }
    return LoadedTopics(topics=topics, versions=versions, unsettled=unsettled)


def topic_image(
    name: str, node: TopicNode, states: Mapping[PartitionKey, PartitionState]
) -> TopicImage:
    return TopicImage(
        name=name,
        topic_id=node.topic_id,
        partitions={
            number: PartitionImage(
                replicas=node.partitions[number],
                state=states[name, number],
                adding=node.adding.get(number, ()),
                removing=node.removing.get(number, ()),
            )
            for number in sorted(node.partitions)
        },
    )


async def load_states(
    store: MetaStore, keys: Sequence[PartitionKey]
) -> dict[PartitionKey, PartitionState]:
    """All of them; raises NodeUnreadable if one is missing."""
    states = await find_states(store, keys)
    for key in keys:
        if key not in states:
            raise NodeUnreadable(znodes.state_path(*key), "it is missing")
    return states


async def find_states(
    store: MetaStore, keys: Sequence[PartitionKey]
) -> dict[PartitionKey, PartitionState]:
    """Those of them that are there."""
    paths = [znodes.state_path(topic, partition) for topic, partition in keys]
    states: dict[PartitionKey, PartitionState] = {}
    # Many partitions are in the same state: it is read, and kept in memory, once.
    known: dict[tuple[bytes, int], PartitionState] = {}
    for key, path, node in zip(keys, paths, await read_nodes(store, paths), strict=True):
        if node is None:
            continue
        content = (node[0], node[1].version)
        if content not in known:
            known[content] = znodes.decode_state(path, *content)
        states[key] = known[content]
    return states


async def load_configs(store: MetaStore) -> LoadedConfigs:
    names = await asyncio.gather(*(store.children(f"/config/{k}") for k in znodes.CONFIG_KINDS))
    keys = [
        (kind, znodes.config_name(kind, name))
        for kind, kind_names in zip(znodes.CONFIG_KINDS, names, strict=True)
        for name in kind_names
    ]
    keys += await _clients_of_users(store, [name for kind, name in keys if kind == "users"])
    paths = [znodes.config_path(*key) for key in keys]
    configs: dict[ConfigKey, Mapping[str, str]] = {}
    versions: dict[ConfigKey, int] = {}
    for key, path, node in zip(keys, paths, await read_nodes(store, paths), strict=True):
        if node is None:
            continue
        versions[key] = node[1].version
        if config := znodes.decode_config(path, node[0]):
            configs[key] = config
    return LoadedConfigs(configs=configs, versions=versions)


async def load_acls(store: MetaStore, *, is_wanted: bool) -> LoadedAcls:
    if not is_wanted:
        return LoadedAcls(acls={}, versions={})
    names = await asyncio.gather(*(store.children(parent) for parent in RESOURCE_PARENTS))
    paths = [
        f"{parent}/{name}"
        for parent, found in zip(RESOURCE_PARENTS, names, strict=True)
        for name in found
    ]
    acls: dict[ResourcePattern, Entries] = {}
    versions: dict[ResourcePattern, int] = {}
    for path, node in zip(paths, await read_nodes(store, paths), strict=True):
        if node is None:
            continue
        resource = resource_of_path(path)
        versions[resource] = node[1].version
        if entries := decode_entries(node[0]):
            acls[resource] = entries
    return LoadedAcls(acls=acls, versions=versions)


async def load_tokens(store: MetaStore, *, is_wanted: bool) -> LoadedTokens:
    if not is_wanted:
        return LoadedTokens(tokens={}, versions={})
    ids = await store.children(znodes.DELEGATION_TOKENS)
    paths = [token_path(token_id) for token_id in ids]
    tokens: dict[str, TokenInformation] = {}
    versions: dict[str, int] = {}
    for token_id, path, node in zip(ids, paths, await read_nodes(store, paths), strict=True):
        if node is None:
            continue
        versions[token_id] = node[1].version
        if token := read_token(path, node[0]):
            tokens[token_id] = token
    return LoadedTokens(tokens=tokens, versions=versions)


async def _clients_of_users(store: MetaStore, users: Sequence[str]) -> list[ConfigKey]:
    paths = [znodes.user_clients_path(user) for user in users]
    found = await read_nodes(store, paths)
    keys: list[ConfigKey] = []
    for user, path, node in zip(users, paths, found, strict=True):
        if node is not None:
            clients = await store.children(path)
            keys += [("users", znodes.user_client_name(user, client)) for client in clients]
    return keys


async def load_brokers(store: MetaStore) -> LoadedBrokers:
    """Node and fence of a broker are read as of one moment, for they change in one."""
    names, fence_names = await asyncio.gather(
        store.children(znodes.BROKER_IDS), store.children(znodes.FENCES)
    )
    return await find_brokers(store, sorted({int(name) for name in (*names, *fence_names)}))


async def find_brokers(store: MetaStore, ids: Sequence[int]) -> LoadedBrokers:
    """Those of them that have ever registered."""
    paths = [path for n in ids for path in (znodes.broker_path(n), znodes.fence_path(n))]
    found = await store.multi_get(paths)
    brokers: dict[int, BrokerImage] = {}
    fences: dict[int, Fence] = {}
    for broker_id, node, fence in zip(ids, found[::2], found[1::2], strict=True):
        if fence is None:
            continue
        kept = FenceNode.decode(znodes.fence_path(broker_id), fence[0])
        fences[broker_id] = Fence(kept, fence[1].version)
        if node is not None:
            brokers[broker_id] = broker_image(broker_id, node, fences[broker_id])
    return LoadedBrokers(brokers=brokers, fences=fences)


def broker_image(broker_id: int, node: Node, fence: Fence) -> BrokerImage:
    announced = BrokerNode.decode(znodes.broker_path(broker_id), node[0])
    return BrokerImage(
        broker_id=broker_id,
        epoch=node[1].czxid,
        endpoints=announced.endpoints,
        rack=announced.rack,
        is_active=fence.node.state is FenceState.ACTIVE,
        fence_version=fence.version,
    )
