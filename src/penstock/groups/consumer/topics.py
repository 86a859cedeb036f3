"""A number by which a consumer group tells that its topics have changed.

A group keeps one number for all that its assignment depends on: which of its topics exist, their
partitions and the racks of their replicas. The number is computed as Apache Kafka does it, so that
a group that moves between the two does not rebalance for nothing.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from penstock.cluster.image.image import ClusterImage, TopicImage

_MAGIC: Final = b"\0"
_INT: Final = Struct("<i")
_LONG: Final = Struct("<q")
_KEPT_MAX: Final = 10_000


class TopicHashes:
    """The hash of each topic, worked out again only when the topic or its brokers changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, object, int]] = {}

    def of_group(self, topics: Iterable[str], image: ClusterImage) -> int:
        """One number for all these topics; 0: none of them exists."""
        found = [
            image.topics[name] for name in sorted(topics, key=_java_order) if name in image.topics
        ]
        if not found:
            return 0
        return _xxh3(b"".join(_LONG.pack(self.of_topic(topic, image)) for topic in found))

    def of_topic(self, topic: TopicImage, image: ClusterImage) -> int:
        known = self._known.get(topic.name)
        if known is not None and known[0] is topic and known[1] is image.brokers:
            return known[2]
        if len(self._known) >= _KEPT_MAX:
            self._known.clear()
        found = _xxh3(_topic_bytes(topic, image))
        self._known[topic.name] = (topic, image.brokers, found)
        return found


def image_version(image: ClusterImage) -> int:
    """A number that grows with every change of the cluster."""
    return image.controller_epoch << 32 | image.seq


def _topic_bytes(topic: TopicImage, image: ClusterImage) -> bytes:
    count = len(topic.partitions)
    high, low = topic.topic_id[:8], topic.topic_id[8:]
    parts = [_MAGIC, high[::-1], low[::-1], _text(topic.name), _INT.pack(count)]
    for number in range(count):
        parts.append(_INT.pack(number))
        replicas = topic.partitions[number].replicas
        racks = [image.brokers[b].rack for b in replicas if b in image.brokers]
        for rack in sorted((r for r in racks if r is not None), key=_java_order):
            parts += (_INT.pack(len(rack.encode("utf-16-le")) // 2), _text(rack))
    return b"".join(parts)


def _text(text: str) -> bytes:
    """As Java has it: units of UTF-16, and how many."""
    units = text.encode("utf-16-le")
    return units + _INT.pack(len(units) // 2)


def _java_order(text: str) -> bytes:
    """Java compares strings by their UTF-16 units."""
    return text.encode("utf-16-be")


def _xxh3(data: bytes) -> int:
    from xxhash import xxh3_64_intdigest  # Only brokers with such groups need it.

    digest = xxh3_64_intdigest(data)
    return digest - (1 << 64) if digest >> 63 else digest
