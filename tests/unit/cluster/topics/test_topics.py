"""Topics made, grown and deleted: what is refused, what is seen, what stays in the store."""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.cluster import znodes
from penstock.cluster.control.controller import Controller, PartitionsToAdd, TopicToCreate
from penstock.cluster.image.image import TopicImage
from penstock.cluster.topics import steps as topic_steps
from penstock.errors import (
    InconsistentTopicId,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopic,
    KafkaStorage,
    NotController,
    PolicyViolation,
    TopicExists,
    UnknownTopicOrPartition,
)
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import Create, Delete, Op, Result, StoreUnavailable
from penstock.protocol.primitives import uuid_text


def topic(name: str, partitions: int = 1, factor: int = 1, **configs: str) -> TopicToCreate:
    return TopicToCreate(
        name=name, partition_count=partitions, replication_factor=factor, configs=configs
    )


async def nodes_of(cluster: Any, name: str) -> tuple[list[str], list[str]]:
    """The partitions the store has of a topic, and the topics it has settings of."""
    store = await cluster.session(0)
    found = await store.multi_get([znodes.partitions_path(name)])
    partitions = await store.children(znodes.partitions_path(name)) if found[0] else []
    return sorted(partitions, key=int), await store.children("/config/topics")


# Making topics


async def test_a_new_topic_is_in_the_store_and_in_the_image(cluster: Any) -> None:
    controller = await cluster.start(0, 1, 2)
    made = await cluster.create(controller, "t", 6, 3, retention_ms="360000")
    image = controller.image
    assert image.topics["t"] is made
    assert image.topic_names_by_id[made.topic_id] == "t"
    assert image.config("topics", "t") == {"retention.ms": "360000"}
    for partition in made.partitions.values():
        state = partition.state
        assert sorted(partition.replicas) == [0, 1, 2]
        assert (state.leader, state.isr) == (partition.replicas[0], partition.replicas)
        assert (state.leader_epoch, state.partition_epoch, state.controller_epoch) == (0, 0, 1)
    assert await nodes_of(cluster, "t") == ([str(n) for n in range(6)], ["t"])
    assert (await cluster.restart(0)).image.topics["t"].topic_id == made.topic_id


async def ids_in(cluster: Any) -> list[str]:
    return sorted(await (await cluster.session(0)).children(znodes.TOPIC_IDS))


@pytest.mark.parametrize("partitions", [2, 20])
async def test_a_topic_has_a_node_of_its_id_as_long_as_it_is_there(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    monkeypatch.setattr(SqliteStore, "ops_per_multi_max", 10)  # Twenty take several steps.
    controller = await cluster.start(0)
    first = await cluster.create(controller, "t", partitions)
    assert await ids_in(cluster) == [uuid_text(first.topic_id)]
    assert await controller.delete_topics(["t"]) == [None]
    assert await ids_in(cluster) == []
    second = await cluster.create(controller, "t", partitions)
    assert await ids_in(cluster) == [uuid_text(second.topic_id)] != [uuid_text(first.topic_id)]


async def test_ids_are_put_in_order_by_the_next_controller(cluster: Any) -> None:
    controller = await cluster.start(0)
    made = await cluster.create(controller, "t")
    store = await cluster.session(0)
    left = znodes.topic_id_path(bytes(range(16)))
    await store.multi([Delete(znodes.topic_id_path(made.topic_id)), Create(left)])
    await cluster.restart(0)
    assert await ids_in(cluster) == [uuid_text(made.topic_id)]


async def test_the_random_start_is_the_givers(cluster: Any) -> None:
    for broker_id in (0, 1, 2):
        await cluster.register(broker_id)
    numbers = iter([b"\0\0\0\2", b"\0\0\0\0", bytes(range(16))])
    controller = await Controller.elect(
        await cluster.session(0), 0, now_ms=1, random_bytes=lambda count: next(numbers)
    )
    assert controller is not None
    made = await cluster.create(controller, "t", 6, 3)
    assert [p.replicas for p in made.partitions.values()] == [
        (2, 0, 1), (0, 1, 2), (1, 2, 0), (2, 1, 0), (0, 2, 1), (1, 0, 2),
    ]  # fmt: skip


async def test_each_topic_of_a_request_has_its_own_outcome(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "have.it")
    outcomes = await controller.create_topics(
        [
            topic("good", 2),
            topic("have.it"),
            topic("have_it"),
            topic("a/b"),
            topic("none", 0),
            topic("wide", 1, 3),
            topic("good"),
            topic("go.od"),
            topic("go_od"),
        ],
        validate_only=False,
    )
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds == [
        TopicImage,
        TopicExists,
        InvalidTopic,
        InvalidTopic,
        InvalidPartitions,
        InvalidReplicationFactor,
        TopicExists,
        TopicImage,
        InvalidTopic,
    ]
    assert str(outcomes[1]) == "Topic 'have.it' already exists."
    assert str(outcomes[2]) == "Topic 'have_it' collides with existing topic: have.it"
    assert "factor of 3 cannot be reached because only 1 broker(s)" in str(outcomes[5])
    assert str(outcomes[8]) == "Topic 'go_od' collides with existing topic: go.od"
    assert sorted(controller.image.topics) == ["go.od", "good", "have.it"]


async def test_validation_alone_changes_nothing(cluster: Any) -> None:
    controller = await cluster.start(0)
    before = controller.image
    good, bad = await controller.create_topics([topic("t", 3), topic("", 1)], validate_only=True)
    assert isinstance(good, TopicImage) and len(good.partitions) == 3
    assert isinstance(bad, InvalidTopic)
    assert controller.image is before
    assert await (await cluster.session(0)).children(znodes.TOPICS) == []


async def test_the_topics_of_a_request_are_bounded_together(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.create_topics([topic("a", 6_000), topic("b", 4_000)], validate_only=True)
    for last in (4_001, 2**31 - 1):
        with pytest.raises(PolicyViolation, match="Excessively large"):
            await controller.create_topics(
                [topic("a", 6_000), topic("b", last)], validate_only=False
            )
    assert controller.image.topics == {}


async def test_topics_of_a_request_collide_across_its_slices(cluster: Any) -> None:
    controller = await cluster.start(0)
    wanted = [topic("a.b", 400), topic("other", 400), topic("a_b", 400)]
    for validate_only in (True, False):
        outcomes = await controller.create_topics(wanted, validate_only=validate_only)
        assert [type(outcome) for outcome in outcomes] == [TopicImage, TopicImage, InvalidTopic]


async def test_a_controller_that_leaves_refuses_the_rest_of_a_request(cluster: Any) -> None:
    controller = await cluster.start(0)
    wanted = [topic(f"t{n}", 400) for n in range(4)]
    controller.subscribe(lambda _image: controller.make_no_more_topics())
    outcomes = await controller.create_topics(wanted, validate_only=False)
    refused = [NotController] * 3
    assert [type(outcome) for outcome in outcomes] == [TopicImage, *refused]
    assert set(controller.image.topics) == {"t0"}


async def test_topics_are_made_no_faster_than_this_broker_takes_them_on(cluster: Any) -> None:
    controller = await cluster.start(0)
    seen: list[int] = []

    async def settled() -> None:
        seen.append(len(controller.image.topics))

    controller.subscribe(lambda _image: None, settled)
    await controller.create_topics([topic(f"t{n}", 400) for n in range(3)], validate_only=False)
    assert seen == [1, 2, 3]


async def test_small_topics_of_a_request_are_one_write(cluster: Any) -> None:
    controller = await cluster.start(0)
    seen: list[int] = []
    controller.subscribe(lambda image: seen.append(len(image.topics)))
    await controller.create_topics([topic(f"t{n}", 10) for n in range(50)], validate_only=False)
    assert seen == [50]


async def test_a_topic_somebody_else_made_does_not_harm_the_others(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "theirs", 2)
    store = await cluster.session(0)
    controller._topics._forget("theirs")  # As if another tool had written it into the store.
    outcomes = await controller.create_topics(
        [topic("a"), topic("theirs"), topic("b")], validate_only=False
    )
    assert [type(o) for o in outcomes] == [TopicImage, TopicExists, TopicImage]
    assert sorted(controller.image.topics) == ["a", "b", "theirs"]
    assert len(controller.image.topics["theirs"].partitions) == 2
    assert await store.children(znodes.TOPICS) == ["a", "b", "theirs"]


@pytest.fixture
def small_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a topic of more than three partitions a large one."""
    monkeypatch.setattr(SqliteStore, "ops_per_multi_max", 10)


@pytest.mark.usefixtures("small_writes")
async def test_a_large_topic_is_seen_whole_or_not_at_all(cluster: Any) -> None:
    controller = await cluster.start(0)
    sizes: list[int] = []
    controller.subscribe(
        lambda image: sizes.append(len(image.topics["t"].partitions) if image.topics else 0)
    )
    await cluster.create(controller, "t", 10, retention_ms="5")
    (grown,) = await controller.create_partitions(
        [PartitionsToAdd(name="t", total_count=20)], validate_only=False
    )
    assert grown is None
    await cluster.create(controller, "small", 2)
    assert (await nodes_of(cluster, "t"))[0] == [str(n) for n in range(20)]
    restarted = await cluster.restart(0)
    assert len(restarted.image.topics["t"].partitions) == 20
    (deleted,) = await restarted.delete_topics(["t"])
    assert deleted is None
    assert await nodes_of(cluster, "t") == ([], ["small"])
    assert sizes == [10, 20, 20]
    await cluster.create(restarted, "t", 1)


async def test_a_topic_may_bring_its_id_unless_it_is_taken(cluster: Any) -> None:
    controller = await cluster.start(0)
    topic_id = bytes(range(16))
    found = topic("t")._replace(topic_id=topic_id)
    made, other = await controller.create_topics([found, topic("u")], validate_only=False)
    assert isinstance(made, TopicImage) and made.topic_id == topic_id
    assert isinstance(other, TopicImage) and other.topic_id != topic_id
    (refused,) = await controller.create_topics([found._replace(name="v")], validate_only=False)
    assert isinstance(refused, InconsistentTopicId)
    assert (await cluster.restart(0)).image.topic_names_by_id[topic_id] == "t"


# Deleting topics


async def test_a_deleted_topic_leaves_nothing(cluster: Any) -> None:
    controller = await cluster.start(0)
    first = await cluster.create(controller, "t", 3, retention_ms="5")
    await cluster.create(controller, "kept")
    outcomes = await controller.delete_topics(["t", "none", "t"])
    assert outcomes[0] is None
    assert [type(o) for o in outcomes[1:]] == [UnknownTopicOrPartition] * 2
    assert list(controller.image.topics) == ["kept"]
    assert first.topic_id not in controller.image.topic_names_by_id
    assert controller.image.config("topics", "t") == {}
    assert await nodes_of(cluster, "t") == ([], ["kept"])


async def test_small_topics_are_deleted_many_in_one_write(cluster: Any) -> None:
    controller = await cluster.start(0)
    names = [f"t{number}" for number in range(250)]
    await controller.create_topics([topic(name) for name in names], validate_only=False)
    seen: list[int] = []
    controller.subscribe(lambda image: seen.append(len(image.topics)))
    assert await controller.delete_topics(names) == [None] * 250
    assert seen == [150, 50, 0]
    assert await ids_in(cluster) == []
    assert await nodes_of(cluster, "t0") == ([], [])
    assert (await cluster.restart(0)).image.topics == {}


@pytest.mark.usefixtures("small_writes")
async def test_topics_of_all_sizes_are_deleted_in_the_order_they_are_named(cluster: Any) -> None:
    controller = await cluster.start(0)
    for name, count in {"a": 1, "large": 10, "b": 1, "c": 1, "kept": 1}.items():
        await cluster.create(controller, name, count)
    names = ["a", "large", "none", "b", "b", "c"]
    outcomes = await controller.delete_topics(names)
    assert [error is None for error in outcomes] == [True, True, False, True, False, True]
    assert isinstance(outcomes[2], UnknownTopicOrPartition)
    assert isinstance(outcomes[4], UnknownTopicOrPartition)
    assert list((await cluster.restart(0)).image.topics) == ["kept"]


async def test_a_topic_somebody_else_removed_does_not_keep_the_others_from_being_deleted(
    cluster: Any,
) -> None:
    controller = await cluster.start(0)
    for name in ("a", "theirs", "b"):
        await cluster.create(controller, name)
    theirs = controller.image.topics["theirs"]
    store = await cluster.session(0)
    await store.multi(topic_steps.deletion_ops(theirs, []))  # Past the controller.
    outcomes = await controller.delete_topics(["a", "theirs", "b"])
    assert [error is None for error in outcomes] == [True, False, True]
    assert controller.image.topics == {}
    assert await store.children(znodes.TOPICS) == []


@pytest.mark.parametrize("has_happened", [True, False])
async def test_topics_whose_deletion_broke_off_are_as_the_store_has_them(
    cluster: Any, has_happened: bool
) -> None:
    broken = {"now": False}

    class BreaksOff:
        def __init__(self, store: Any) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        async def multi(self, ops: Sequence[Op]) -> list[Result]:
            if not broken["now"]:
                return await self._store.multi(ops)
            broken["now"] = False
            if has_happened:
                await self._store.multi(ops)
            raise StoreUnavailable("the answer was lost")

    cluster.wrap = lambda store: BreaksOff(store)
    controller = await cluster.start(0)
    for name in ("a", "b"):
        await cluster.create(controller, name)
    broken["now"] = True
    outcomes = await controller.delete_topics(["a", "b"])
    assert [type(error) for error in outcomes] == [KafkaStorage, KafkaStorage]
    assert sorted(controller.image.topics) == ([] if has_happened else ["a", "b"])
    outcomes = await controller.delete_topics(["a", "b"])
    assert [error is None for error in outcomes] == [not has_happened] * 2
    assert controller.image.topics == {}


async def test_a_topic_made_again_has_another_id_and_no_old_settings(cluster: Any) -> None:
    controller = await cluster.start(0)
    ids = set()
    for _ in range(3):
        made = await cluster.create(controller, "t", 2, retention_ms="5")
        ids.add(made.topic_id)
        await controller.delete_topics(["t"])
    again = await cluster.create(controller, "t")
    assert again.topic_id not in ids and len(ids) == 3
    assert controller.image.config("topics", "t") == {}


async def test_a_name_is_free_for_its_neighbour_after_deletion(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "a.b")
    with pytest.raises(InvalidTopic):
        await cluster.create(controller, "a_b")
    await controller.delete_topics(["a.b"])
    await cluster.create(controller, "a_b")
    controller = await cluster.restart(0)
    with pytest.raises(InvalidTopic):
        await cluster.create(controller, "a.b")


# Growing topics


async def test_a_topic_grows_and_keeps_what_it_had(cluster: Any) -> None:
    controller = await cluster.start(0, 1, 2)
    before = await cluster.create(controller, "t", 3, 2)
    (outcome,) = await controller.create_partitions(
        [PartitionsToAdd(name="t", total_count=5)], validate_only=False
    )
    assert outcome is None
    after = controller.image.topics["t"]
    assert after.topic_id == before.topic_id
    assert {n: after.partitions[n] for n in range(3)} == before.partitions
    assert len(after.partitions) == 5
    again = await controller.create_partitions(
        [
            PartitionsToAdd(name="t", total_count=6, assignments=[(2, 0)]),
            PartitionsToAdd(name="t", total_count=2),
            PartitionsToAdd(name="none", total_count=2),
        ],
        validate_only=False,
    )
    assert again[0] is None
    assert [type(o) for o in again[1:]] == [InvalidPartitions, UnknownTopicOrPartition]
    assert controller.image.topics["t"].partitions[5].replicas == (2, 0)
    assert (await cluster.restart(0)).image.topics["t"].partitions.keys() == set(range(6))


async def test_growth_may_be_tried_without_growing(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "t", 2)
    before = controller.image
    good, bad = await controller.create_partitions(
        [PartitionsToAdd(name="t", total_count=4), PartitionsToAdd(name="t", total_count=1)],
        validate_only=True,
    )
    assert good is None
    assert isinstance(bad, InvalidPartitions)
    assert controller.image is before


async def test_new_partitions_have_the_topics_own_minimum(cluster: Any) -> None:
    controller = await cluster.start(0, 1, 2)
    made = await cluster.create(controller, "t", 1, 3, min_insync_replicas="2")
    assert made.partitions[0].state.min_isr == 2
    await controller.create_partitions(
        [PartitionsToAdd(name="t", total_count=2)], validate_only=False
    )
    assert controller.image.topics["t"].partitions[1].state.min_isr == 2


@pytest.mark.usefixtures("small_writes")
@pytest.mark.parametrize("broken_at", range(6))
async def test_a_large_change_that_breaks_off_is_put_right_by_the_next(
    cluster: Any, broken_at: int
) -> None:
    """The same controller lives on: what it began and could not finish must not stay."""
    left = {"writes": 10**9}

    class BreaksOff:
        def __init__(self, store: Any) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        async def multi(self, ops: Sequence[Op]) -> list[Result]:
            left["writes"] -= 1
            if left["writes"] == 0:
                raise StoreUnavailable("database or disk is full")
            return await self._store.multi(ops)

    cluster.wrap = lambda store: BreaksOff(store)
    controller = await cluster.start(0)
    store = await cluster.session(0)
    left["writes"] = broken_at + 1
    (made,) = await controller.create_topics([topic("t", 10)], validate_only=False)
    left["writes"] = 10**9
    if isinstance(made, KafkaStorage):
        assert controller.image.topics == {}
        made = await cluster.create(controller, "t", 10)
    assert len(made.partitions) == 10
    left["writes"] = broken_at + 1
    (grown,) = await controller.create_partitions(
        [PartitionsToAdd(name="t", total_count=20)], validate_only=False
    )
    left["writes"] = 10**9
    if grown is not None:
        assert len(controller.image.topics["t"].partitions) == 10
        (grown,) = await controller.create_partitions(
            [PartitionsToAdd(name="t", total_count=20)], validate_only=False
        )
    assert grown is None
    assert sorted(await store.children(znodes.partitions_path("t")), key=int) == [
        str(n) for n in range(20)
    ]
    left["writes"] = broken_at + 1
    await controller.delete_topics(["t"])
    left["writes"] = 10**9
    await controller.delete_topics(["t"])
    assert controller.image.topics == {}
    assert await store.children(znodes.TOPICS) == []
    assert await store.children("/config/topics") == []


async def test_a_change_that_is_cancelled_before_it_begins_leaves_no_coroutine_behind(
    cluster: Any, recwarn: pytest.WarningsRecorder
) -> None:
    controller = await cluster.start(0)
    making = asyncio.create_task(controller.create_topics([topic("t")], validate_only=False))
    await asyncio.sleep(0)  # The change is a task of its own now, and has not begun.
    for change in tuple(controller._under_way):
        change.cancel()
    await asyncio.wait([making])
    del making, change  # They hold on to all that was under way.
    gc.collect()
    assert not [str(found.message) for found in recwarn if "never awaited" in str(found.message)]
