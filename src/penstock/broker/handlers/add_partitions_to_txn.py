"""AddPartitionsToTxn: partitions that a transaction is about to write.

Clients send one transaction, up to version 3. From version 4 on brokers send several at once, to
add partitions for clients of transaction version 2 or only to ask whether they were added.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any

from penstock.broker.context import Broker, RequestContext
from penstock.broker.exactly_once import told_to
from penstock.errors import (
    ErrorCode,
    InvalidTxnState,
    OperationNotAttempted,
    ProtocolError,
    TransactionAbortable,
    UnknownTopicOrPartition,
)
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from penstock.transactions.transaction import TV1, TV2, Identity, TopicPartition

_FIRST_VERSION_WITH_FENCING = 2
_FIRST_VERSION_OF_BROKERS = 4
_FIRST_VERSION_WITH_ABORTABLE = 5

Errors = Mapping[TopicPartition, ProtocolError | None]
Waits = list[Callable[[], Awaitable[None]]]


def handle(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse | Coroutine[Any, Any, AddPartitionsToTxnResponse]:
    waits: Waits = []
    response = AddPartitionsToTxnResponse()
    if context.version < _FIRST_VERSION_OF_BROKERS:
        results = _results(_of_client(request), context, waits)
        response.results_by_topic_v3_and_below = results
    else:
        response.results_by_transaction = [
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=_results(transaction, context, waits),
            )
            for transaction in request.transactions
        ]
    return _when_safe(response, waits) if waits else response


def error_response(
    request: AddPartitionsToTxnRequest, error: ProtocolError
) -> AddPartitionsToTxnResponse:
    """The same error for every partition, in the form of the request's version."""
    if request.transactions:
        return AddPartitionsToTxnResponse(error_code=int(error.code))
    topics = request.v3_and_below_topics
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=_answer(topics, dict.fromkeys(_wanted(topics), error))
    )


def _of_client(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


async def _when_safe(
    response: AddPartitionsToTxnResponse, waits: Waits
) -> AddPartitionsToTxnResponse:
    for wait in waits:
        await wait()
    return response


def _results(
    transaction: AddPartitionsToTxnTransaction, context: RequestContext, waits: Waits
) -> list[AddPartitionsToTxnTopicResult]:
    wanted = _wanted(transaction.topics)
    try:
        errors = _added_or_verified(transaction, wanted, context, waits)
    except ProtocolError as error:
        told = told_to(context.version, error, knows_fencing_from=_FIRST_VERSION_WITH_FENCING)
        errors = dict.fromkeys(wanted, told)
    return _answer(transaction.topics, errors)


def _added_or_verified(
    transaction: AddPartitionsToTxnTransaction,
    wanted: Iterable[TopicPartition],
    context: RequestContext,
    waits: Waits,
) -> Errors:
    coordinator = context.broker.transactions.coordinator
    identity = Identity(transaction.producer_id, transaction.producer_epoch)
    errors: Errors
    if transaction.verify_only:
        errors, wait = coordinator.verify_all(transaction.transactional_id, identity, wanted)
        errors = {at: _abortable(context.version, error) for at, error in errors.items()}
    else:
        unknown = _unknown(wanted, context.broker)
        if unknown:
            return unknown
        is_client = context.version < _FIRST_VERSION_OF_BROKERS
        wait = coordinator.add_partitions(
            transaction.transactional_id,
            identity,
            wanted,
            client_version=TV1 if is_client else TV2,
        )
        errors = dict.fromkeys(wanted)
    if wait is not None:
        waits.append(wait)
    return errors


def _unknown(wanted: Iterable[TopicPartition], broker: Broker) -> Errors:
    """Nothing is added when one of the partitions is not there; empty: all are."""
    missing = {at for at in wanted if broker.image.partition(*at) is None}
    if not missing:
        return {}
    not_tried = OperationNotAttempted("another partition of the request is not there")
    return {
        at: UnknownTopicOrPartition(f"there is no partition {at[0]}-{at[1]}")
        if at in missing
        else not_tried
        for at in wanted
    }


def _abortable(version: int, error: ProtocolError | None) -> ProtocolError | None:
    if isinstance(error, TransactionAbortable) and version < _FIRST_VERSION_WITH_ABORTABLE:
        return InvalidTxnState(str(error))
    return error


def _wanted(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [(topic.name, partition) for topic in topics for partition in topic.partitions]


def _answer(
    topics: Iterable[AddPartitionsToTxnTopic], errors: Errors
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=partition,
                    partition_error_code=_code(errors[topic.name, partition]),
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def _code(error: ProtocolError | None) -> int:
    return int(ErrorCode.NONE if error is None else error.code)
