"""Transactions as records of `__transaction_state`, in Kafka's bytes.

The key holds the transactional id, the value everything else; no value means that the id was
forgotten.
"""

from collections import defaultdict
from typing import Final

from penstock.coordination.machine import KeyValue
from penstock.protocol.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from penstock.protocol.primitives import MalformedMessage
from penstock.protocol.stored import read_prefix
from penstock.transactions.transaction import TopicPartition, Transaction, TransactionState

_VALUE_VERSION: Final = 1  # Written since brokers speak transaction version 1 and above.


def to_record(transaction: Transaction) -> KeyValue:
    """The record that makes this the state of its transactional id."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=int(transaction.state),
        transaction_partitions=_topics(transaction),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
    return _key(transaction.transactional_id), value.to_bytes(_VALUE_VERSION)


def tombstone(transactional_id: str) -> KeyValue:
    """The record that makes the transactional id unknown."""
    return _key(transactional_id), None


def _key(transactional_id: str) -> bytes:
    return TransactionLogKey(transactional_id=transactional_id).to_bytes()


def _topics(transaction: Transaction) -> list[PartitionsSchema] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        by_topic[topic].append(partition)
    return [
        PartitionsSchema(topic=topic, partition_ids=partitions)
        for topic, partitions in by_topic.items()
    ]


def read_record(key: bytes | None, value: bytes | None) -> tuple[str, Transaction | None] | None:
    """The id and its state; no state: it was forgotten; None: a kind of record unknown here.

    Raises MalformedMessage for a record that cannot be read.
    """
    if key is None:
        raise MalformedMessage("a record of the transaction log has no key")
    if read_prefix(key) != TransactionLogKey.record_type:
        return None
    transactional_id = TransactionLogKey.from_bytes(key).transactional_id
    if value is None:
        return transactional_id, None
    return transactional_id, _transaction(transactional_id, TransactionLogValue.from_bytes(value))


def _transaction(transactional_id: str, value: TransactionLogValue) -> Transaction | None:
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise MalformedMessage(f"no transaction has state {value.transaction_status}") from None
    if state is TransactionState.DEAD:
        return None
    if state is TransactionState.PREPARE_EPOCH_FENCE:
        state = TransactionState.PREPARE_ABORT  # Fencing always ends in an abort.
    return Transaction(
        transactional_id=transactional_id,
        state=state,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        started_ms=value.transaction_start_timestamp_ms,
        partitions=_partitions(value),
        client_version=value.client_transaction_version,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
    )


def _partitions(value: TransactionLogValue) -> frozenset[TopicPartition]:
    return frozenset(
        (topic.topic, partition)
        for topic in value.transaction_partitions or ()
        for partition in topic.partition_ids
    )
