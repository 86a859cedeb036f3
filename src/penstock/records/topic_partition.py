"""The name of a partition, the same to the broker and to its clients.

It lies here because both towers of the house stand on this floor; the names that partitions have
as directories are in storage/directories/names.py.
"""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
