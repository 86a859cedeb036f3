"""DescribeTransactions: the state of transactions by id, from the coordinator of each."""

from itertools import groupby

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.errors import ProtocolError
from penstock.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from penstock.transactions.transaction import Transaction


def handle(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            _described(transactional_id, context) for transactional_id in request.transactional_ids
        ]
    )


def error_response(
    request: DescribeTransactionsRequest, error: ProtocolError
) -> DescribeTransactionsResponse:
    """The same error for every transaction."""
    return DescribeTransactionsResponse(
        transaction_states=[_failed(each, error) for each in request.transactional_ids]
    )


def _described(transactional_id: str, context: RequestContext) -> TransactionState:
    try:
        known = context.broker.transactions.coordinator.describe(transactional_id)
    except ProtocolError as error:
        return _failed(transactional_id, error)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.state.label,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=_topics(known),
    )


def _topics(known: Transaction) -> list[TopicData]:
    by_topic = groupby(sorted(known.partitions), key=lambda partition: partition[0])
    return [
        TopicData(topic=topic, partitions=[number for _, number in partitions])
        for topic, partitions in by_topic
    ]


def _failed(transactional_id: str, error: ProtocolError) -> TransactionState:
    return fail(TransactionState(transactional_id=transactional_id), error)
