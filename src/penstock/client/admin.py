"""Admin: what an operator asks of a cluster, as one typed object.

Every method is one of the functions in `operations`, asked of one `ClusterClient`. It works with
any Kafka from 0.11 on; a broker that lacks a request says so in the error.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from penstock.client.cluster import ClusterClient
from penstock.client.errors import ClientError
from penstock.client.operations import (
    brokers,
    configs,
    elections,
    offsets,
    quotas,
    reassignments,
    topics,
)
from penstock.client.operations.brokers import (
    ClusterDescription,
    LogDirDescription,
    ProducerDescription,
)
from penstock.client.operations.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from penstock.client.operations.elections import ElectionType
from penstock.client.operations.quotas import QuotaEntity
from penstock.client.operations.reassignments import PartitionReassignment, Replica
from penstock.client.operations.topics import (
    PARTITIONS_PER_RESPONSE_MAX,
    NewPartitions,
    NewTopic,
    TopicDescription,
    TopicListing,
)
from penstock.client.security import Security
from penstock.client.settings import as_int, dotted
from penstock.client.values import Node, OffsetAndTimestamp, TopicPartition
from penstock.errors import ConfigError, ProtocolError
from penstock.protocol.messages.api_versions import ApiVersionsResponse

_DEFAULTS: dict[str, object] = {
    "client.id": "penstock-admin",
    "request.timeout.ms": 30_000,
    "default.api.timeout.ms": 60_000,
    "retry.backoff.ms": 100,
}


class Admin:
    """A blocking client for administration. Not for several threads at once.

    `Admin({"bootstrap.servers": "localhost:9092"})` or `Admin(bootstrap_servers=...)`.
    """

    def __init__(self, config: Mapping[str, object] | None = None, /, **settings: object) -> None:
        given = {**(config or {}), **{dotted(name): value for name, value in settings.items()}}
        if not given.get("bootstrap.servers"):
            raise ConfigError("bootstrap.servers is missing: write host:port of a broker")
        chosen = {**_DEFAULTS, **given}
        self._api_timeout_ms = as_int("default.api.timeout.ms", chosen["default.api.timeout.ms"])
        self._cluster = ClusterClient(
            str(given["bootstrap.servers"]),
            client_id=str(chosen["client.id"]),
            request_timeout_ms=as_int("request.timeout.ms", chosen["request.timeout.ms"]),
            api_timeout_ms=self._api_timeout_ms,
            retry_backoff_ms=as_int("retry.backoff.ms", chosen["retry.backoff.ms"]),
            security=Security.from_settings(given),
        )

    @property
    def cluster(self) -> ClusterClient:
        """The connections, for a request that has no method here."""
        return self._cluster

    def describe_cluster(self) -> ClusterDescription:
        """The cluster id, the controller and the brokers."""
        return brokers.describe_cluster(self._cluster)

    def list_topics(self, *, internal: bool = True) -> list[TopicListing]:
        """All topics by name, with or without Kafka's own."""
        listings = topics.list_topics(self._cluster)
        return [listing for listing in listings if internal or not listing.is_internal]

    def describe_topics(
        self,
        names: Sequence[str],
        *,
        partitions_per_response: int = PARTITIONS_PER_RESPONSE_MAX,
    ) -> dict[str, TopicDescription]:
        """Topics by name; UnknownTopicOrPartition for one that does not exist."""
        return topics.describe_topics(
            self._cluster, names, partitions_per_response=partitions_per_response
        )

    def describe_topics_by_id(self, topic_ids: Sequence[bytes]) -> dict[bytes, TopicDescription]:
        """Topics by id; UnknownTopicId for one that does not exist."""
        return topics.describe_topics_by_id(self._cluster, topic_ids)

    def create_topics(
        self, new: Sequence[NewTopic], *, validate_only: bool = False
    ) -> dict[str, bytes]:
        """Create topics and return their ids; the first that fails is raised."""
        return topics.create_topics(
            self._cluster, new, timeout_ms=self._api_timeout_ms, validate_only=validate_only
        )

    def delete_topics(self, names: Sequence[str] = (), topic_ids: Sequence[bytes] = ()) -> None:
        """Delete topics by name or id; the first that fails is raised."""
        topics.delete_topics(self._cluster, names, topic_ids, timeout_ms=self._api_timeout_ms)

    def create_partitions(
        self, wanted: Mapping[str, NewPartitions], *, validate_only: bool = False
    ) -> None:
        """Give topics more partitions; the first that fails is raised."""
        topics.create_partitions(
            self._cluster, wanted, timeout_ms=self._api_timeout_ms, validate_only=validate_only
        )

    def describe_configs(
        self,
        resources: Sequence[ConfigResource],
        *,
        synonyms: bool = True,
        documentation: bool = False,
    ) -> dict[ConfigResource, list[ConfigEntry]]:
        """Settings with their sources."""
        return configs.describe_configs(
            self._cluster, resources, synonyms=synonyms, documentation=documentation
        )

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set, delete, append to or subtract from single settings, leaving all others."""
        configs.alter_configs(self._cluster, changes, validate_only=validate_only)

    def list_config_resources(self, kind: ResourceType) -> list[str]:
        """Names of groups or client-metrics subscriptions that have settings of their own."""
        return configs.list_config_resources(self._cluster, kind)

    def describe_client_quotas(
        self, components: Mapping[str, str | None], *, strict: bool = True
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Quotas of entities: `{"user": "alice"}`; None is the default, ANY any name."""
        return quotas.describe_client_quotas(self._cluster, components, strict=strict)

    def alter_client_quotas(
        self,
        entity: QuotaEntity,
        changes: Mapping[str, float | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set quotas of one entity; None removes one."""
        quotas.alter_client_quotas(self._cluster, entity, changes, validate_only=validate_only)

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, OffsetAndTimestamp | ProtocolError | None]:
        """Offsets for a time in ms or an OffsetSpec; None: no record is that late."""
        return offsets.list_offsets(
            self._cluster, wanted, timeout_ms=self._api_timeout_ms, read_committed=read_committed
        )

    def delete_records(
        self, before: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | ProtocolError]:
        """Cut off the records before an offset (-1: all); the new first offset by partition."""
        return offsets.delete_records(self._cluster, before, timeout_ms=self._api_timeout_ms)

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None
    ) -> dict[int, list[LogDirDescription]]:
        """Data directories and the partitions in them, by broker."""
        return brokers.describe_log_dirs(self._cluster, broker_ids)

    def alter_replica_log_dirs(
        self, wanted: Mapping[Replica, str]
    ) -> dict[Replica, ProtocolError | None]:
        """Move replicas to other directories of their brokers; None: the move began."""
        return reassignments.alter_replica_log_dirs(self._cluster, wanted)

    def alter_partition_reassignments(
        self,
        wanted: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> dict[TopicPartition, ProtocolError | None]:
        """Give partitions other replicas, or (None) stop moving them; None: the order is taken."""
        return reassignments.alter_partition_reassignments(
            self._cluster,
            wanted,
            timeout_ms=self._api_timeout_ms,
            allow_replication_factor_change=allow_replication_factor_change,
        )

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The moves under way, of these partitions or of all."""
        return reassignments.list_partition_reassignments(
            self._cluster, partitions, timeout_ms=self._api_timeout_ms
        )

    def elect_leaders(
        self, election: ElectionType, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, ProtocolError | None]:
        """Hold elections for partitions or (None) for all; None: a new leader leads."""
        return elections.elect_leaders(
            self._cluster, election, partitions, timeout_ms=self._api_timeout_ms
        )

    def describe_producers(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, list[ProducerDescription]]:
        """The idempotent producers that partitions remember."""
        return brokers.describe_producers(self._cluster, partitions)

    def api_versions(self) -> dict[Node, ApiVersionsResponse | ClientError]:
        """What each broker speaks; an error stands for one that does not answer."""
        return brokers.api_versions(self._cluster)

    def close(self) -> None:
        """Close all connections."""
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
