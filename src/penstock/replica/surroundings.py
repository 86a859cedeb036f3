"""What all partitions of one broker share: who the brokers are, the clock, and who is told."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from penstock.cluster.image.image import BrokerImage
from penstock.replica.group_commit import GroupCommit

if TYPE_CHECKING:
    from penstock.replica.partition import Partition

LAG_MS_MAX: Final = 30_000  # Kafka's default of replica.lag.time.max.ms.


def monotonic_ms() -> int:
    """A clock that nobody sets; the event loop's own, where one runs."""
    try:
        return int(asyncio.get_running_loop().time() * 1000)
    except RuntimeError:
        return time.monotonic_ns() // 1_000_000


class ReplicaSurroundings:
    """One object for all partitions, so that a change reaches them all at once."""

    __slots__ = (
        "broker_id",
        "brokers",
        "clock_ms",
        "commits",
        "isr_expand_count",
        "isr_failed_count",
        "isr_shrink_count",
        "lag_ms_max",
        "led_count",
        "on_copied",
        "on_proposal",
    )

    def __init__(
        self,
        *,
        broker_id: int,
        lag_ms_max: Callable[[], int] = lambda: LAG_MS_MAX,
        clock_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        self.broker_id = broker_id
        self.brokers: Mapping[int, BrokerImage] = {}
        self.lag_ms_max = lag_ms_max
        self.clock_ms = clock_ms
        self.commits = GroupCommit()
        self.isr_expand_count = 0  # In-sync sets that grew, that shrank, that could not be written.
        self.isr_shrink_count = 0
        self.isr_failed_count = 0
        self.led_count = 0  # How often a partition began to be led here, or led anew.
        # Told of a topic and how many bytes of it were copied from a leader.
        self.on_copied: Callable[[str, int], None] = lambda _topic, _size_bytes: None
        # Told of a partition whose in-sync set should change; None: nobody could write it.
        self.on_proposal: Callable[[Partition], None] | None = None
