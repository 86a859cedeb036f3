"""File descriptors: how many new logs may still take, and how many are kept for everything else.

A log keeps a file open for as long as it lives, and a process may have only so many. Were logs to
take the last one, no client could connect and no segment could be rolled. The kernel gives out the
lowest number that is free, so a number says how crowded it is below: logs stay below a line, and
what is above it is left for connections, for new segments and for the operator.
"""

import os
import resource
from typing import Final

from penstock.errors import KafkaStorage

_RESERVED_MIN: Final = 64
_RESERVED_MAX: Final = 1024
_RESERVED_SHARE: Final = 8  # One of so many.


def reserved(limit: int) -> int:
    """How many of all descriptors new logs must leave alone."""
    return min(_RESERVED_MAX, max(_RESERVED_MIN, limit // _RESERVED_SHARE))


def left_for_logs() -> int:
    """How many new logs there are descriptors for; below zero: the line is crossed already."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lowest_free = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    os.close(lowest_free)
    return limit - reserved(limit) - lowest_free


def shortage(count: int) -> str:
    """What to say and to do when so many logs cannot be made."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"Not enough file descriptors for {count} more partitions: this broker may have {limit} "
        f"(ulimit -n), of which {reserved(limit)} are kept for connections. Raise the limit, "
        "delete topics or add brokers."
    )


def check_left_for_log() -> None:
    """Raise KafkaStorage if one more log would take a descriptor that is reserved."""
    if left_for_logs() < 1:
        raise KafkaStorage(shortage(1))
