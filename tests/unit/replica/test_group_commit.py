"""flush.on.ack: what is not on disk does not count, and one flush serves many appends."""

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.unit.replica.replicas import Replicas, append

from penstock.errors import KafkaStorage, NotLeaderOrFollower
from penstock.protocol.messages.fetch import FetchRequest
from penstock.replica.partition import Partition

ON = {"flush.on.ack": "true"}
PATIENCE_S = 120.0


class HeldDisk:
    """Flushes of one log wait until they are let through."""

    def __init__(self, partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = 0
        self.error: KafkaStorage | None = None
        self._may_go = threading.Semaphore(0)
        self._flush = partition.log.flush
        monkeypatch.setattr(partition.log, "flush", self)

    def __call__(self, **_: object) -> None:
        self.begun += 1
        assert self._may_go.acquire(timeout=PATIENCE_S)
        if self.error is not None:
            raise self.error
        self._flush()

    def let_through(self, count: int = 1) -> None:
        self._may_go.release(count)


def obeying(cluster: Replicas) -> Replicas:
    for node in cluster.nodes.values():
        node.table.around.commits.is_on = lambda node=node: node.config.flush_on_ack
    return cluster


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


@pytest.mark.parametrize("acks", [1, -1])
def test_a_single_replica_acknowledges_after_the_flush_and_one_flush_serves_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1,), settings=ON) as cluster:
            obeying(cluster)
            leader = cluster.leader
            disk = HeldDisk(leader, monkeypatch)
            first = leader.acknowledged(append(leader, b"a", acks=acks), acks)
            await cluster.until(lambda: disk.begun == 1)
            later = [leader.acknowledged(append(leader, b"b", acks=acks), acks) for _ in range(20)]
            assert first is not None and not first.done()
            assert leader.high_watermark == 0
            assert not any(wait is None or wait.done() for wait in later)
            disk.let_through()
            for wait in (first, *later):
                assert wait is not None
                await wait
            assert (disk.begun, leader.high_watermark) == (1, 21)
            assert leader.acknowledged(20, acks) is None
            assert leader.acknowledged(20, 0) is None

    run(story())


def test_the_leaders_own_disk_holds_back_what_all_followers_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, settings=ON) as cluster:
            obeying(cluster)
            leader = cluster.leader
            disk = HeldDisk(leader, monkeypatch)
            wait = leader.acknowledged(append(leader, b"a", acks=-1), -1)
            followers = [cluster.nodes[n].partition for n in (2, 3)]
            await cluster.until(lambda: all(p.log.recovery_point == 1 for p in followers))
            await cluster.until(
                lambda: (
                    leader.in_sync is not None
                    and all(f.fetch_offset == 1 for f in leader.in_sync.followers.values())
                )
            )
            assert wait is not None and not wait.done()
            assert leader.high_watermark == 0
            disk.let_through()
            await wait
            await cluster.until_equal()

    run(story())


def test_a_follower_asks_only_from_what_it_has_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        cluster = Replicas(tmp_path, brokers=(1, 2), settings=ON)
        said: list[tuple[int, int]] = []

        class Asked(list[Any]):
            def append(self, asked: Any) -> None:
                asker, _, request = asked
                if isinstance(request, FetchRequest):
                    on_disk = cluster.nodes[asker].partition.log.recovery_point
                    said.extend(
                        (p.fetch_offset, on_disk) for t in request.topics for p in t.partitions
                    )

        cluster.asked = Asked()
        async with cluster:
            obeying(cluster)
            disk = HeldDisk(cluster.nodes[2].partition, monkeypatch)
            wait = cluster.leader.acknowledged(append(cluster.leader, b"a", b"b", acks=-1), -1)
            await cluster.until(lambda: disk.begun == 1)
            assert cluster.nodes[2].partition.log.log_end_offset == 2
            assert wait is not None and not wait.done()
            disk.let_through(100)
            await wait
            for _ in range(20):
                waiting = cluster.leader.acknowledged(append(cluster.leader, b"c", acks=-1), -1)
                if waiting is not None:
                    await waiting
        assert max(offset for offset, _ in said) >= 20
        assert all(offset <= on_disk for offset, on_disk in said)

    run(story())


def test_a_flush_that_fails_is_told_and_nothing_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1,), settings=ON) as cluster:
            obeying(cluster)
            leader = cluster.leader
            disk = HeldDisk(leader, monkeypatch)
            disk.error = KafkaStorage("the disk is gone")
            wait = leader.acknowledged(append(leader, b"a"), 1)
            disk.let_through(100)
            assert wait is not None
            with pytest.raises(KafkaStorage):
                await wait
            assert leader.high_watermark == 0

    run(story())


def test_who_waits_for_the_disk_is_told_when_leadership_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, settings=ON) as cluster:
            obeying(cluster)
            leader = cluster.leader
            disk = HeldDisk(leader, monkeypatch)
            wait = leader.acknowledged(append(leader, b"a"), 1)
            assert wait is not None
            cluster.elect(2)
            with pytest.raises(NotLeaderOrFollower):
                await wait
            disk.let_through(100)

    run(story())


def test_turned_off_it_holds_nobody_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1,), settings=ON) as cluster:
            obeying(cluster)
            leader = cluster.leader
            disk = HeldDisk(leader, monkeypatch)
            wait = leader.acknowledged(append(leader, b"a"), 1)
            await cluster.until(lambda: disk.begun == 1)
            cluster.nodes[1].configure({"flush.on.ack": "false"})
            assert leader.acknowledged(append(leader, b"b"), 1) is None
            assert leader.high_watermark == 2
            disk.let_through()
            assert wait is not None
            await wait

    run(story())
