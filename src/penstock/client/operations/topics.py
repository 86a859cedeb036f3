"""Topics: list, describe, create, delete, add partitions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.client.values import Node
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import (
    ErrorCode,
    InvalidMetadata,
    UnknownTopicId,
    UnknownTopicOrPartition,
    error_for,
)
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from penstock.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)
from penstock.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.primitives import ZERO_UUID

BROKER_DEFAULT = -1  # Partitions or replicas left to the broker's own settings.
PARTITIONS_PER_RESPONSE_MAX = 2000
_NAMED_BY_ID = 6  # DeleteTopics takes ids from this version on, and names in another field.


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create; what is not said is left to the broker's defaults."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartitions:
    """How many partitions a topic shall have, and where the added ones go."""

    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicListing:
    """A topic by name and id."""

    name: str
    topic_id: bytes
    is_internal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """A partition: who leads, who replicates, who is in sync."""

    partition: int
    leader: Node | None
    leader_epoch: int
    replicas: tuple[Node, ...]
    isr: tuple[Node, ...]
    offline: tuple[Node, ...]
    elr: tuple[int, ...] | None  # None: the broker does not say.
    last_known_elr: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic with its partitions, in order."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


def list_topics(cluster: ClusterClient) -> list[TopicListing]:
    """All topics, by name."""
    topics = [t for t in cluster.metadata().topics if not t.error_code]
    listings = [
        TopicListing(name=t.name or "", topic_id=t.topic_id, is_internal=t.is_internal)
        for t in topics
    ]
    return sorted(listings, key=lambda listing: listing.name)


def describe_topics(
    cluster: ClusterClient,
    names: Sequence[str],
    *,
    partitions_per_response: int = PARTITIONS_PER_RESPONSE_MAX,
) -> dict[str, TopicDescription]:
    """Topics by name; raises UnknownTopicOrPartition for one that does not exist."""
    if not names:
        return {}
    nodes = cluster.metadata([])  # For addresses: the newer request answers only with ids.
    if not nodes.brokers:
        raise InvalidMetadata("The cluster has no broker now.")
    if cluster.any_connection().versions(ApiKey.DESCRIBE_TOPIC_PARTITIONS):
        return _describe_in_pages(cluster, sorted(names), partitions_per_response)
    answer = cluster.metadata(names)
    return {t.name or "": _from_metadata(cluster, t) for t in answer.topics if _checked(t)}


def describe_topics_by_id(
    cluster: ClusterClient, topic_ids: Sequence[bytes]
) -> dict[bytes, TopicDescription]:
    """Topics by id; raises UnknownTopicId for one that does not exist."""
    cluster.metadata([])
    wanted = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    answer = cluster.ask_any(request, MetadataResponse)
    for topic in answer.topics:
        if topic.error_code:
            raise error_for(topic.error_code, "The topic id does not exist.")
    if len(answer.topics) != len(topic_ids):
        raise UnknownTopicId("The topic id does not exist.")
    names = [topic.name or "" for topic in answer.topics]
    return {d.topic_id: d for d in describe_topics(cluster, names).values()}


def create_topics(
    cluster: ClusterClient,
    topics: Sequence[NewTopic],
    *,
    timeout_ms: int,
    validate_only: bool = False,
) -> dict[str, bytes]:
    """Create topics; their ids. All are tried; the first that fails is raised."""
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    answer = cluster.ask_controller(
        request, CreateTopicsResponse, code_of=lambda a: _first(t.error_code for t in a.topics)
    )
    for result in answer.topics:
        if result.error_code:
            raise error_for(result.error_code, result.error_message or "")
    return {result.name: result.topic_id for result in answer.topics}


def delete_topics(
    cluster: ClusterClient,
    names: Sequence[str] = (),
    topic_ids: Sequence[bytes] = (),
    *,
    timeout_ms: int,
) -> None:
    """Delete topics. All are tried; the first that fails is raised."""
    if cluster.any_connection().versions(ApiKey.DELETE_TOPICS)[-1] >= _NAMED_BY_ID:
        states = [DeleteTopicState(name=name) for name in names]
        states += [DeleteTopicState(name=None, topic_id=topic_id) for topic_id in topic_ids]
        request = DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
    else:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
    answer = cluster.ask_controller(
        request, DeleteTopicsResponse, code_of=lambda a: _first(t.error_code for t in a.responses)
    )
    for result in answer.responses:
        if result.error_code:
            message = result.error_message or f"Topic {result.name} could not be deleted."
            raise error_for(result.error_code, message)


def create_partitions(
    cluster: ClusterClient,
    topics: Mapping[str, NewPartitions],
    *,
    timeout_ms: int,
    validate_only: bool = False,
) -> None:
    """Add partitions. All topics are tried; the first that fails is raised."""
    request = CreatePartitionsRequest(
        topics=[_enlarged(name, wanted) for name, wanted in topics.items()],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    answer = cluster.ask_controller(
        request,
        CreatePartitionsResponse,
        code_of=lambda a: _first(t.error_code for t in a.results),
    )
    for result in answer.results:
        if result.error_code:
            raise error_for(result.error_code, result.error_message or "")


def _first(codes: Iterable[int]) -> int:
    return next(iter(codes), 0)


def _creatable(topic: NewTopic) -> CreatableTopic:
    placed = bool(topic.assignments)
    return CreatableTopic(
        name=topic.name,
        num_partitions=BROKER_DEFAULT if placed else topic.partitions,
        replication_factor=BROKER_DEFAULT if placed else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.assignments.items()
        ],
        configs=[CreatableTopicConfig(name=k, value=v) for k, v in topic.configs.items()],
    )


def _enlarged(name: str, wanted: NewPartitions) -> CreatePartitionsTopic:
    assignments = None
    if wanted.assignments is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=list(b)) for b in wanted.assignments]
    return CreatePartitionsTopic(name=name, count=wanted.total_count, assignments=assignments)


def _checked(topic: MetadataResponseTopic) -> bool:
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise UnknownTopicOrPartition(f"Topic {topic.name!r} does not exist.")
    if topic.error_code:
        raise error_for(topic.error_code, f"Topic {topic.name}: error {topic.error_code}")
    return True


def _describe_in_pages(
    cluster: ClusterClient, names: Sequence[str], limit: int
) -> dict[str, TopicDescription]:
    """Follow the cursor: a large topic comes in several answers."""
    found: dict[str, TopicDescription] = {}
    cursor: Cursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        answer = cluster.ask_any(request, DescribeTopicPartitionsResponse)
        for topic in answer.topics:
            name = topic.name or ""
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopicOrPartition(f"Topic {name!r} does not exist.")
            if topic.error_code:
                raise error_for(topic.error_code, f"Topic {name}: error {topic.error_code}")
            before = found[name].partitions if name in found else ()
            more = tuple(_partition(cluster, p) for p in topic.partitions)
            found[name] = TopicDescription(
                name=name,
                topic_id=topic.topic_id,
                is_internal=topic.is_internal,
                partitions=before + more,
            )
        if answer.next_cursor is None:
            return found
        following = answer.next_cursor
        names = [name for name in names if name >= following.topic_name]
        cursor = Cursor(topic_name=following.topic_name, partition_index=following.partition_index)


def _from_metadata(cluster: ClusterClient, topic: MetadataResponseTopic) -> TopicDescription:
    ordered = sorted(topic.partitions, key=lambda p: p.partition_index)
    return TopicDescription(
        name=topic.name or "",
        topic_id=topic.topic_id or ZERO_UUID,
        is_internal=topic.is_internal,
        partitions=tuple(_partition(cluster, p) for p in ordered),
    )


def _partition(
    cluster: ClusterClient,
    part: MetadataResponsePartition | DescribeTopicPartitionsResponsePartition,
) -> PartitionDescription:
    elr = last_known = None
    if isinstance(part, DescribeTopicPartitionsResponsePartition):
        elr, last_known = part.eligible_leader_replicas, part.last_known_elr
    return PartitionDescription(
        partition=part.partition_index,
        leader=cluster.nodes.get(part.leader_id),
        leader_epoch=part.leader_epoch,
        replicas=_nodes(cluster, part.replica_nodes),
        isr=_nodes(cluster, part.isr_nodes),
        offline=_nodes(cluster, part.offline_replicas),
        elr=None if elr is None else tuple(elr),
        last_known_elr=None if last_known is None else tuple(last_known),
    )


def _nodes(cluster: ClusterClient, ids: Iterable[int]) -> tuple[Node, ...]:
    """Brokers by id; one that is gone keeps its id and has no address."""
    return tuple(cluster.nodes.get(node_id) or Node(node_id, "", -1) for node_id in ids)
