"""Whole replicas beside each other: followers copy, cut, catch up and never make things up."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from tests.unit.replica.replicas import Replicas, append, bytes_of

from penstock.protocol.messages.fetch import FetchRequest


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_followers_copy_byte_for_byte_and_acks_all_waits_for_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            last = append(cluster.leader, b"a", b"b", acks=-1)
            wait = cluster.leader.replicated(last)
            assert wait is not None
            await asyncio.wait_for(wait, 10)
            append(cluster.leader, b"c")
            await cluster.until_equal()
            assert cluster.leader.high_watermark == 3

    run(story())


def test_a_quiet_session_names_nothing_and_is_told_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, partitions=20) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            await cluster.until(lambda: len(cluster.asked) > 12)
            cluster.asked.clear()
            await cluster.until(lambda: len(cluster.asked) > 6)
            named = [len(r.topics) for _, _, r in cluster.asked if isinstance(r, FetchRequest)]
            assert set(named) == {0}

    run(story())


def test_a_new_leader_is_followed_and_what_it_lacks_is_cut(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            cluster.cuts |= {frozenset((1, 2)), frozenset((1, 3))}
            append(cluster.nodes[1].partition, b"lost", b"lost too")
            cluster.elect(2, 2, 3, isr=(2, 3))
            last = append(cluster.nodes[2].partition, b"kept", acks=-1)
            wait = cluster.nodes[2].partition.replicated(last)
            if wait is not None:
                await asyncio.wait_for(wait, 10)
            cluster.cuts.clear()
            cluster.publish()
            await cluster.until_equal()
            assert b"lost" not in bytes_of(cluster.nodes[1].partition)
            assert cluster.nodes[1].partition.log.epochs == cluster.nodes[2].partition.log.epochs

    run(story())
