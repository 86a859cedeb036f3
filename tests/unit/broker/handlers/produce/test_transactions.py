"""Batches of transactions: who may write them, and when they wait."""

import asyncio
from typing import Any

import pytest
from tests.unit.broker.handlers.transactional_client import Client

from penstock.errors import ErrorCode


@pytest.mark.parametrize(
    ("version", "error"),
    [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_an_older_client_must_add_a_partition_before_it_writes(
    client: Client, version: int, error: ErrorCode
) -> None:
    assert client.produce(0, version=version) == error
    assert client.add() == [ErrorCode.NONE]
    assert client.produce(0, version=version) == ErrorCode.NONE


@pytest.mark.parametrize("version", [12, 13])
def test_a_newer_client_adds_by_writing_and_gets_an_epoch_for_each_transaction(
    client: Client, version: int
) -> None:
    producer_id, epoch = client.who
    for transaction in range(1, 4):
        assert client.produce(0, version=version) == ErrorCode.NONE
        assert client.produce(1, version=version) == ErrorCode.NONE
        assert client.describe().transaction_state == "Ongoing"
        assert client.end(version=5) == ErrorCode.NONE
        assert client.who == (producer_id, epoch + transaction)
    assert client.served.partition("orders").last_stable_offset == 9


def test_a_zombie_writes_nothing_after_it_was_fenced(client: Client) -> None:
    client.add()
    assert client.produce(0) == ErrorCode.NONE
    zombie = client.who
    client.init()
    client.who = zombie
    log = client.served.partition("orders").log
    end_offset = log.log_end_offset
    assert client.produce(1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert client.produce(0, version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.log_end_offset == end_offset == log.last_stable_offset


def test_a_batch_of_a_transaction_without_its_id_is_refused(client: Client) -> None:
    error = client.produce(0, transactional_id=None)
    assert error == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_newer_client_that_is_faster_than_the_markers_waits_for_them(client: Client) -> None:
    """The coordinator answers before the markers are written; the next batch may be there first."""
    coordinator = client.served.broker.transactions.coordinator
    markers, coordinator._markers = coordinator._markers, Stuck()
    assert client.produce(0, version=12) == ErrorCode.NONE
    assert client.end(version=5) == ErrorCode.NONE
    assert client.produce(0, version=12) == ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator._markers.inner = markers

    served = client.served

    async def both() -> Any:
        asking = asyncio.ensure_future(served.answer(client.produce_request(0), 12))
        await asyncio.sleep(0.03)
        coordinator._markers.going.set()
        return await asking

    answer = served.run(both())
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert served.partition("orders").log.log_end_offset == 3


class Stuck:
    """Markers that wait until they are let go."""

    def __init__(self) -> None:
        self.inner: Any = None
        self.going = asyncio.Event()

    async def write(self, marker: Any, partitions: Any) -> Any:
        await self.going.wait()
        return await self.inner.write(marker, partitions)
