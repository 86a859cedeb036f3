"""Transactions that no coordinator will end: open in a partition for long, and nobody's.

A partition remembers the producer that opened one. If its coordinator does not know the producer,
or does not count the partition among those it will mark, the transaction stays open for ever and
holds back everyone who reads only what is committed.
"""

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.cli.progress import Progress
from penstock.cli.sentences import sentence
from penstock.cli.tools.transactions.table import table
from penstock.client.admin import Admin
from penstock.client.operations.brokers import ProducerDescription
from penstock.client.operations.producers import partition_producers
from penstock.client.operations.transactions import (
    TransactionDescription,
)
from penstock.client.values import TopicPartition
from penstock.errors import CommandError, ProtocolError, TransactionalIdNotFound

HEADER = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
_MINUTE_MS = 60_000


class PartitionTransaction(NamedTuple):
    """A producer's transaction in one partition, not ended there yet."""

    partition: TopicPartition
    producer: ProducerDescription


def find_hanging(admin: Admin, options: argparse.Namespace) -> None:
    """Search partitions for transactions that hang, and print them."""
    partitions = _to_search(admin, options)
    now_ms = int(time.time() * 1000)
    older_than_ms = options.max_transaction_timeout * _MINUTE_MS
    candidates: list[PartitionTransaction] = []
    with Progress("partitions", len(partitions)) as progress:
        for found in partition_producers(admin.cluster, partitions, broker_id=options.broker_id):
            progress.step(len(found))
            candidates += _long_open(found, now_ms=now_ms, older_than_ms=older_than_ms)
    rows = [_row(one, now_ms=now_ms) for one in _hanging(admin, candidates)]
    print(table(HEADER, rows))


def without_end(
    candidates: Iterable[PartitionTransaction],
    ids: Mapping[int, str],
    described: Mapping[str, TransactionDescription | None],
) -> list[PartitionTransaction]:
    """Those whose end no coordinator is going to write.

    `ids` has the transactional id of each producer that a coordinator knows.
    """
    found: list[PartitionTransaction] = []
    for one in candidates:
        name = ids.get(one.producer.producer_id)
        transaction = None if name is None else described.get(name)
        if transaction is None or one.partition not in transaction.partitions:
            found.append(one)
    return found


def _to_search(admin: Admin, options: argparse.Namespace) -> list[TopicPartition]:
    if options.broker_id is not None:
        admin.cluster.node_connection(options.broker_id)  # Raises if there is no such broker.
    if options.topic is not None and options.partition is not None:
        return [TopicPartition(options.topic, options.partition)]
    if options.topic is not None:
        topics = [options.topic]
    else:
        topics = [topic.name for topic in admin.list_topics(internal=False)]
    return [
        TopicPartition(name, part.partition)
        for name, topic in admin.describe_topics(topics).items()
        for part in topic.partitions
        if options.broker_id is None
        or options.broker_id in {replica.id for replica in part.replicas}
    ]


def _long_open(
    found: Mapping[TopicPartition, Sequence[ProducerDescription] | ProtocolError],
    *,
    now_ms: int,
    older_than_ms: int,
) -> list[PartitionTransaction]:
    candidates: list[PartitionTransaction] = []
    for at, producers in found.items():
        if isinstance(producers, ProtocolError):
            raise CommandError(f"Failed to describe producers of {at}: {sentence(producers)}")
        candidates += [
            PartitionTransaction(at, producer)
            for producer in producers
            if producer.transaction_start_offset is not None
            and now_ms - producer.last_timestamp_ms > older_than_ms
        ]
    return candidates


def _hanging(
    admin: Admin, candidates: Sequence[PartitionTransaction]
) -> list[PartitionTransaction]:
    if not candidates:
        return []
    wanted = {one.producer.producer_id for one in candidates}
    listed = admin.list_transactions(producer_ids=wanted)
    ids = {each.producer_id: each.transactional_id for each in listed}
    described: dict[str, TransactionDescription | None] = {}
    for name, result in admin.describe_transactions(ids.values()).items():
        if isinstance(result, TransactionalIdNotFound):
            described[name] = None  # It expired between the two questions.
        elif isinstance(result, ProtocolError):
            raise CommandError(f"Failed to describe transaction `{name}`: {sentence(result)}")
        else:
            described[name] = result
    return without_end(candidates, ids, described)


def _row(one: PartitionTransaction, *, now_ms: int) -> tuple[object, ...]:
    producer = one.producer
    return (
        one.partition.topic,
        one.partition.partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.transaction_start_offset,
        producer.last_timestamp_ms,
        (now_ms - producer.last_timestamp_ms) // _MINUTE_MS,
    )
