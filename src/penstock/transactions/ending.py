"""Carrying a decided end to every partition: again and again, until each has it.

A decision that is in the log cannot be taken back, so there is no giving up: a partition without a
leader or a disk without room only makes it later. Two answers end the matter early: a partition
that exists no more, and one that has seen a newer coordinator.
"""

import logging
from collections.abc import Iterable

from penstock.coordination.pauses import Pauses
from penstock.errors import (
    InvalidProducerEpoch,
    ProtocolError,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)
from penstock.transactions.markers import MarkerSink, TransactionMarker
from penstock.transactions.transaction import TopicPartition

log = logging.getLogger("kafka.coordinator.transaction.TransactionMarkerChannelManager")


async def mark_everywhere(
    marker: TransactionMarker, partitions: Iterable[TopicPartition], sink: MarkerSink
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


def _is_over(where: TopicPartition, marker: TransactionMarker, error: ProtocolError | None) -> bool:
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
