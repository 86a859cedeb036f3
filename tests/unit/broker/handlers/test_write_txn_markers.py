"""WriteTxnMarkers: markers that come from elsewhere."""

import asyncio
from typing import Any

import pytest
from tests.unit.broker.handlers.transactional_client import GROUP, Client, committed_offset, turns

from penstock.errors import ErrorCode
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


@pytest.mark.parametrize("version", [1, 2])
def test_markers_are_written_where_this_broker_leads(client: Client, version: int) -> None:
    client.add()
    client.produce(0)
    marker = WritableTxnMarker(
        producer_id=client.who[0],
        producer_epoch=client.who[1],
        transaction_result=False,
        topics=[
            WritableTxnMarkerTopic(name="orders", partition_indexes=[0, 7]),
            WritableTxnMarkerTopic(name="nowhere", partition_indexes=[0]),
        ],
        coordinator_epoch=0,
    )
    (result,) = client.served.ask(WriteTxnMarkersRequest(markers=[marker]), version).markers
    found = [p.error_code for topic in result.topics for p in topic.partitions]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (result.producer_id, found) == (client.who[0], [ErrorCode.NONE, unknown, unknown])
    log = client.served.partition("orders").log
    assert log.last_stable_offset == log.log_end_offset == 2
    assert [each.first_offset for each in log.aborted_transactions(0, 2)] == [0]


class FarCoordinator:
    """Asks the real one when the question arrives, which is when the test says so."""

    def __init__(self, near: Any) -> None:
        self._near = near
        self.arrived = asyncio.Event()

    def add_partitions(self, *who: Any, **how: Any) -> Any:
        async def ask() -> None:
            await self.arrived.wait()
            self._near.add_partitions(*who, **how)

        return ask


def test_the_end_of_one_transaction_leaves_alone_what_waits_for_the_next(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of version 2 is faster than the markers, which carry its new epoch."""
    served = client.served
    committed_offset(served)  # The topic of the offsets is made.
    assert client.commit_offset(1, version=5) == ErrorCode.NONE
    assert client.produce(0, version=12) == ErrorCode.NONE
    assert client.end(version=5) == ErrorCode.NONE
    transactions = served.broker.transactions
    far = FarCoordinator(transactions.coordinator)
    monkeypatch.setattr(transactions.admission, "_verifier", far)
    where = served.broker.groups.partition_of(GROUP)
    marker = WritableTxnMarker(
        producer_id=client.who[0],
        producer_epoch=client.who[1],
        transaction_result=True,
        topics=[
            WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=[where]),
            WritableTxnMarkerTopic(name="orders", partition_indexes=[0]),
        ],
        coordinator_epoch=0,
        transaction_version=2,
    )

    async def overtake() -> tuple[Any, Any]:
        committing = asyncio.ensure_future(served.answer(client.offset_request(2), 5))
        producing = asyncio.ensure_future(served.answer(client.produce_request(0), 12))
        await turns()
        await served.answer(WriteTxnMarkersRequest(markers=[marker]), 2)
        far.arrived.set()
        return await committing, await producing

    committed, produced = served.run(overtake())
    assert committed.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert produced.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert committed_offset(served) == (1, ErrorCode.NONE)
    assert client.end(version=5) == ErrorCode.NONE
    assert committed_offset(served) == (2, ErrorCode.NONE)
    log = served.partition("orders").log
    assert log.last_stable_offset == log.log_end_offset
