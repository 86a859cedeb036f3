"""What a member of a group on kafka-python 3.0.12 needs beside the library.

A leader that rejoins because it saw new partitions (as after its first join, which may come before
the topic's metadata) has no reason left once it has assigned them. When `poll` ends before the
answer to its SyncGroup is there, the library never looks at that answer: its task is done, nobody
asks for it, and the member has no heartbeat and no assignment for good. The broker has answered.
KAFKA-9815 was this in Java.
"""

from typing import Any

from kafka.coordinator.base import MemberState  # type: ignore[import-untyped]


def poll(consumer: Any, *, timeout_ms: int, records_max: int | None = None) -> dict[Any, list[Any]]:
    """The library's `poll`, after which a member that is still joining wants to join.

    Java's consumer tells itself so. The next `poll` then finds the answer that was left behind.
    """
    found: dict[Any, list[Any]] = consumer.poll(timeout_ms=timeout_ms, max_records=records_max)
    if consumer.group_metadata().state is MemberState.REBALANCING:
        consumer._coordinator.request_rejoin()
    return found
