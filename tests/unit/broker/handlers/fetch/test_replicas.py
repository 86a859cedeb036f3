"""What consumers see of replicas: who leads instead, what a follower shows, who is nearest."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.unit.replica.replicas import TOPIC, TOPIC_ID, Replicas, append

from penstock.broker.fetching.nearest_replica import RACK_AWARE
from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


async def fetched(
    cluster: Replicas,
    broker: int,
    *,
    offset: int = 0,
    rack: str = "",
    version: int = 17,
    wait_ms: int = 0,
    leader_epoch: int = -1,
) -> tuple[FetchResponse, PartitionData]:
    partition = FetchPartition(
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
        current_leader_epoch=leader_epoch,
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        rack_id=rack,
        topics=[FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
    )
    body = request.encode(version)
    answer = await cluster.nodes[broker].answer(ApiKey.FETCH, body, version)
    response = FetchResponse.decode(memoryview(answer), version)
    (data,) = response.responses[0].partitions
    return response, data


def test_an_old_consumer_is_sent_to_the_leader_and_a_new_one_may_stay(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            _, data = await fetched(cluster, 2, version=10)
            assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            _, data = await fetched(cluster, 2, version=11)
            assert data.error_code == ErrorCode.NONE
            assert data.high_watermark == 1
            assert data.records
            _, data = await fetched(cluster, 2, offset=2)
            assert data.error_code == ErrorCode.OFFSET_NOT_AVAILABLE

    run(story())


def test_a_consumer_of_an_old_epoch_is_told_the_leader(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            cluster.elect(2)
            response, data = await fetched(cluster, 1, leader_epoch=0)
            assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
            assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 1)
            assert [node.node_id for node in response.node_endpoints] == [2]

    run(story())


def test_a_consumer_that_waits_at_a_follower_wakes_when_records_are_committed(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            await cluster.until(lambda: len(cluster.asked) > 3)
            waiting = asyncio.ensure_future(fetched(cluster, 2, wait_ms=20_000))
            await asyncio.sleep(0)
            append(cluster.leader, b"a")
            _, data = await asyncio.wait_for(waiting, 60)
            assert data.records

    run(story())


def test_a_consumer_at_the_leader_is_not_woken_by_what_is_not_committed(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            cluster.cuts |= {frozenset((1, 2)), frozenset((1, 3))}
            waiting = asyncio.ensure_future(fetched(cluster, 1, wait_ms=20_000))
            await asyncio.sleep(0)
            append(cluster.leader, b"a")
            for _ in range(5):
                await asyncio.sleep(0.01)
            assert not waiting.done()
            cluster.cuts.clear()
            _, data = await asyncio.wait_for(waiting, 60)
            assert (len(data.records or b"") > 0, data.high_watermark) == (True, 1)

    run(story())


@pytest.mark.parametrize("selector", [RACK_AWARE, ""])
def test_the_leader_names_the_replica_in_the_consumers_rack(tmp_path: Path, selector: str) -> None:
    async def story() -> None:
        settings = {"replica.selector.class": selector} if selector else {}
        async with Replicas(tmp_path, settings=settings) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            in_sync = cluster.leader.in_sync
            assert in_sync is not None
            await cluster.until(lambda: in_sync.followers[3].fetch_offset == 1)
            _, data = await fetched(cluster, 1, rack="rack-3")
            assert data.preferred_read_replica == (3 if selector else -1)
            assert bool(data.records) == (not selector)
            _, data = await fetched(cluster, 1, rack="rack-1")
            assert data.preferred_read_replica == -1
            assert data.records

    run(story())
