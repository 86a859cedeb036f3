"""WriteTxnMarkers: a transaction's end, written into each partition it touched.

Coordinators on other brokers send it, and administrators who end a transaction that hangs.
"""

import asyncio

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import code_of
from penstock.errors import ProtocolError
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from penstock.transactions.markers import Outcome, TransactionMarker


async def handle(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse:
    """All are written before the replicas of any are waited for."""
    written = await asyncio.gather(*(_write(marker, context) for marker in request.markers))
    return WriteTxnMarkersResponse(markers=written)


def error_response(
    request: WriteTxnMarkersRequest, error: ProtocolError
) -> WriteTxnMarkersResponse:
    """The same error for every partition."""
    return WriteTxnMarkersResponse(
        markers=[
            _result(marker, dict.fromkeys(_wanted(marker), error)) for marker in request.markers
        ]
    )


async def _write(asked: WritableTxnMarker, context: RequestContext) -> WritableTxnMarkerResult:
    marker = TransactionMarker(
        producer_id=asked.producer_id,
        producer_epoch=asked.producer_epoch,
        is_commit=asked.transaction_result,
        coordinator_epoch=asked.coordinator_epoch,
        transaction_version=asked.transaction_version,
    )
    outcome = await context.broker.transactions.markers.write(marker, _wanted(asked))
    return _result(asked, outcome)


def _wanted(marker: WritableTxnMarker) -> list[tuple[str, int]]:
    return [(topic.name, number) for topic in marker.topics for number in topic.partition_indexes]


def _result(marker: WritableTxnMarker, outcome: Outcome) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=number, error_code=code_of(outcome[topic.name, number])
                    )
                    for number in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
