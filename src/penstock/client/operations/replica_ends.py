"""Where the logs of single replicas end, followers included: what replication lag is made of."""

from collections.abc import Iterable

from penstock.client.operations.offsets import OffsetSpec
from penstock.client.operations.reassignments import by_topic
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_DEBUGGING_CONSUMER = -2  # The replica id of one who may ask any replica.


def replica_ends(
    cluster: ClusterClient, broker_id: int, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The end of each partition's log on one broker; what it cannot tell is left out."""
    wanted = [
        ListOffsetsTopic(
            name=topic,
            partitions=[
                ListOffsetsPartition(partition_index=index, timestamp=int(OffsetSpec.LATEST))
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(partitions).items()
    ]
    if not wanted:
        return {}
    request = ListOffsetsRequest(replica_id=_DEBUGGING_CONSUMER, topics=wanted)
    answer = cluster.ask_node(broker_id, request, ListOffsetsResponse)
    return {
        TopicPartition(topic.name, part.partition_index): part.offset
        for topic in answer.topics
        for part in topic.partitions
        if not part.error_code and part.offset >= 0
    }
