"""Transactions: list and describe them, end one that hangs or that nobody will end."""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from penstock.client.operations.coordinators import (
    CoordinatorKind,
    ask_coordinator,
    ask_coordinators,
    ask_while_loading,
)
from penstock.client.values import Node, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    NotCoordinator,
    ProtocolError,
    UnsupportedVersion,
    error_for,
)
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from penstock.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from penstock.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_DURATION_FROM, _PATTERN_FROM = 1, 2  # Versions of ListTransactions that filter so.
_FENCING_TIMEOUT_MS = 1  # Whoever fences begins no transaction of its own.


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """A transaction as a list shows it."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """A transaction, its producer and the partitions that still wait for its end."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None  # None: none is under way.
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HangingTransaction:
    """Enough to end a transaction in one partition, whatever its coordinator knows."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


def list_transactions(
    cluster: ClusterClient,
    *,
    producer_ids: Collection[int] = (),
    longer_than_ms: int = -1,
    id_pattern: str | None = None,
) -> list[TransactionListing]:
    """The transactions of all coordinators by id; of some producers, ages and names if given."""
    cluster.metadata([])
    request = ListTransactionsRequest(
        producer_id_filters=sorted(producer_ids),
        duration_filter=longer_than_ms,
        transactional_id_pattern=id_pattern,
    )
    needed = _PATTERN_FROM if id_pattern else _DURATION_FROM if longer_than_ms >= 0 else 0
    listed: list[TransactionListing] = []
    for node_id in sorted(cluster.nodes):
        _check_filters(cluster, node_id, needed)
        listed += ask_while_loading(cluster, partial(_listed_by, cluster, node_id, request))
    return sorted(listed, key=lambda listing: listing.transactional_id)


def describe_transactions(
    cluster: ClusterClient, transactional_ids: Iterable[str]
) -> dict[str, TransactionDescription | ProtocolError]:
    """Transactions by id; an error stands for one that its coordinator does not know."""

    def ask(node: Node, keys: Sequence[str]) -> dict[str, TransactionDescription | ProtocolError]:
        request = DescribeTransactionsRequest(transactional_ids=list(keys))
        answer = cluster.ask_node(node.id, request, DescribeTransactionsResponse)
        return {
            each.transactional_id: (
                error_for(each.error_code) if each.error_code else _description(each, node)
            )
            for each in answer.transaction_states
        }

    return ask_coordinators(cluster, transactional_ids, CoordinatorKind.TRANSACTION, ask)


def abort_transaction(cluster: ClusterClient, hanging: HangingTransaction) -> None:
    """Write the abort marker into one partition, as its coordinator would have."""
    partition = hanging.partition
    marker = WritableTxnMarker(
        producer_id=hanging.producer_id,
        producer_epoch=hanging.producer_epoch,
        coordinator_epoch=hanging.coordinator_epoch,
        transaction_result=False,
        topics=[
            WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
        ],
    )
    leader = cluster.leaders([partition])[partition]
    request = WriteTxnMarkersRequest(markers=[marker])
    answer = cluster.ask_node(leader, request, WriteTxnMarkersResponse)
    for result in answer.markers:
        for topic in result.topics:
            for part in topic.partitions:
                if part.error_code:
                    raise error_for(part.error_code)


def fence_producers(cluster: ClusterClient, transactional_ids: Iterable[str]) -> None:
    """Take ids away from their producers; a transaction under way is aborted by that."""
    for transactional_id in transactional_ids:
        _fence(cluster, transactional_id)


def _listed_by(
    cluster: ClusterClient, node_id: int, request: ListTransactionsRequest
) -> list[TransactionListing]:
    answer = cluster.ask_node(node_id, request, ListTransactionsResponse)
    if answer.error_code:
        raise error_for(answer.error_code)
    return [
        TransactionListing(
            transactional_id=each.transactional_id,
            coordinator_id=node_id,
            producer_id=each.producer_id,
            state=each.transaction_state,
        )
        for each in answer.transaction_states
    ]


def _fence(cluster: ClusterClient, transactional_id: str) -> None:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=_FENCING_TIMEOUT_MS
    )
    deadline_s = time.monotonic() + cluster.api_timeout_s

    def ask(node: Node) -> int:
        answer = cluster.ask_node(node.id, request, InitProducerIdResponse)
        if answer.error_code in (NotCoordinator.code, CoordinatorLoadInProgress.code):
            raise error_for(answer.error_code)
        return answer.error_code

    while code := ask_coordinator(cluster, transactional_id, CoordinatorKind.TRANSACTION, ask):
        # The transaction under way is being aborted: the id is ours when that is done.
        if code != ConcurrentTransactions.code or time.monotonic() > deadline_s:
            raise error_for(code)
        time.sleep(cluster.retry_backoff_s)


def _check_filters(cluster: ClusterClient, node_id: int, needed: int) -> None:
    spoken = cluster.node_connection(node_id).versions(ApiKey.LIST_TRANSACTIONS)
    if spoken and spoken[-1] < needed:
        raise UnsupportedVersion(f"Broker {node_id} is too old to list transactions so.")


def _description(each: TransactionState, node: Node) -> TransactionDescription:
    return TransactionDescription(
        transactional_id=each.transactional_id,
        coordinator_id=node.id,
        producer_id=each.producer_id,
        producer_epoch=each.producer_epoch,
        state=each.transaction_state,
        timeout_ms=each.transaction_timeout_ms,
        started_ms=each.transaction_start_time_ms if each.transaction_start_time_ms >= 0 else None,
        partitions=tuple(
            TopicPartition(topic.topic, partition)
            for topic in each.topics
            for partition in topic.partitions
        ),
    )
