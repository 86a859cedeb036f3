"""AddPartitionsToTxn: partitions that a transaction is about to write.

Clients send one transaction, up to version 3. From version 4 on brokers send several at once, to
add partitions for clients of transaction version 2 or only to ask whether they were added. Where
many partitions are named, others have their turn in between; what is added is added in one step.
"""

from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import Any, Final, NamedTuple

from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import code_of
from penstock.broker.slices import TimeSlice
from penstock.broker.transactions.exactly_once import told_to
from penstock.errors import (
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
from penstock.transactions.admission import Wait
from penstock.transactions.transaction import TV1, TV2, ProducerIdentity, TopicPartition

_FIRST_VERSION_WITH_FENCING = 2
_FIRST_VERSION_OF_BROKERS = 4
_FIRST_VERSION_WITH_ABORTABLE = 5

_AT_ONCE: Final = 500  # So many partitions are answered for in a few milliseconds.
_UNKNOWN: Final = UnknownTopicOrPartition("the partition is not there")
_NOT_TRIED: Final = OperationNotAttempted("another partition of the request is not there")

Verdict = Callable[[TopicPartition], ProtocolError | None]


class _Decided(NamedTuple):
    """What is said of one transaction's partitions, and what to wait for before it is told."""

    verdict: Verdict
    wait: Wait


def handle(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse | Coroutine[Any, Any, AddPartitionsToTxnResponse]:
    is_client = context.version < _FIRST_VERSION_OF_BROKERS
    transactions = [_of_client(request)] if is_client else request.transactions
    if _are_many(transactions):
        context.is_large = context.holds = True
        return _in_turns(transactions, context)
    decided = [_decide(each, *_looked_up(each, context), context) for each in transactions]
    if any(one.wait is not None for one in decided):
        return _answer_when_safe(transactions, decided, context)
    return _answer_all(transactions, decided, is_client=is_client)


def error_response(
    request: AddPartitionsToTxnRequest, error: ProtocolError
) -> AddPartitionsToTxnResponse:
    """The same error for every partition, in the form of the request's version."""
    if request.transactions:
        return AddPartitionsToTxnResponse(error_code=code_of(error))
    results = [_answer(topic, lambda _: error) for topic in request.v3_and_below_topics]
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def _of_client(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


async def _answer_when_safe(
    transactions: Sequence[AddPartitionsToTxnTransaction],
    decided: Iterable[_Decided],
    context: RequestContext,
) -> AddPartitionsToTxnResponse:
    safe = [await _until_safe(one, context) for one in decided]
    is_client = context.version < _FIRST_VERSION_OF_BROKERS
    return _answer_all(transactions, safe, is_client=is_client)


async def _until_safe(decided: _Decided, context: RequestContext) -> _Decided:
    """What is to be told once it cannot be lost, which may be that it was refused."""
    if decided.wait is None:
        return decided
    try:
        await decided.wait()
    except ProtocolError as error:
        return _refused(error, context)
    return _Decided(decided.verdict, None)


def _answer_all(
    transactions: Sequence[AddPartitionsToTxnTransaction],
    decided: Iterable[_Decided],
    *,
    is_client: bool,
) -> AddPartitionsToTxnResponse:
    results = [
        [_answer(topic, one.verdict) for topic in each.topics]
        for each, one in zip(transactions, decided, strict=True)
    ]
    return _response(transactions, results, is_client=is_client)


def _response(
    transactions: Iterable[AddPartitionsToTxnTransaction],
    results: Sequence[list[AddPartitionsToTxnTopicResult]],
    *,
    is_client: bool,
) -> AddPartitionsToTxnResponse:
    if is_client:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0])
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=topics
            )
            for transaction, topics in zip(transactions, results, strict=True)
        ]
    )


def _looked_up(
    transaction: AddPartitionsToTxnTransaction, context: RequestContext
) -> tuple[set[TopicPartition], set[TopicPartition]]:
    """The partitions that are named, and those of them that cannot be added."""
    wanted = {(topic.name, number) for topic in transaction.topics for number in topic.partitions}
    return wanted, {at for at in wanted if _is_missing(transaction, at, context.broker)}


def _is_missing(
    transaction: AddPartitionsToTxnTransaction, at: TopicPartition, broker: Broker
) -> bool:
    """Whether the partition cannot be added, which is of no interest to who only asks."""
    return not transaction.verify_only and broker.image.partition(*at) is None


def _decide(
    transaction: AddPartitionsToTxnTransaction,
    wanted: Iterable[TopicPartition],
    missing: Collection[TopicPartition],
    context: RequestContext,
) -> _Decided:
    """Add or verify the partitions."""
    try:
        if transaction.verify_only:
            return _verify(transaction, wanted, context)
        if missing:  # Nothing is added when one of the partitions is not there.
            return _Decided(lambda at: _UNKNOWN if at in missing else _NOT_TRIED, None)
        return _Decided(lambda _: None, _add(transaction, wanted, context))
    except ProtocolError as error:
        return _refused(error, context)


def _refused(error: ProtocolError, context: RequestContext) -> _Decided:
    told = told_to(context.version, error, knows_fencing_from=_FIRST_VERSION_WITH_FENCING)
    return _Decided(lambda _: told, None)


def _verify(
    transaction: AddPartitionsToTxnTransaction,
    wanted: Iterable[TopicPartition],
    context: RequestContext,
) -> _Decided:
    errors, wait = context.broker.transactions.coordinator.verify_all(
        transaction.transactional_id, _identity(transaction), wanted
    )
    return _Decided(lambda at: _abortable(context.version, errors[at]), wait)


def _add(
    transaction: AddPartitionsToTxnTransaction,
    wanted: Iterable[TopicPartition],
    context: RequestContext,
) -> Wait:
    is_client = context.version < _FIRST_VERSION_OF_BROKERS
    return context.broker.transactions.coordinator.add_partitions(
        transaction.transactional_id,
        _identity(transaction),
        wanted,
        client_version=TV1 if is_client else TV2,
    )


def _identity(transaction: AddPartitionsToTxnTransaction) -> ProducerIdentity:
    return ProducerIdentity(transaction.producer_id, transaction.producer_epoch)


def _abortable(version: int, error: ProtocolError | None) -> ProtocolError | None:
    if isinstance(error, TransactionAbortable) and version < _FIRST_VERSION_WITH_ABORTABLE:
        return InvalidTxnState(str(error))
    return error


def _answer(topic: AddPartitionsToTxnTopic, verdict: Verdict) -> AddPartitionsToTxnTopicResult:
    name = topic.name
    results = [_result(number, verdict((name, number))) for number in topic.partitions]
    return AddPartitionsToTxnTopicResult(name=name, results_by_partition=results)


def _result(number: int, error: ProtocolError | None) -> AddPartitionsToTxnPartitionResult:
    return AddPartitionsToTxnPartitionResult(
        partition_index=number, partition_error_code=code_of(error)
    )


# Requests about many partitions


def _are_many(transactions: Sequence[AddPartitionsToTxnTransaction]) -> bool:
    count = sum(1 + len(topic.partitions) for each in transactions for topic in each.topics)
    return len(transactions) + count > _AT_ONCE


async def _in_turns(
    transactions: Sequence[AddPartitionsToTxnTransaction], context: RequestContext
) -> AddPartitionsToTxnResponse:
    pace = TimeSlice()
    decided = [await _decide_in_turns(each, context, pace) for each in transactions]
    safe = [await _until_safe(one, context) for one in decided]
    results = [
        [await _answer_in_turns(topic, one.verdict, pace) for topic in each.topics]
        for each, one in zip(transactions, safe, strict=True)
    ]
    is_client = context.version < _FIRST_VERSION_OF_BROKERS
    return _response(transactions, results, is_client=is_client)


async def _decide_in_turns(
    transaction: AddPartitionsToTxnTransaction, context: RequestContext, pace: TimeSlice
) -> _Decided:
    wanted: set[TopicPartition] = set()
    missing: set[TopicPartition] = set()
    for topic in transaction.topics:
        for number in topic.partitions:
            at = topic.name, number
            wanted.add(at)
            if _is_missing(transaction, at, context.broker):
                missing.add(at)
            await pace.breathe()
        await pace.breathe()
    return _decide(transaction, wanted, missing, context)


async def _answer_in_turns(
    topic: AddPartitionsToTxnTopic, verdict: Verdict, pace: TimeSlice
) -> AddPartitionsToTxnTopicResult:
    result = AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=[])
    for number in topic.partitions:
        result.results_by_partition.append(_result(number, verdict((topic.name, number))))
        await pace.breathe()
    await pace.breathe()
    return result
