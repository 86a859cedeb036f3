"""Transactions step by step, each step from any process: begin, add, note an offset, end.

A transaction is known by its id, producer id and epoch; whoever knows the three may end it. That is
what lets one process write and another decide. Works with brokers that give each transaction its
own epoch (transaction version 2, KIP-890) and with those that do not. Records are produced by
`raw_produce`.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from penstock.client.errors import BrokerUnreachableError, KafkaTimeoutError
from penstock.client.operations.coordinators import (
    CoordinatorKind,
    ask_coordinator,
    ask_coordinators,
    ask_within,
)
from penstock.client.values import Node, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import (
    ProtocolError,
    RetriableError,
    UnknownTopicOrPartition,
    error_for,
)
from penstock.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from penstock.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

T = TypeVar("T")

_FEATURE = "transaction.version"
_OWN_EPOCHS = 2  # The transaction version from which on each transaction has its own epoch.
_FIRST_PAUSE_S = 0.005  # The transaction before is ending: that takes milliseconds.
_INIT_VERSION_MAX = 5
_ADD_PARTITIONS_VERSION_MAX = 3  # Later ones are for brokers.
_OFFSETS_VERSION_MAX, _OFFSETS_VERSION_BEFORE = 5, 4
_END_VERSION_MAX, _END_VERSION_BEFORE = 5, 4


class ProducerIdAndEpoch(NamedTuple):
    """Who a producer is to the partitions."""

    producer_id: int
    producer_epoch: int


class OpenTransaction(NamedTuple):
    """Everything that it takes to write to a transaction or to end it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    has_own_epoch: bool  # False: partitions and groups are added by requests of their own.

    @property
    def identity(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)


def begin(cluster: ClusterClient, transactional_id: str, *, timeout_ms: int) -> OpenTransaction:
    """Take the id over; an open transaction of an earlier owner is aborted by that."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )

    def ask(node: Node) -> OpenTransaction:
        answer = ask_within(
            cluster, node.id, request, InitProducerIdResponse, version_max=_INIT_VERSION_MAX
        )
        _raise_for(answer.error_code, f"transactional id {transactional_id}")
        return OpenTransaction(
            transactional_id,
            answer.producer_id,
            answer.producer_epoch,
            _gives_epochs(cluster, node),
        )

    return _persistently(cluster, transactional_id, CoordinatorKind.TRANSACTION, ask)


def idempotent_identity(cluster: ClusterClient) -> ProducerIdAndEpoch:
    """A producer id without a transactional id, from any broker."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2_147_483_647)

    def attempt() -> ProducerIdAndEpoch:
        answer = cluster.ask_any(request, InitProducerIdResponse)
        _raise_for(answer.error_code, "a producer id")
        return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)

    return persist(cluster, attempt)


def add_partitions(
    cluster: ClusterClient, open_: OpenTransaction, partitions: Sequence[TopicPartition]
) -> None:
    """Say that records for these partitions will come; only for brokers that ask for it."""
    topics: dict[str, list[int]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(at.partition)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=open_.transactional_id,
        v3_and_below_producer_id=open_.producer_id,
        v3_and_below_producer_epoch=open_.producer_epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=its) for name, its in topics.items()
        ],
    )

    def ask(node: Node) -> None:
        answer = ask_within(
            cluster,
            node.id,
            request,
            AddPartitionsToTxnResponse,
            version_max=_ADD_PARTITIONS_VERSION_MAX,
        )
        for topic in answer.results_by_topic_v3_and_below:
            for part in topic.results_by_partition:
                _raise_for(part.partition_error_code, f"{topic.name}-{part.partition_index}")

    _persistently(cluster, open_.transactional_id, CoordinatorKind.TRANSACTION, ask)


def note_offset(
    cluster: ClusterClient,
    open_: OpenTransaction,
    *,
    group_id: str,
    at: TopicPartition,
    offset: int,
    metadata: str,
) -> None:
    """Commit an offset for a group within the transaction: it counts if the transaction does."""
    note_offsets(cluster, open_, group_id=group_id, offsets={at: (offset, metadata)})


def note_offsets(
    cluster: ClusterClient,
    open_: OpenTransaction,
    *,
    group_id: str,
    offsets: Mapping[TopicPartition, tuple[int, str]],
) -> None:
    """The same for many partitions at once, each with its offset and metadata."""
    if not open_.has_own_epoch:
        _add_group(cluster, open_, group_id)
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for at, (offset, metadata) in offsets.items():
        partition = TxnOffsetCommitRequestPartition(
            partition_index=at.partition, committed_offset=offset, committed_metadata=metadata
        )
        topics.setdefault(at.topic, []).append(partition)
    request = TxnOffsetCommitRequest(
        transactional_id=open_.transactional_id,
        group_id=group_id,
        producer_id=open_.producer_id,
        producer_epoch=open_.producer_epoch,
        topics=[
            TxnOffsetCommitRequestTopic(name=name, partitions=its) for name, its in topics.items()
        ],
    )
    version_max = _OFFSETS_VERSION_MAX if open_.has_own_epoch else _OFFSETS_VERSION_BEFORE

    def ask(node: Node) -> None:
        answer = ask_within(
            cluster, node.id, request, TxnOffsetCommitResponse, version_max=version_max
        )
        for topic in answer.topics:
            for part in topic.partitions:
                _raise_for(
                    part.error_code, f"group {group_id}, {topic.name}-{part.partition_index}"
                )

    _persistently(cluster, group_id, CoordinatorKind.GROUP, ask)


def end_all(
    cluster: ClusterClient, transactions: Iterable[OpenTransaction], *, commit: bool
) -> dict[OpenTransaction, ProtocolError | None]:
    """End each of them; an error stands for one that its coordinator did not end so.

    Raises when nobody knows how one of them ends: the caller must ask again later.
    """
    by_id = {open_.transactional_id: open_ for open_ in transactions}
    outcomes: dict[OpenTransaction, ProtocolError | None] = {}

    def ask(node: Node, ids: Sequence[str]) -> dict[str, bool | ProtocolError]:
        return {each: _ask_to_end(cluster, node, by_id[each], commit=commit) for each in ids}

    def attempt() -> None:
        left = [each for each, open_ in by_id.items() if open_ not in outcomes]
        answers = ask_coordinators(cluster, left, CoordinatorKind.TRANSACTION, ask)
        unsettled = None
        for transactional_id, answer in answers.items():
            if isinstance(answer, RetriableError):
                unsettled = answer
            else:
                error = answer if isinstance(answer, ProtocolError) else None
                outcomes[by_id[transactional_id]] = error
        if unsettled is not None:
            raise unsettled

    persist(cluster, attempt)
    return outcomes


def commit_and_go_on(cluster: ClusterClient, open_: OpenTransaction) -> OpenTransaction:
    """Commit, and who the same producer is in its next transaction.

    Raises when it was not committed, or nobody knows: whoever begins anew finds out.
    """

    def ask(node: Node) -> OpenTransaction:
        answer = _ask_for_end(cluster, node, open_, commit=True)
        _raise_for(answer.error_code, f"transactional id {open_.transactional_id}")
        if not open_.has_own_epoch or answer.producer_id < 0:
            return open_
        return open_._replace(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)

    return _persistently(cluster, open_.transactional_id, CoordinatorKind.TRANSACTION, ask)


def _ask_to_end(
    cluster: ClusterClient, node: Node, open_: OpenTransaction, *, commit: bool
) -> bool | ProtocolError:
    answer = _ask_for_end(cluster, node, open_, commit=commit)
    if not answer.error_code:
        return True
    return _error(answer.error_code, f"transactional id {open_.transactional_id}")


def _ask_for_end(
    cluster: ClusterClient, node: Node, open_: OpenTransaction, *, commit: bool
) -> EndTxnResponse:
    request = EndTxnRequest(
        transactional_id=open_.transactional_id,
        producer_id=open_.producer_id,
        producer_epoch=open_.producer_epoch,
        committed=commit,
    )
    version_max = _END_VERSION_MAX if open_.has_own_epoch else _END_VERSION_BEFORE
    return ask_within(cluster, node.id, request, EndTxnResponse, version_max=version_max)


def persist(cluster: ClusterClient, attempt: Callable[[], T]) -> T:
    """Try again, with growing pauses, while the cluster is away or says that it may pass."""
    deadline_s = time.monotonic() + cluster.api_timeout_s
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return attempt()
        except UnknownTopicOrPartition:
            raise
        except (RetriableError, BrokerUnreachableError, KafkaTimeoutError):
            if time.monotonic() + pause_s > deadline_s:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, cluster.retry_backoff_s)


def _persistently(
    cluster: ClusterClient, key: str, kind: CoordinatorKind, ask: Callable[[Node], T]
) -> T:
    return persist(cluster, lambda: ask_coordinator(cluster, key, kind, ask))


def _add_group(cluster: ClusterClient, open_: OpenTransaction, group_id: str) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=open_.transactional_id,
        producer_id=open_.producer_id,
        producer_epoch=open_.producer_epoch,
        group_id=group_id,
    )

    def ask(node: Node) -> None:
        answer = cluster.ask_node(node.id, request, AddOffsetsToTxnResponse)
        _raise_for(answer.error_code, f"group {group_id}")

    _persistently(cluster, open_.transactional_id, CoordinatorKind.TRANSACTION, ask)


def _gives_epochs(cluster: ClusterClient, node: Node) -> bool:
    features = cluster.node_connection(node.id).api_versions.finalized_features
    return any(f.name == _FEATURE and f.max_version_level >= _OWN_EPOCHS for f in features)


def _raise_for(code: int, what: str) -> None:
    if code:
        raise _error(code, what)


def _error(code: int, what: str) -> ProtocolError:
    return error_for(code, f"{what}: {error_for(code)}")
