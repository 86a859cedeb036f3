"""The bytes that classic consumers exchange, read and written by the coordinator in their stead.

In a classic group they are the members' own business. In a consumer group with classic members,
and when a group changes from one protocol to the other, the coordinator must understand them.
"""

from collections.abc import Iterable, Mapping

from penstock.groups.consumer.reconcile import Owned
from penstock.groups.consumer.view import ClusterView
from penstock.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from penstock.protocol.stored import read_prefix


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Raises MalformedMessage."""
    return ConsumerProtocolSubscription.from_bytes(metadata)


def owned_partitions(subscription: ConsumerProtocolSubscription, view: ClusterView) -> Owned:
    """What the member says to own, of topics that still exist."""
    named = [
        (view.topic_id(owned.topic), owned.partitions) for owned in subscription.owned_partitions
    ]
    return {topic_id: set(numbers) for topic_id, numbers in named if topic_id is not None}


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """Raises MalformedMessage; a member that never synced has none."""
    return ConsumerProtocolAssignment.from_bytes(assignment) if assignment else NO_ASSIGNMENT


NO_ASSIGNMENT = ConsumerProtocolAssignment()


def assigned_partitions(
    assignment: ConsumerProtocolAssignment, view: ClusterView
) -> dict[bytes, frozenset[int]]:
    named = [(view.topic_id(a.topic), a.partitions) for a in assignment.assigned_partitions]
    return {topic_id: frozenset(numbers) for topic_id, numbers in named if topic_id is not None}


def encode_assignment(
    partitions: Mapping[bytes, Iterable[int]], metadata: bytes, view: ClusterView
) -> bytes:
    """For a member with such metadata, in the version that it speaks itself."""
    named = [(view.topic_name(topic_id), numbers) for topic_id, numbers in partitions.items()]
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=name, partitions=sorted(numbers))
            for name, numbers in sorted((n, p) for n, p in named if n is not None)
        ]
    )
    known = ConsumerProtocolAssignment.versions
    return assignment.to_bytes(min(max(read_prefix(metadata), known[0]), known[-1]))
