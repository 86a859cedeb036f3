"""The cluster read out of the store: all of it, in few round trips, whatever goes meanwhile."""

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.cluster import znodes
from penstock.cluster.image import load as image_load
from penstock.cluster.image.load import load_brokers, load_configs, load_states, load_topics
from penstock.meta.store import MetaStore, Node


class Watched:
    """Counts the reads, and lists names of nodes that are gone by the time they are read."""

    def __init__(self, store: MetaStore) -> None:
        self._store = store
        self.reads: list[int] = []

    async def children(self, path: str) -> list[str]:
        names = await self._store.children(path)
        return [*names, "99"] if path.count("/") == 2 and path != znodes.CONFIG_CHANGES else names

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        self.reads.append(len(paths))
        return await self._store.multi_get(paths)


async def test_what_goes_while_it_is_read_is_left_out(cluster: Any) -> None:
    controller = await cluster.start(0, 1)
    await cluster.create(controller, "t", 3, retention_ms="5")
    store: Any = Watched(await cluster.session(0))
    topics, configs = await load_topics(store), await load_configs(store)
    brokers = await load_brokers(store)
    assert topics.topics == controller.image.topics
    assert topics.versions == {"t": 0}
    assert configs.configs == controller.image.configs
    assert brokers.brokers == controller.image.brokers
    assert sorted(brokers.fences) == [0, 1]


async def test_many_partitions_take_few_reads(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_load, "PATHS_PER_READ", 100)
    controller = await cluster.start(0)
    await cluster.create(controller, "t", 250)
    store: Any = Watched(await cluster.session(0))
    keys = [("t", number) for number in range(250)]
    states = await load_states(store, keys)
    assert store.reads == [100, 100, 50]
    assert states == {key: controller.image.topics["t"].partitions[key[1]].state for key in keys}


async def test_equal_states_are_one_object(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "t", 50)
    loaded = await load_topics(await cluster.session(0))
    assert len({id(p.state) for p in loaded.topics["t"].partitions.values()}) == 1
