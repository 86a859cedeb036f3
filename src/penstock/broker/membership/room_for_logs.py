"""Whether new partitions can have the files they need, asked before their topic is made.

A broker alone refuses such a topic with a sentence. In a cluster the controller cannot know what
the others have open; each of them keeps its own reserve (storage/directories/descriptors.py).
"""

from penstock.broker.context import Broker
from penstock.errors import PolicyViolation
from penstock.storage.directories.descriptors import left_for_logs, shortage


class RoomForLogs:
    """What the topics of one request may still take."""

    def __init__(self, broker: Broker) -> None:
        self._left = left_for_logs() if broker.peers is None else None  # None: others know.

    def take(self, partition_count: int) -> None:
        """Raise PolicyViolation if there is no room for so many partitions more."""
        if self._left is None:
            return
        if partition_count > self._left:
            raise PolicyViolation(shortage(partition_count))
        self._left -= max(partition_count, 0)
