"""The names of a partition's directories, as Kafka makes them of topic and number.

orders-0                                    a partition
orders-0.<32 hex digits>-delete             deleted; its files go after the delay
orders-0.<32 hex digits>-stray              of a topic the cluster does not know
orders-0.<32 hex digits>-future             a copy under way between directories
"""

import os
import re
from typing import Final

from penstock.records.topic_partition import TopicPartition

DELETE: Final = "-delete"
STRAY: Final = "-stray"
FUTURE: Final = "-future"

_NAME_BYTES_MAX: Final = 255  # What file systems take.
_PARTITION: Final = re.compile(r"([a-zA-Z0-9._-]+)-([0-9]+)\Z")
_LEAVING: Final = re.compile(r"(.+)-([0-9]+)\.[0-9a-f]{32}(-delete|-stray|-future)\Z")


def parse_directory_name(name: str) -> TopicPartition | None:
    """The partition a directory belongs to; None: the name is not one of a live partition."""
    match = _PARTITION.match(name)
    if match is None or _LEAVING.match(name):
        return None
    return TopicPartition(match[1], int(match[2]))


def parse_leaving_name(name: str) -> tuple[TopicPartition, str] | None:
    """The partition and the reason (`-delete`, `-stray`, `-future`); None: another name."""
    match = _LEAVING.match(name)
    if match is None:
        return None
    return TopicPartition(match[1], int(match[2])), match[3]


def leaving_name(partition: TopicPartition, reason: str) -> str:
    """A name nobody else has, cut to what a file system takes."""
    suffix = f"-{partition.partition}.{os.urandom(16).hex()}{reason}"
    return partition.topic[: _NAME_BYTES_MAX - len(suffix)] + suffix


def parse_log_name(name: str) -> TopicPartition | None:
    """The partition whose log a directory is, or will be; None: another name."""
    leaving = parse_leaving_name(name)
    if leaving is not None and leaving[1] == FUTURE:
        return leaving[0]
    return parse_directory_name(name)
