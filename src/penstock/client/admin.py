"""Admin: what an operator asks of a cluster, as one typed object.

Every method is one of the functions in `operations`, asked of one `ClusterClient`. It works with
any Kafka from 0.11 on; a broker that lacks a request says so in the error.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from penstock.client.errors import ClientError, IllegalStateError
from penstock.client.operations import (
    acls,
    brokers,
    configs,
    delegation_tokens,
    elections,
    group_offsets,
    group_reset,
    groups,
    offsets,
    producers,
    quotas,
    reassignments,
    replica_log_dirs,
    scram_credentials,
    topics,
    transactions,
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
from penstock.client.operations.delegation_tokens import DelegationToken
from penstock.client.operations.elections import ElectionType
from penstock.client.operations.group_reset import ResetTarget
from penstock.client.operations.groups import GroupDescription, GroupListing, MemberDescription
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.operations.quotas import QuotaEntity
from penstock.client.operations.reassignments import PartitionReassignment, Replica
from penstock.client.operations.replica_log_dirs import ReplicaLogDirs
from penstock.client.operations.scram_credentials import NewScramCredential
from penstock.client.operations.topics import (
    PARTITIONS_PER_RESPONSE_MAX,
    NewPartitions,
    NewTopic,
    TopicDescription,
    TopicListing,
)
from penstock.client.operations.transactions import (
    HangingTransaction,
    TransactionDescription,
    TransactionListing,
)
from penstock.client.settings import as_int, dotted
from penstock.client.values import Node, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.security import Security
from penstock.errors import ConfigError, ProtocolError
from penstock.protocol.messages.api_versions import ApiVersionsResponse
from penstock.security.acls.rules import AclBinding, AclBindingFilter
from penstock.security.principals import Principal

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
        self._closed = False
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
        if self._closed:
            raise IllegalStateError("Cannot perform operation after the Admin has been closed.")
        return self._cluster

    @property
    def api_timeout_ms(self) -> int:
        """How long a call may take, default.api.timeout.ms."""
        return self._api_timeout_ms

    def describe_cluster(self) -> ClusterDescription:
        """The cluster id, the controller and the brokers."""
        return brokers.describe_cluster(self.cluster)

    def list_topics(self, *, internal: bool = True) -> list[TopicListing]:
        """All topics by name, with or without Kafka's own."""
        listings = topics.list_topics(self.cluster)
        return [listing for listing in listings if internal or not listing.is_internal]

    def describe_topics(
        self,
        names: Sequence[str],
        *,
        partitions_per_response: int = PARTITIONS_PER_RESPONSE_MAX,
    ) -> dict[str, TopicDescription]:
        """Topics by name; UnknownTopicOrPartition for one that does not exist."""
        return topics.describe_topics(
            self.cluster, names, partitions_per_response=partitions_per_response
        )

    def describe_topics_by_id(self, topic_ids: Sequence[bytes]) -> dict[bytes, TopicDescription]:
        """Topics by id; UnknownTopicId for one that does not exist."""
        return topics.describe_topics_by_id(self.cluster, topic_ids)

    def create_topics(
        self, new: Sequence[NewTopic], *, validate_only: bool = False
    ) -> dict[str, bytes]:
        """Create topics and return their ids; the first that fails is raised."""
        return topics.create_topics(
            self.cluster, new, timeout_ms=self._api_timeout_ms, validate_only=validate_only
        )

    def delete_topics(self, names: Sequence[str] = (), topic_ids: Sequence[bytes] = ()) -> None:
        """Delete topics by name or id; the first that fails is raised."""
        topics.delete_topics(self.cluster, names, topic_ids, timeout_ms=self._api_timeout_ms)

    def create_partitions(
        self, wanted: Mapping[str, NewPartitions], *, validate_only: bool = False
    ) -> None:
        """Give topics more partitions; the first that fails is raised."""
        topics.create_partitions(
            self.cluster, wanted, timeout_ms=self._api_timeout_ms, validate_only=validate_only
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
            self.cluster, resources, synonyms=synonyms, documentation=documentation
        )

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set, delete, append to or subtract from single settings, leaving all others."""
        configs.alter_configs(self.cluster, changes, validate_only=validate_only)

    def list_config_resources(self, kind: ResourceType) -> list[str]:
        """Names of groups or client-metrics subscriptions that have settings of their own."""
        return configs.list_config_resources(self.cluster, kind)

    def describe_client_quotas(
        self, components: Mapping[str, str | None], *, strict: bool = True
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Quotas of entities: `{"user": "alice"}`; None is the default, ANY any name."""
        return quotas.describe_client_quotas(self.cluster, components, strict=strict)

    def alter_client_quotas(
        self,
        entity: QuotaEntity,
        changes: Mapping[str, float | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set quotas of one entity; None removes one."""
        quotas.alter_client_quotas(self.cluster, entity, changes, validate_only=validate_only)

    def describe_acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        """The access rules that a filter means."""
        return acls.describe_acls(self.cluster, wanted)

    def create_acls(self, rules: Sequence[AclBinding]) -> None:
        """Let rules hold from now on."""
        acls.create_acls(self.cluster, rules)

    def delete_acls(self, filters: Iterable[AclBindingFilter]) -> list[AclBinding]:
        """Remove the rules that filters mean; which they were."""
        return acls.delete_acls(self.cluster, list(filters))

    def describe_user_scram_credentials(
        self, users: Collection[str] = ()
    ) -> dict[str, dict[str, int]]:
        """The iterations of each SCRAM mechanism by user; of all users if none is named."""
        return scram_credentials.describe_user_scram_credentials(self.cluster, users)

    def alter_user_scram_credentials(
        self,
        user: str,
        *,
        set_to: Sequence[NewScramCredential] = (),
        delete: Collection[str] = (),
    ) -> None:
        """Set passwords of one user by SCRAM mechanism, and remove others."""
        scram_credentials.alter_user_scram_credentials(
            self.cluster, user, set_to=set_to, delete=delete
        )

    def create_delegation_token(
        self,
        *,
        owner: Principal | None = None,
        renewers: Sequence[Principal] = (),
        max_lifetime_ms: int = -1,
    ) -> DelegationToken:
        """A token that makes its bearer the owner; without one it is one's own."""
        return delegation_tokens.create_delegation_token(
            self.cluster, owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms
        )

    def renew_delegation_token(self, hmac: bytes, *, period_ms: int = -1) -> int:
        """Let a token live on; when it ends now, in ms."""
        return delegation_tokens.renew_delegation_token(self.cluster, hmac, period_ms=period_ms)

    def expire_delegation_token(self, hmac: bytes, *, period_ms: int = -1) -> int:
        """Set the end of a token, at once for a negative period; when it ends, in ms."""
        return delegation_tokens.expire_delegation_token(self.cluster, hmac, period_ms=period_ms)

    def describe_delegation_tokens(
        self, owners: Iterable[Principal] | None = None
    ) -> list[DelegationToken]:
        """The tokens that one may see; of some owners if any are named."""
        return delegation_tokens.describe_delegation_tokens(self.cluster, owners)

    def list_groups(
        self, *, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[GroupListing]:
        """Groups of all kinds by name; of some states and types if any are given."""
        return groups.list_groups(self.cluster, states=states, types=types)

    def list_consumer_groups(
        self, *, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[GroupListing]:
        """The groups whose members are consumers, of whichever protocol."""
        return [
            one for one in self.list_groups(states=states, types=types) if one.is_consumer_group
        ]

    def describe_consumer_groups(
        self, group_ids: Iterable[str]
    ) -> dict[str, GroupDescription | ProtocolError]:
        """State, coordinator and members by group; GroupIdNotFound for one that does not exist."""
        return groups.describe_consumer_groups(self.cluster, group_ids)

    def delete_consumer_groups(self, group_ids: Iterable[str]) -> dict[str, ProtocolError | None]:
        """Forget groups and their offsets; what kept a group, or None when it is gone."""
        return groups.delete_groups(self.cluster, group_ids)

    def remove_members_from_consumer_group(
        self, group_id: str, members: Sequence[MemberDescription], *, reason: str
    ) -> None:
        """Make members of a classic group leave; the first that cannot be removed is raised."""
        groups.remove_members(self.cluster, group_id, members, reason=reason)

    def list_consumer_group_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Everything that a group has committed."""
        return group_offsets.group_offsets(self.cluster, group_id)

    def alter_consumer_group_offsets(
        self, group_id: str, new: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Commit offsets for a group that has no members; the first that fails is raised."""
        group_offsets.alter_group_offsets(self.cluster, group_id, new)

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ProtocolError | None]:
        """Forget offsets of a group; what kept each one, or None."""
        return group_offsets.delete_group_offsets(self.cluster, group_id, partitions)

    def reset_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition] | None = None,
        *,
        spec: OffsetSpec | None = None,
        offset: int | None = None,
        time_ms: int | None = None,
        shift_by: int | None = None,
    ) -> dict[TopicPartition, int]:
        """Let a group without members read from elsewhere; returns its new offsets.

        Give one of: `spec` (EARLIEST, LATEST), an `offset`, a time, or by how much to shift what is
        committed. An offset beyond what a partition has becomes its first or its end. Without
        partitions, those are meant that the group has committed.
        """
        target = ResetTarget(spec=spec, offset=offset, time_ms=time_ms, shift_by=shift_by)
        return group_reset.reset_group_offsets(
            self.cluster, group_id, target, partitions, timeout_ms=self._api_timeout_ms
        )

    def list_transactions(
        self,
        *,
        producer_ids: Collection[int] = (),
        longer_than_ms: int = -1,
        id_pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Transactional ids and their states; of some producers, ages and names if given."""
        return transactions.list_transactions(
            self.cluster,
            producer_ids=producer_ids,
            longer_than_ms=longer_than_ms,
            id_pattern=id_pattern,
        )

    def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> dict[str, TransactionDescription | ProtocolError]:
        """State, producer and partitions by id; TransactionalIdNotFound for an unknown one."""
        return transactions.describe_transactions(self.cluster, transactional_ids)

    def abort_transaction(self, hanging: HangingTransaction) -> None:
        """Write the abort marker into one partition, for a transaction that nobody will end."""
        transactions.abort_transaction(self.cluster, hanging)

    def fence_producers(self, transactional_ids: Iterable[str]) -> None:
        """Take ids away from their producers; a transaction under way is aborted by that."""
        transactions.fence_producers(self.cluster, transactional_ids)

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, OffsetAndTimestamp | ProtocolError | None]:
        """Offsets for a time in ms or an OffsetSpec; None: no record is that late."""
        return offsets.list_offsets(
            self.cluster, wanted, timeout_ms=self._api_timeout_ms, read_committed=read_committed
        )

    def delete_records(
        self, before: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | ProtocolError]:
        """Cut off the records before an offset (-1: all); the new first offset by partition."""
        return offsets.delete_records(self.cluster, before, timeout_ms=self._api_timeout_ms)

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None
    ) -> dict[int, list[LogDirDescription]]:
        """Data directories and the partitions in them, by broker."""
        return brokers.describe_log_dirs(self.cluster, broker_ids)

    def describe_replica_log_dirs(
        self, replicas: Iterable[Replica]
    ) -> dict[Replica, ReplicaLogDirs]:
        """In which directory replicas are, and to which they are being moved."""
        return replica_log_dirs.describe_replica_log_dirs(self.cluster, replicas)

    def alter_replica_log_dirs(
        self, wanted: Mapping[Replica, str]
    ) -> dict[Replica, ProtocolError | None]:
        """Move replicas to other directories of their brokers; None: the move began."""
        return reassignments.alter_replica_log_dirs(self.cluster, wanted)

    def alter_partition_reassignments(
        self,
        wanted: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> dict[TopicPartition, ProtocolError | None]:
        """Give partitions other replicas, or (None) stop moving them; None: the order is taken."""
        return reassignments.alter_partition_reassignments(
            self.cluster,
            wanted,
            timeout_ms=self._api_timeout_ms,
            allow_replication_factor_change=allow_replication_factor_change,
        )

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The moves under way, of these partitions or of all."""
        return reassignments.list_partition_reassignments(
            self.cluster, partitions, timeout_ms=self._api_timeout_ms
        )

    def elect_leaders(
        self, election: ElectionType, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, ProtocolError | None]:
        """Hold elections for partitions or (None) for all; None: a new leader leads."""
        return elections.elect_leaders(
            self.cluster, election, partitions, timeout_ms=self._api_timeout_ms
        )

    def describe_producers(
        self, partitions: Sequence[TopicPartition], *, broker_id: int | None = None
    ) -> dict[TopicPartition, list[ProducerDescription]]:
        """The idempotent producers that partitions remember, at their leaders or one broker."""
        return producers.describe_producers(self.cluster, partitions, broker_id=broker_id)

    def api_versions(self) -> dict[Node, ApiVersionsResponse | ClientError]:
        """What each broker speaks; an error stands for one that does not answer."""
        return brokers.api_versions(self.cluster)

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
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
