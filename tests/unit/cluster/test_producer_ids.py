"""Producer ids come in blocks, and no id comes twice."""

import asyncio
from typing import Any

import pytest

from penstock.cluster.producer_ids import ATTEMPTS_MAX, BLOCK_SIZE, allocate_producer_ids
from penstock.cluster.registration import prepare_tree
from penstock.cluster.znodes import PRODUCER_ID_BLOCK, ProducerIdBlock
from penstock.errors import CoordinatorNotAvailable, UnknownServerError
from penstock.meta.store import MetaStore, Op, OutcomeUnknown, Result, Set


async def test_blocks_follow_one_another_across_restarts(cluster: Any) -> None:
    store = await cluster.session(0)
    await prepare_tree(store, cluster_id="c")
    assert await allocate_producer_ids(store, 0) == range(1000)
    assert await allocate_producer_ids(store, 0) == range(1000, 2000)
    await cluster.stop_all()
    store = await cluster.session(0)
    assert await allocate_producer_ids(store, 0) == range(2000, 3000)
    data, _ = await store.get(PRODUCER_ID_BLOCK)
    assert data == b'{"version":1,"broker":0,"block_start":"2000","block_end":"2999"}'


async def test_brokers_at_the_same_moment_get_different_blocks(cluster: Any) -> None:
    stores = [await cluster.session(n) for n in range(5)]
    await prepare_tree(stores[0], cluster_id="c")
    blocks = await asyncio.gather(
        *(allocate_producer_ids(store, n) for n, store in enumerate(stores))
    )
    assert sorted(block.start for block in blocks) == [n * BLOCK_SIZE for n in range(5)]


class UnknownOutcomes:
    """Every write arrives, but some answers do not."""

    def __init__(self, store: MetaStore, failures: int) -> None:
        self._store = store
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: list[Op]) -> list[Result]:
        done = await self._store.multi(ops)
        if self._failures:
            self._failures -= 1
            raise OutcomeUnknown("no answer")
        return done


async def test_a_block_that_may_have_been_given_is_skipped(cluster: Any) -> None:
    store = await cluster.session(0)
    await prepare_tree(store, cluster_id="c")
    assert await allocate_producer_ids(UnknownOutcomes(store, 2), 0) == range(2000, 3000)  # type: ignore[arg-type]


async def test_a_store_that_never_answers_ends_it(cluster: Any) -> None:
    store = await cluster.session(0)
    await prepare_tree(store, cluster_id="c")
    with pytest.raises(CoordinatorNotAvailable):
        await allocate_producer_ids(UnknownOutcomes(store, ATTEMPTS_MAX), 0)  # type: ignore[arg-type]


async def test_the_ids_may_run_out(cluster: Any) -> None:
    store = await cluster.session(0)
    await prepare_tree(store, cluster_id="c")
    last = ProducerIdBlock(broker_id=0, first=2**63 - 1500, last=2**63 - 501)
    await store.multi([Set(PRODUCER_ID_BLOCK, last.encode())])
    with pytest.raises(UnknownServerError):
        await allocate_producer_ids(store, 0)
