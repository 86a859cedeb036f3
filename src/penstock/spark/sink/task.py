"""One task of a write, on a worker: rows in, a transaction or plainly stored records out.

Connections outlive a task, because Spark uses a Python worker again for the next one. Anything that
goes wrong closes them, so that the next task begins afresh.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import cluster_for
from penstock.client.wire.raw_produce import RawProducer
from penstock.client.wire.transaction_control import (
    OpenTransaction,
    ProducerIdAndEpoch,
    add_partitions,
    begin,
    end_all,
    idempotent_identity,
)
from penstock.errors import InvalidTxnTimeout, PenstockError
from penstock.spark.columns.encode_batches import BatchBuilder
from penstock.spark.sink.rows import RowSender
from penstock.spark.sink.schema import RecordColumns
from penstock.spark.sink.settings import SinkSettings
from penstock.spark.sink.transactional import DeliveryError

_clusters: dict[tuple[tuple[str, str], ...], ClusterClient] = {}


@contextmanager
def connected(settings: SinkSettings) -> Iterator[ClusterClient]:
    """This process's connections for these settings; closed when the block fails."""
    name = tuple(sorted(settings.connection.items()))
    cluster = _clusters.get(name)
    if cluster is None:
        cluster = _clusters[name] = cluster_for(settings.connection)
    try:
        yield cluster
    except BaseException:
        _clusters.pop(name, None)
        cluster.close()
        raise


def first_rows(batches: Iterator[Any]) -> Iterator[Any] | None:
    """The same batches, once it is known that there are rows; None: there are none."""
    for batch in batches:
        if batch.num_rows:
            return chain((batch,), batches)
    return None


def write_plainly(
    cluster: ClusterClient,
    settings: SinkSettings,
    columns: RecordColumns,
    topic: str | None,
    batches: Iterable[Any],
) -> int:
    """Store the rows at least once; how many there were."""
    identity = idempotent_identity(cluster) if settings.is_idempotent else None
    producer = RawProducer(cluster, settings.produce)
    sender = _sender(producer, settings, columns, topic, identity, is_transactional=False)
    try:
        sender.send_all(batches)
    finally:
        producer.close()
    return sender.row_count


def write_in_transaction(
    cluster: ClusterClient,
    settings: SinkSettings,
    columns: RecordColumns,
    topic: str | None,
    batches: Iterable[Any],
    *,
    transactional_id: str,
    mark: Callable[[OpenTransaction, str], None],
) -> tuple[OpenTransaction, str]:
    """Store the rows in a transaction and leave it open; also one of the topics written to.

    `mark` is called once all rows are stored, to add what else belongs to the transaction.
    """
    open_ = _begin(cluster, transactional_id, settings.transaction_timeout_ms)
    producer = RawProducer(
        cluster,
        settings.produce,
        transactional_id=transactional_id,
        add_partitions=None
        if open_.has_own_epoch
        else lambda new: add_partitions(cluster, open_, new),
    )
    sender = _sender(producer, settings, columns, topic, open_.identity, is_transactional=True)
    try:
        sender.send_all(batches)
        assert sender.a_topic is not None
        mark(open_, sender.a_topic)
    except BaseException:
        producer.close()
        _abort(cluster, open_)
        raise
    producer.close()
    return open_, sender.a_topic


def _begin(cluster: ClusterClient, transactional_id: str, timeout_ms: int) -> OpenTransaction:
    try:
        return begin(cluster, transactional_id, timeout_ms=timeout_ms)
    except InvalidTxnTimeout as error:
        raise DeliveryError(
            f"The broker does not allow transactions of kafka.transaction.timeout.ms={timeout_ms}: "
            "set this option to its transaction.max.timeout.ms at most, or raise that. A "
            "transaction stays open from the first row of a task to the commit of its batch."
        ) from error


def _abort(cluster: ClusterClient, open_: OpenTransaction) -> None:
    """Do not make readers wait for a failed attempt; the next one would abort it anyway."""
    try:
        end_all(cluster, [open_], commit=False)
    except PenstockError:
        return  # The failure that led here is the one to tell.


def _sender(
    producer: RawProducer,
    settings: SinkSettings,
    columns: RecordColumns,
    topic: str | None,
    identity: ProducerIdAndEpoch | None,
    *,
    is_transactional: bool,
) -> RowSender:
    builder = BatchBuilder(
        batch_bytes=settings.batch_bytes,
        record_bytes_max=settings.produce.request_bytes_max,
        codec=settings.codec,
        level=settings.level,
        identity=identity,
        is_transactional=is_transactional,
    )
    return RowSender(producer, builder, settings, columns, topic)
