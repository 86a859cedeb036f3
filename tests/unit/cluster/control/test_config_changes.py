"""Settings replaced in one step, with notes for those who listen, down to the partitions."""

from typing import Any

import pytest

from penstock.cluster import znodes
from penstock.cluster.control.controller import EntityOverrides
from penstock.cluster.image.image import CLUSTER_WIDE, ClusterImage, ConfigKey
from penstock.errors import InvalidUpdateVersion, UnknownServerError, UnknownTopicOrPartition
from penstock.meta.store import Create, Delete, Set, StoreUnavailable


def change(kind: str, name: str, expected: int | None = None, **config: str) -> EntityOverrides:
    written = {key.replace("_", "."): value for key, value in config.items()}
    return EntityOverrides(kind=kind, name=name, config=written, expected_version=expected)


def set_by_somebody(image: ClusterImage) -> dict[ConfigKey, dict[str, str]]:
    """All settings, without the minimum that the first controller stores."""
    left = {
        key: {name: text for name, text in config.items() if name != "min.insync.replicas"}
        for key, config in image.configs.items()
    }
    return {key: config for key, config in left.items() if config}


async def test_settings_are_replaced_and_outlive_a_restart(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "t", 1, retention_ms="5")
    await controller.set_configs(
        [
            change("topics", "t", cleanup_policy="compact"),
            change("brokers", CLUSTER_WIDE, log_retention_ms="7"),
            change("clients", "an%20app%2F2", producer_byte_rate="9"),
        ]
    )
    await controller.set_configs([change("brokers", "0", log_cleaner_threads="2")])
    for image in (controller.image, (await cluster.restart(0)).image):
        assert set_by_somebody(image) == {
            ("topics", "t"): {"cleanup.policy": "compact"},
            ("brokers", CLUSTER_WIDE): {"log.retention.ms": "7"},
            ("brokers", "0"): {"log.cleaner.threads": "2"},
            ("clients", "an%20app%2F2"): {"producer.byte.rate": "9"},
        }


@pytest.mark.parametrize("has_settings", [False, True])
async def test_a_client_of_a_user_stands_below_the_user(cluster: Any, has_settings: bool) -> None:
    controller = await cluster.start(0)
    if has_settings:
        await controller.set_configs([change("users", "alice", a="1")])
    for number in ("1", "2"):
        await controller.set_configs(
            [
                change("users", "alice/clients/c%201", a=number),
                change("users", "alice/clients/<default>", a="3"),
            ]
        )
    await controller.set_configs([change("users", "<default>/clients/c", a="4")])
    store = await cluster.session(0)
    assert await store.children("/config/users") == ["<default>", "alice"]
    assert await store.children("/config/users/alice/clients") == ["<default>", "c%201"]
    notes = await store.children(znodes.CONFIG_CHANGES)
    data, _ = await store.get(f"{znodes.CONFIG_CHANGES}/{notes[-1]}")
    assert data == b'{"version":2,"entity_path":"users/<default>/clients/c"}'
    own = {("users", "alice"): {"a": "1"}} if has_settings else {}
    for image in (controller.image, (await cluster.restart(0)).image):
        assert set_by_somebody(image) == {
            ("users", "alice/clients/c%201"): {"a": "2"},
            ("users", "alice/clients/<default>"): {"a": "3"},
            ("users", "<default>/clients/c"): {"a": "4"},
            **own,
        }


async def test_a_user_that_kafka_made_only_for_its_clients_has_no_settings(cluster: Any) -> None:
    controller = await cluster.start(0)
    store = await cluster.session(0)
    stored = znodes.encode_config({"a": "1"})
    await store.multi(
        [
            Create("/config/users/bob", b""),
            Create("/config/users/bob/clients", b""),
            Create("/config/users/bob/clients/c", stored),
        ]
    )
    await controller.set_configs([change("users", "bob/clients/d", a="2")])
    await controller.set_configs([change("users", "bob", a="3")])
    assert set_by_somebody((await cluster.restart(0)).image) == {
        ("users", "bob"): {"a": "3"},
        ("users", "bob/clients/c"): {"a": "1"},
        ("users", "bob/clients/d"): {"a": "2"},
    }


async def test_no_settings_are_no_entry(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "t", 1, retention_ms="5")
    await controller.set_configs([change("topics", "t"), change("brokers", "0", a="1")])
    await controller.set_configs([change("brokers", "0")])
    assert set_by_somebody(controller.image) == {}
    assert set_by_somebody((await cluster.restart(0)).image) == {}


async def test_settings_of_a_topic_that_is_not_there_are_refused_with_all_others(
    cluster: Any,
) -> None:
    controller = await cluster.start(0)
    with pytest.raises(UnknownTopicOrPartition):
        await controller.set_configs([change("brokers", "0", a="1"), change("topics", "t", b="1")])
    assert set_by_somebody(controller.image) == {}


async def test_a_change_on_old_knowledge_is_refused(cluster: Any) -> None:
    controller = await cluster.start(0)
    assert controller.config_version("brokers", "0") == -1
    await controller.set_configs([change("brokers", "0", -1, a="1")])
    assert controller.config_version("brokers", "0") == 0
    with pytest.raises(InvalidUpdateVersion):
        await controller.set_configs([change("brokers", "0", -1, a="2")])
    await controller.set_configs([change("brokers", "0", 0, a="3")])
    assert controller.image.config("brokers", "0") == {"a": "3"}


async def test_only_the_latest_notes_of_change_are_kept(cluster: Any) -> None:
    controller = await cluster.start(0)
    store = await cluster.session(0)
    for number in range(130):
        await controller.set_configs([change("brokers", "0", n=str(number))])
    notes = await store.children(znodes.CONFIG_CHANGES)
    assert len(notes) == 100
    data, _ = await store.get(f"{znodes.CONFIG_CHANGES}/{notes[-1]}")
    assert data == b'{"version":2,"entity_path":"brokers/0"}'
    controller = await cluster.restart(0)
    store = await cluster.session(0)
    await controller.set_configs([change("brokers", "0", n="x")])
    assert len(await store.children(znodes.CONFIG_CHANGES)) == 100
    assert await store.children(znodes.CONFIG_CHANGES) > notes


async def test_what_another_tool_wrote_is_read_before_it_is_replaced(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "t")
    store = await cluster.session(0)
    theirs = znodes.encode_config({"retention.ms": "9"})
    await store.multi([Set("/config/topics/t", theirs), Create("/config/brokers/0", theirs)])
    with pytest.raises(InvalidUpdateVersion):
        await controller.set_configs([change("topics", "t", 0, retention_ms="5")])
    assert controller.image.config("topics", "t") == {"retention.ms": "9"}
    await controller.set_configs([change("brokers", "0", log_retention_ms="5")])
    assert controller.image.config("brokers", "0") == {"log.retention.ms": "5"}
    await store.multi([Delete("/config/brokers/0")])
    await controller.set_configs([change("brokers", "0", log_retention_ms="6")])
    assert (await cluster.restart(0)).image.config("brokers", "0") == {"log.retention.ms": "6"}


async def test_settings_of_a_kind_that_does_not_exist_are_an_error_of_ours(cluster: Any) -> None:
    controller = await cluster.start(0)
    with pytest.raises(UnknownServerError):
        await controller.set_configs([change("planets", "mars", a="1")])


@pytest.mark.parametrize(("wanted", "min_isr"), [("2", 2), ("3", 3), ("9", 3)])
async def test_the_minimum_in_sync_reaches_the_partitions(
    cluster: Any, wanted: str, min_isr: int
) -> None:
    controller = await cluster.start(0, 1, 2)
    made = await cluster.create(controller, "t", 2, 3)
    await cluster.create(controller, "single", 1, 1)
    assert made.partitions[0].state.min_isr == 1
    await controller.set_configs([change("topics", "t", min_insync_replicas=wanted)])
    states = [p.state for p in controller.image.topics["t"].partitions.values()]
    assert [(s.min_isr, s.leader_epoch, s.partition_epoch) for s in states] == [(min_isr, 0, 1)] * 2
    assert controller.image.topics["single"].partitions[0].state.min_isr == 1
    await controller.set_configs([change("topics", "t")])
    assert [p.state.min_isr for p in controller.image.topics["t"].partitions.values()] == [1, 1]


async def test_a_cluster_wide_minimum_reaches_topics_without_their_own(cluster: Any) -> None:
    controller = await cluster.start(0, 1, 2)
    await cluster.create(controller, "t", 1, 3)
    await cluster.create(controller, "own", 1, 3, min_insync_replicas="1")
    await controller.set_configs([change("brokers", CLUSTER_WIDE, min_insync_replicas="2")])
    image = controller.image
    assert image.topics["t"].partitions[0].state.min_isr == 2
    assert image.topics["own"].partitions[0].state.min_isr == 1


async def test_a_new_controller_finishes_a_change_of_the_minimum(cluster: Any) -> None:
    """The settings were written, the partitions not yet, when the old one died."""
    controller = await cluster.start(0, 1, 2)
    await cluster.create(controller, "t", 2, 3)
    store = await cluster.session(0)
    data = znodes.encode_config({"min.insync.replicas": "2"})
    await store.multi([Set("/config/topics/t", data)])
    controller = await cluster.restart(0)
    assert [p.state.min_isr for p in controller.image.topics["t"].partitions.values()] == [2, 2]


@pytest.mark.parametrize("first", ["1", "2"])
async def test_the_first_controller_stores_its_minimum_and_later_ones_keep_to_it(
    cluster: Any, first: str
) -> None:
    key = ("brokers", CLUSTER_WIDE)
    controller = await cluster.start(0, 1, 2, min_insync_replicas=int(first))
    assert controller.image.configs[key] == {"min.insync.replicas": first}
    await cluster.create(controller, "t", 1, 3)
    cluster.min_insync_replicas = 3
    controller = await cluster.restart(0)
    assert controller.image.configs[key] == {"min.insync.replicas": first}
    assert controller.image.topics["t"].partitions[0].state.min_isr == int(first)


async def test_what_is_set_for_all_brokers_stays_beside_the_minimum(cluster: Any) -> None:
    await cluster.register(0)
    store = await cluster.session(0)
    path = znodes.config_path("brokers", CLUSTER_WIDE)
    await store.multi([Create(path, znodes.encode_config({"log.roll.ms": "9"}))])
    image = (await cluster.elect(0)).image
    assert image.config("brokers", CLUSTER_WIDE) == {"log.roll.ms": "9", "min.insync.replicas": "1"}


async def test_a_store_without_room_does_not_keep_a_controller_from_beginning(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.wrap = WithoutRoomForSettings
    controller = await cluster.start(0, 1, 2, min_insync_replicas=2)
    assert ("brokers", CLUSTER_WIDE) not in controller.image.configs
    assert "min.insync.replicas could not be stored" in caplog.text
    made = await cluster.create(controller, "t", 1, 3)
    assert made.partitions[0].state.min_isr == 2


class WithoutRoomForSettings:
    """A store that takes everything but settings of brokers."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: Any) -> Any:
        if any(op.path == znodes.config_path("brokers", CLUSTER_WIDE) for op in ops):
            raise StoreUnavailable("no space left on device")
        return await self._store.multi(ops)
