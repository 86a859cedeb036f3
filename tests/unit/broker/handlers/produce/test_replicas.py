"""What producers see of replicas: who leads instead, and too few that are in sync."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.unit.replica.replicas import TOPIC, Replicas, a_batch

from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


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
        from penstock.storage.log.config import LogConfig

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
