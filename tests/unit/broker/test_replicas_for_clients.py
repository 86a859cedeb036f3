"""What clients see of replicas: who leads instead, what a follower shows, who is nearest."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.unit.replica.replicas import TOPIC, TOPIC_ID, Replicas, a_batch, append

from penstock.broker.nearest_replica import RACK_AWARE
from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

BROKERS = (1, 2, 3)


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


async def produced(
    cluster: Replicas, broker: int, *, version: int = 11, timeout_ms: int = 10_000
) -> ProduceResponse:
    data = PartitionProduceData(index=0, records=bytes(a_batch(b"v")))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )
    body = request.encode(version)
    answer = await cluster.nodes[broker].answer(ApiKey.PRODUCE, body, version)
    return ProduceResponse.decode(memoryview(answer), version)


@pytest.mark.parametrize("version", [9, 10, 11])
def test_a_producer_is_told_the_new_leader_with_the_error(tmp_path: Path, version: int) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            response = await produced(cluster, 2, version=version)
            (answer,) = response.responses[0].partition_responses
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            if version < 10:
                return
            leader = answer.current_leader
            assert (leader.leader_id, leader.leader_epoch) == (1, 0)
            (node,) = response.node_endpoints
            assert (node.node_id, node.host, node.port) == (1, "host-1", 9001)

    run(story())


def test_a_producer_that_waits_is_told_when_the_leader_changes(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            cluster.cuts |= {frozenset((1, 2)), frozenset((1, 3))}
            waiting = asyncio.ensure_future(produced(cluster, 1))
            await cluster.until(lambda: cluster.nodes[1].partition.log.log_end_offset == 1)
            cluster.elect(2)
            response = await asyncio.wait_for(waiting, 10)
            (answer,) = response.responses[0].partition_responses
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 1)

    run(story())


def test_a_producer_is_told_when_too_few_are_left_in_sync(tmp_path: Path) -> None:
    async def story() -> None:
        from penstock.storage.log_config import LogConfig

        config = LogConfig(min_insync_replicas=2)
        async with Replicas(tmp_path, min_isr=2, log_config=config) as cluster:
            cluster.cuts |= {frozenset((1, 2)), frozenset((1, 3))}
            waiting = asyncio.ensure_future(produced(cluster, 1))
            await cluster.until(lambda: cluster.nodes[1].partition.log.log_end_offset == 1)
            cluster.change(isr=(1,), elr=(2, 3))
            cluster.publish()
            (answer,) = (await asyncio.wait_for(waiting, 10)).responses[0].partition_responses
            assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            (answer,) = (await produced(cluster, 1)).responses[0].partition_responses
            assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert cluster.nodes[1].partition.log.log_end_offset == 1
            assert cluster.nodes[1].partition.high_watermark == 0

    run(story())


def test_a_producer_waits_no_longer_than_it_said(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            cluster.cuts |= {frozenset((1, 2)), frozenset((1, 3))}
            response = await asyncio.wait_for(produced(cluster, 1, timeout_ms=50), 10)
            (answer,) = response.responses[0].partition_responses
            assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT

    run(story())


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
            _, data = await asyncio.wait_for(waiting, 10)
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
            _, data = await asyncio.wait_for(waiting, 10)
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
