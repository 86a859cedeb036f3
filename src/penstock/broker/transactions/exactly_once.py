"""The parts of the broker that make transactions, put together and told the broker's settings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.broker.transactions.producer_ids import ProducerIds
from penstock.cluster.topics.names import CONSUMER_OFFSETS
from penstock.config.broker import BrokerConfig
from penstock.errors import InvalidProducerEpoch, ProducerFenced, ProtocolError
from penstock.groups.coordinator import GroupCoordinator
from penstock.replica.partition import Partition
from penstock.replica.table import PartitionTable
from penstock.transactions.admission import Admission, AdmissionSettings, Verifier
from penstock.transactions.coordinator import CoordinatorSettings, TransactionCoordinator
from penstock.transactions.guards import Guards
from penstock.transactions.markers import LocalMarkers, MarkerSink
from penstock.transactions.transaction import ProducerIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions:
    """What handlers use: who decides, who lets batches in, and who writes markers here."""

    coordinator: TransactionCoordinator
    admission: Admission
    markers: LocalMarkers
    guards: Guards


class Reach(Protocol):
    """How this broker reaches what other brokers lead."""

    def markers(self, local: LocalMarkers) -> MarkerSink: ...

    def verifier(self, local: Verifier) -> Verifier: ...


def transactions_of(
    *,
    partitions: PartitionTable,
    producer_ids: ProducerIds,
    groups: GroupCoordinator,
    config: Callable[[], BrokerConfig],
    now_ms: Callable[[], int],
    reach: Reach | None = None,
) -> Transactions:
    """All parts of one broker; markers in `__consumer_offsets` also tell the groups.

    Without a reach this broker leads all there is.
    """
    guards = Guards()

    def decide_offsets(
        partition: Partition, identity: ProducerIdentity, *, is_commit: bool, marker_offset: int
    ) -> None:
        groups.take_marker(
            partition.partition,
            identity.producer_id,
            is_committed=is_commit,
            marker_offset=marker_offset,
        )

    markers = LocalMarkers(
        partitions, guards=guards, completions={CONSUMER_OFFSETS: decide_offsets}, now_ms=now_ms
    )
    coordinator = TransactionCoordinator(
        producer_ids=producer_ids,
        partitions=partitions,
        markers=markers if reach is None else reach.markers(markers),
        settings=lambda: _coordinator_settings(config()),
        now_ms=now_ms,
    )
    admission = Admission(
        coordinator if reach is None else reach.verifier(coordinator),
        guards=guards,
        settings=lambda: _admission_settings(config()),
        now_ms=now_ms,
    )
    return Transactions(
        coordinator=coordinator, admission=admission, markers=markers, guards=guards
    )


def _coordinator_settings(config: BrokerConfig) -> CoordinatorSettings:
    return CoordinatorSettings(
        timeout_ms_max=config.transaction_max_timeout_ms,
        expiration_ms=config.transactional_id_expiration_ms,
        load_bytes=config.transaction_state_log_load_buffer_size,
    )


def _admission_settings(config: BrokerConfig) -> AdmissionSettings:
    return AdmissionSettings(
        verifies=config.transaction_partition_verification_enable,
        retry_pause_ms=config.add_partitions_to_txn_retry_backoff_ms,
        retry_ms_max=config.add_partitions_to_txn_retry_backoff_max_ms,
    )


def told_to(version: int, error: ProtocolError, *, knows_fencing_from: int) -> ProtocolError:
    """Clients from before there was an error for it know a fenced producer by its epoch."""
    if isinstance(error, ProducerFenced) and version < knows_fencing_from:
        return InvalidProducerEpoch(str(error))
    return error
