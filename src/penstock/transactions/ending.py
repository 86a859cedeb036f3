"""Carrying a decided end to every partition: again and again, until each has it.

A decision that is in the log cannot be taken back, so there is no giving up: a partition without a
leader or a disk without room only makes it later. Two answers end the matter early: a partition
that exists no more, and one that has seen a newer coordinator.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from penstock.errors import (
    InvalidProducerEpoch,
    ProtocolError,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)
from penstock.transactions.markers import Marker, MarkerSink
from penstock.transactions.transaction import TopicPartition

log = logging.getLogger("kafka.coordinator.transaction.TransactionMarkerChannelManager")

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0


class Pauses:
    """Pauses between tries, each twice as long as the one before."""

    def __init__(self) -> None:
        self._next_s = FIRST_PAUSE_S

    async def pause(self) -> None:
        await asyncio.sleep(self._next_s)
        self._next_s = min(2 * self._next_s, LONGEST_PAUSE_S)


async def mark_everywhere(
    marker: Marker, partitions: Iterable[TopicPartition], sink: MarkerSink
) -> bool:
    """Mark every partition; False: a newer coordinator took over, and this is its business."""
    left = sorted(partitions)
    pauses = Pauses()
    while left:
        outcome = await sink.write(marker, left)
        left = [where for where in left if not _is_over(where, marker, outcome[where])]
        if any(isinstance(e, TransactionCoordinatorFenced) for e in outcome.values()):
            return False
        if left:
            await pauses.pause()
    return True


def _is_over(where: TopicPartition, marker: Marker, error: ProtocolError | None) -> bool:
    if error is None:
        return True
    is_over = isinstance(error, UnknownTopicOrPartition | InvalidProducerEpoch)
    log.info(
        "The marker of producer %d, epoch %d, for %s-%d: %s; %s",
        marker.producer_id,
        marker.producer_epoch,
        *where,
        error,
        "it is not needed any more" if is_over else "it will be tried again",
    )
    return is_over
