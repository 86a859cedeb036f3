"""What members of a classic consumer group tell each other through the coordinator."""

from penstock.protocol.schema import Struct, array, blob, int32, string
from penstock.protocol.stored import Versioned


class OwnedPartition(Struct):
    """Partitions of a topic that the member still holds."""

    topic: str = string("1+")
    partitions: list[int] = array(int32, "1+")


class ConsumerProtocolSubscription(Versioned, versions="0-3"):
    """What a member wants to read, and what it holds already."""

    topics: list[str] = array(string, "0+")
    user_data: bytes | None = blob("0+", nullable=True, default=None)
    owned_partitions: list[OwnedPartition] = array(OwnedPartition, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable=True, default=None, ignorable=True)


class TopicPartition(Struct):
    """A topic and its partitions."""

    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class ConsumerProtocolAssignment(Versioned, versions="0-3"):
    """What a member is given."""

    assigned_partitions: list[TopicPartition] = array(TopicPartition, "0+")
    user_data: bytes | None = blob("0+", nullable=True, default=None)
