"""Thousands of new partitions: the event loop turns while their logs are made."""

import asyncio
from pathlib import Path

from penstock.broker.membership.new_partitions import AT_ONCE, PartitionOpener
from penstock.cluster.image.image import (
    ClusterImage,
    ImageDelta,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from penstock.replica.table import PartitionTable
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.config import LogConfig

BROKER = 1
MANY = AT_ONCE * 4


class Taking:
    """A table with images on their way to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log_dirs = LogDirs.open([path], now_ms=0, report=lambda _: None)
        self.log_dirs.claim(broker_id=BROKER, cluster_id="c")
        self.table = PartitionTable(
            broker_id=BROKER,
            log_dirs=self.log_dirs,
            log_config=lambda _image, _name: LogConfig(),
            now_ms=lambda: 0,
        )
        self.obeyed: list[ClusterImage] = []
        self.newcomers = PartitionOpener(self.table, obey=self.obey)

    def obey(self, image: ClusterImage) -> None:
        self.obeyed.append(image)
        self.table.apply(image)

    async def wait_until_settled(self) -> None:
        while self.newcomers._opening is not None:
            await asyncio.sleep(0)

    def directories(self) -> set[str]:
        return {p.name for p in self.path.iterdir() if p.is_dir() and "-delete" not in p.name}


def image_with(*topics: TopicImage, before: ClusterImage | None = None) -> ClusterImage:
    start = before or ClusterImage(cluster_id="c")
    return start.apply(ImageDelta(topics={topic.name: topic for topic in topics}))


def topic(name: str, count: int, *, topic_id: bytes = b"a" * 16) -> TopicImage:
    state = PartitionState(leader=BROKER, leader_epoch=0, isr=(BROKER,), min_isr=1)
    placed = PartitionImage(replicas=(BROKER,), state=state)
    return TopicImage(name=name, topic_id=topic_id, partitions=dict.fromkeys(range(count), placed))


def test_a_few_are_taken_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        taking = Taking(tmp_path)
        taking.newcomers.take(image_with(topic("few", AT_ONCE)))
        assert len(taking.table) == AT_ONCE

    asyncio.run(scene())


def test_many_are_opened_while_others_get_their_turn(tmp_path: Path) -> None:
    async def scene() -> None:
        taking = Taking(tmp_path)
        taking.newcomers.take(image_with(topic("many", MANY)))
        assert len(taking.table) == 0
        turns = 0
        while not taking.obeyed:
            turns += 1
            await asyncio.sleep(0)
        assert turns > 10
        assert len(taking.table) == MANY

    asyncio.run(scene())


def test_of_the_images_that_come_meanwhile_the_last_is_obeyed(tmp_path: Path) -> None:
    async def scene() -> None:
        taking = Taking(tmp_path)
        first = image_with(topic("many", MANY))
        second = image_with(topic("more", 3, topic_id=b"b" * 16), before=first)
        taking.newcomers.take(first)
        await asyncio.sleep(0)
        taking.newcomers.take(second)
        await taking.wait_until_settled()
        assert taking.obeyed == [second]
        assert len(taking.table) == MANY + 3

    asyncio.run(scene())


def test_a_topic_deleted_meanwhile_leaves_no_log(tmp_path: Path) -> None:
    async def scene() -> None:
        taking = Taking(tmp_path)
        first = image_with(topic("many", MANY))
        taking.newcomers.take(first)
        await asyncio.sleep(0)
        taking.newcomers.take(first.apply(ImageDelta(topics={"many": None})))
        await taking.wait_until_settled()
        assert (len(taking.table), taking.directories()) == (0, set())

    asyncio.run(scene())


def test_a_topic_made_anew_meanwhile_gets_logs_of_its_own(tmp_path: Path) -> None:
    async def scene() -> None:
        taking = Taking(tmp_path)
        first = image_with(topic("many", MANY))
        taking.newcomers.take(first)
        await asyncio.sleep(0)
        taking.newcomers.take(image_with(topic("many", MANY, topic_id=b"n" * 16), before=first))
        await taking.wait_until_settled()
        assert {found for _, found in taking.log_dirs.found_logs()} == {b"n" * 16}
        assert len(taking.table) == MANY

    asyncio.run(scene())


def test_nothing_is_obeyed_after_the_end_of_the_session(tmp_path: Path) -> None:
    async def scene() -> None:
        taking = Taking(tmp_path)
        taking.newcomers.take(image_with(topic("many", MANY)))
        await asyncio.sleep(0)
        await taking.newcomers.close()
        assert taking.obeyed == []
        again = image_with(topic("many", MANY))
        taking.newcomers.take(again)
        await taking.wait_until_settled()
        assert taking.obeyed == [again]

    asyncio.run(scene())
