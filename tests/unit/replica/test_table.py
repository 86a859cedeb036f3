"""The table of hosted partitions follows the image, and nothing but the image."""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.support.disk import leave_no_byte, small_disk

from penstock.cluster.image.image import (
    BrokerImage,
    ClusterImage,
    ImageDelta,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from penstock.errors import KafkaStorage, NotLeaderOrFollower, UnknownTopicOrPartition
from penstock.records.topic_partition import TopicPartition
from penstock.replica.table import DELETED_AT_ONCE, RECONSIDERED_AT_ONCE, PartitionTable
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.config import LogConfig

BROKER, OTHER = 1, 2


def topic(name: str, *leaders: int, topic_id: bytes = b"a" * 16) -> TopicImage:
    return TopicImage(
        name=name,
        topic_id=topic_id,
        partitions={
            number: PartitionImage(
                replicas=(leader,),
                state=PartitionState(leader=leader, leader_epoch=0, isr=(leader,), min_isr=1),
            )
            for number, leader in enumerate(leaders)
        },
    )


def changed(image: ClusterImage, *topics: TopicImage, gone: str | None = None) -> ClusterImage:
    changes: dict[str, TopicImage | None] = {made.name: made for made in topics}
    if gone is not None:
        changes[gone] = None
    return image.apply(ImageDelta(topics=changes))


EMPTY = ClusterImage(cluster_id="c")


def opened(path: Path) -> LogDirs:
    log_dirs = LogDirs.open([path], now_ms=0, report=lambda _: None)
    log_dirs.claim(broker_id=BROKER, cluster_id="c")
    return log_dirs


def table_on(log_dirs: LogDirs) -> PartitionTable:
    return PartitionTable(
        broker_id=BROKER,
        log_dirs=log_dirs,
        log_config=lambda image, name: LogConfig(
            retention_bytes=int(image.config("topics", name).get("retention.bytes", "-1"))
        ),
        now_ms=lambda: 0,
    )


def test_partitions_come_and_go_with_the_image(tmp_path: Path) -> None:
    table = table_on(opened(tmp_path))
    image = changed(EMPTY, topic("a", BROKER, OTHER, BROKER))
    table.apply(image)
    assert [(p.topic, p.partition) for p in table.hosted()] == [("a", 0), ("a", 2)]
    assert table.leader("a", 0).is_leader
    with pytest.raises(NotLeaderOrFollower):
        table.leader("a", 1)
    with pytest.raises(UnknownTopicOrPartition):
        table.leader("a", 3)
    hosted = table.leader("a", 0)
    table.apply(changed(image, gone="a"))
    assert len(table) == 0
    assert not hosted.is_leader
    with pytest.raises(UnknownTopicOrPartition):
        table.leader("a", 0)
    assert not (tmp_path / "a-0").exists()


def test_a_partition_without_room_is_hosted_when_there_is_some(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", size_bytes=1 << 20) as disk:
        table = table_on(opened(disk))
        ballast = leave_no_byte(disk)
        image = changed(EMPTY, topic("a", BROKER), topic("b", BROKER, topic_id=b"b" * 16))
        table.apply(image)
        for name in ("a", "b"):
            with pytest.raises(KafkaStorage):
                table.leader(name, 0)
        assert table.host_again() == []
        table.apply(changed(image, gone="b"))
        ballast.unlink()
        assert [hosted.key for hosted in table.host_again()] == [("a", 0)]
        assert table.leader("a", 0).is_leader
        assert table.host_again() == []


def test_a_topic_made_anew_under_its_old_name_starts_empty(tmp_path: Path) -> None:
    table = table_on(opened(tmp_path))
    image = changed(EMPTY, topic("a", BROKER))
    table.apply(image)
    old = table.leader("a", 0)
    table.apply(changed(image, topic("a", BROKER, topic_id=b"b" * 16)))
    new = table.leader("a", 0)
    assert new is not old
    assert new.topic_id == b"b" * 16
    assert new.log.log_end_offset == 0


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_topic_made_anew_stays_while_the_old_one_still_leaves(
    tmp_path: Path, is_alone: bool
) -> None:
    table = table_on(opened(tmp_path))
    image = changed(EMPTY, topic("a", *[BROKER] * (DELETED_AT_ONCE + 2)))
    table.apply(image)
    anew = changed(EMPTY, topic("a", *[BROKER] * (DELETED_AT_ONCE + 2), topic_id=b"b" * 16))
    last = TopicPartition("a", DELETED_AT_ONCE + 1)

    async def scene() -> None:
        table.apply(changed(image, gone="a"))
        wanted = next(one for one in table.missing(anew) if one.partition == last)
        if is_alone:
            table.lead_ahead(wanted, anew)
        else:
            table.open_ahead(wanted)
        await asyncio.sleep(0)
        table.apply(anew)

    asyncio.run(scene())
    hosted = table.leader(*last)
    assert hosted.topic_id == b"b" * 16
    assert hosted.log.failure is None
    assert hosted.log.dir.exists()
    assert not list(tmp_path.glob("*-stray"))


def test_a_partition_that_comes_back_while_it_leaves_stays(tmp_path: Path) -> None:
    table = table_on(opened(tmp_path))
    here = changed(EMPTY, topic("a", *[BROKER] * (DELETED_AT_ONCE + 2)))
    gone = changed(EMPTY, topic("a", *[OTHER] * (DELETED_AT_ONCE + 2)))
    table.apply(here)

    async def scene() -> None:
        table.apply(gone)
        table.apply(here)
        await asyncio.sleep(0)

    asyncio.run(scene())
    assert len(table) == DELETED_AT_ONCE + 2
    assert all(hosted.log.failure is None for hosted in table.hosted())


def test_a_log_that_cannot_be_deleted_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dirs = opened(tmp_path)
    table = table_on(log_dirs)
    image = changed(EMPTY, topic("a", *[BROKER] * (2 * DELETED_AT_ONCE)))
    table.apply(image)
    delete = log_dirs.delete_log

    def delete_most(partition: TopicPartition, *, now_ms: int) -> None:
        if partition.partition % DELETED_AT_ONCE == 1:
            raise KafkaStorage("the disk is ill")
        delete(partition, now_ms=now_ms)

    async def scene() -> None:
        table.apply(changed(image, gone="a"))
        await asyncio.sleep(0)

    monkeypatch.setattr(log_dirs, "delete_log", delete_most)
    asyncio.run(scene())
    left = sorted(path.name for path in tmp_path.glob("a-*") if "." not in path.name)
    assert left == ["a-1", f"a-{DELETED_AT_ONCE + 1}"]


def test_changed_settings_reach_the_logs_of_their_topic_only(tmp_path: Path) -> None:
    table = table_on(opened(tmp_path))
    image = changed(EMPTY, topic("a", BROKER), topic("b", BROKER, topic_id=b"b" * 16))
    table.apply(image)
    table.apply(replace(image, configs={("topics", "a"): {"retention.bytes": "77"}}))
    assert table.leader("a", 0).log.config.retention_bytes == 77
    assert table.leader("b", 0).log.config.retention_bytes == -1


def test_logs_of_unknown_topics_are_kept_aside_and_not_deleted(tmp_path: Path) -> None:
    log_dirs = opened(tmp_path)
    table_on(log_dirs).apply(changed(EMPTY, topic("a", BROKER)))
    log_dirs.close()
    log_dirs = opened(tmp_path)
    table = table_on(log_dirs)
    table.apply(EMPTY)
    table.set_aside_strays(EMPTY)
    (kept,) = [found for found in tmp_path.iterdir() if found.name.endswith("-stray")]
    assert any(kept.iterdir())


def test_who_stood_down_leads_again_only_by_an_image(tmp_path: Path) -> None:
    table = table_on(opened(tmp_path))
    image = changed(EMPTY, topic("a", BROKER))
    table.apply(image)
    partition = table.leader("a", 0)
    table.stand_down_all()
    with pytest.raises(NotLeaderOrFollower):
        table.leader("a", 0)
    with pytest.raises(NotLeaderOrFollower):
        table.replica("a", 0)
    table.apply(image)
    assert table.leader("a", 0) is partition


def test_a_partition_that_moved_to_other_brokers_is_dropped(tmp_path: Path) -> None:
    table = table_on(opened(tmp_path))
    image = changed(EMPTY, topic("a", BROKER, BROKER))
    table.apply(image)
    placed = image.topics["a"].partitions[1]
    moved = placed._replace(
        replicas=(OTHER,),
        state=placed.state._replace(leader=OTHER, isr=(OTHER,), leader_epoch=1, partition_epoch=1),
    )
    table.apply(image.apply(ImageDelta(partitions={("a", 1): moved})))
    assert [(p.topic, p.partition) for p in table.hosted()] == [("a", 0)]
    assert not (tmp_path / "a-1").exists()
    with pytest.raises(NotLeaderOrFollower):
        table.leader("a", 1)


def test_thousands_of_partitions_are_reconsidered_bit_by_bit(tmp_path: Path) -> None:
    count = 2 * RECONSIDERED_AT_ONCE + 5
    state = PartitionState(leader=BROKER, leader_epoch=0, isr=(BROKER, OTHER), min_isr=1)
    placed = PartitionImage(replicas=(BROKER, OTHER), state=state)
    many = TopicImage(
        name="many", topic_id=b"m" * 16, partitions=dict.fromkeys(range(count), placed)
    )

    async def scene() -> None:
        table = table_on(opened(tmp_path))
        image = changed(EMPTY, many)
        table.apply(image)
        looked: list[int] = []
        for partition in table.hosted():
            partition.reconsider = partial(looked.append, partition.partition)  # type: ignore[method-assign]
        known = BrokerImage(broker_id=OTHER, epoch=1, endpoints=(), is_active=True)
        image = image.apply(ImageDelta(brokers={OTHER: known}))
        table.apply(image)
        assert len(looked) == RECONSIDERED_AT_ONCE
        await asyncio.sleep(0)
        table.apply(image.apply(ImageDelta(brokers={OTHER: None})))  # All of it anew, once.
        looked.clear()
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(looked) == count - RECONSIDERED_AT_ONCE

    asyncio.run(scene())
