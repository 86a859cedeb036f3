"""Partitions, their replicas and their moves as documents, and the questions that find them."""

import time
from collections.abc import Iterable
from contextlib import suppress

from penstock.client.admin import Admin
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.operations.reassignments import PartitionReassignment
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.errors import ProtocolError, UnknownTopicOrPartition, error_for
from penstock.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from penstock.rest.v3.links import Document, Links, resource

_HEARD_S = 10.0  # Brokers hear of a change within milliseconds; a busy machine takes longer.
_PAUSE_S = 0.02


def topics_of(admin: Admin, names: list[str] | None) -> list[MetadataResponseTopic]:
    """What the cluster says of topics (None: all); raises for one that is named and not there."""
    found = admin.cluster.metadata(names).topics
    for topic in found if names is not None else ():
        if topic.error_code:
            raise error_for(topic.error_code, f"Topic {topic.name}: error {topic.error_code}")
    return sorted((one for one in found if not one.error_code), key=lambda one: one.name or "")


def topic_of(admin: Admin, name: str) -> MetadataResponseTopic:
    """One topic; UnknownTopicOrPartition if it does not exist."""
    for topic in topics_of(admin, [name]):
        return topic
    raise UnknownTopicOrPartition(f"Topic {name!r} does not exist.")


def changed_topic(admin: Admin, name: str, *, partitions: int = 1) -> MetadataResponseTopic:
    """A topic that the controller has just made or enlarged to so many partitions.

    The controller answers before every broker has heard, and any of them is asked here.
    """
    give_up_s = time.monotonic() + _HEARD_S
    while time.monotonic() < give_up_s:
        with suppress(UnknownTopicOrPartition):
            topic = topic_of(admin, name)
            if len(topic.partitions) >= partitions:
                return topic
        time.sleep(_PAUSE_S)
    return topic_of(admin, name)


def partitions_of(topic: MetadataResponseTopic) -> list[MetadataResponsePartition]:
    """Its partitions, in order."""
    return sorted(topic.partitions, key=lambda one: one.partition_index)


def partition_of(topic: MetadataResponseTopic, index: int) -> MetadataResponsePartition:
    """One of them; UnknownTopicOrPartition if there is none of that number."""
    for partition in topic.partitions:
        if partition.partition_index == index:
            return partition
    raise UnknownTopicOrPartition(f"Partition {topic.name}-{index} does not exist.")


def replicas_of_broker(admin: Admin, links: Links, broker_id: int) -> list[Document]:
    """Every replica that a broker has."""
    return [
        replica_document(links, topic.name or "", partition, broker_id)
        for topic in topics_of(admin, None)
        for partition in partitions_of(topic)
        if broker_id in partition.replica_nodes
    ]


def moves_of(admin: Admin, links: Links, topic: str | None) -> list[Document]:
    """The moves under way, of a topic or of all."""
    wanted: Iterable[TopicPartition] | None = None
    if topic is not None:
        found = partitions_of(topic_of(admin, topic))
        wanted = [TopicPartition(topic, one.partition_index) for one in found]
    moves = admin.list_partition_reassignments(wanted)
    return [move_document(links, at, move) for at, move in sorted(moves.items())]


def offsets_of(admin: Admin, links: Links, at: TopicPartition) -> Document:
    """The first offset of a partition and the one after its last."""
    partition_of(topic_of(admin, at.topic), at.partition)
    edges = {
        name: _offset(admin.list_offsets({at: spec})[at])
        for name, spec in (("earliest", OffsetSpec.EARLIEST), ("latest", OffsetSpec.LATEST))
    }
    fields = {
        "cluster_id": links.cluster_id,
        "topic_name": at.topic,
        "partition_id": at.partition,
        "earliest_offset": edges["earliest"],
        "latest_offset": edges["latest"],
    }
    place = ("topics", at.topic, "partitions", at.partition, "offset")
    name = links.name(topic=at.topic, partition=at.partition) + "/offset"
    return resource("KafkaPartitionWithOffsets", links.to(*place), name, fields)


def _offset(found: OffsetAndTimestamp | ProtocolError | None) -> int:
    if isinstance(found, ProtocolError):
        raise found
    return found.offset if found is not None else 0


def partition_document(links: Links, topic: str, partition: MetadataResponsePartition) -> Document:
    """A partition."""
    index = partition.partition_index
    place = ("topics", topic, "partitions", index)
    fields: Document = {
        "cluster_id": links.cluster_id,
        "topic_name": topic,
        "partition_id": index,
    }
    if partition.leader_id >= 0:
        fields["leader"] = links.related(*place, "replicas", partition.leader_id)
    fields["replicas"] = links.related(*place, "replicas")
    fields["reassignment"] = links.related(*place, "reassignment")
    name = links.name(topic=topic, partition=index)
    return resource("KafkaPartition", links.to(*place), name, fields)


def replica_document(
    links: Links, topic: str, partition: MetadataResponsePartition, broker_id: int
) -> Document:
    """One broker's copy of a partition."""
    index = partition.partition_index
    fields = {
        "cluster_id": links.cluster_id,
        "topic_name": topic,
        "partition_id": index,
        "broker_id": broker_id,
        "is_leader": broker_id == partition.leader_id,
        "is_in_sync": broker_id in partition.isr_nodes,
        "broker": links.related("brokers", broker_id),
    }
    place = ("topics", topic, "partitions", index, "replicas", broker_id)
    name = links.name(topic=topic, partition=index, replica=broker_id)
    return resource("KafkaReplica", links.to(*place), name, fields)


def move_document(links: Links, at: TopicPartition, move: PartitionReassignment) -> Document:
    """A partition on the move."""
    place = ("topics", at.topic, "partitions", at.partition)
    fields = {
        "cluster_id": links.cluster_id,
        "topic_name": at.topic,
        "partition_id": at.partition,
        "adding_replicas": list(move.adding),
        "removing_replicas": list(move.removing),
        "replicas": links.related(*place, "replicas"),
    }
    name = links.name(topic=at.topic, partition=at.partition) + "/reassignment"
    return resource("KafkaReassignment", links.to(*place, "reassignment"), name, fields)
