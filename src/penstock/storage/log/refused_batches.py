"""Idempotent batches for which there was no room, so that those sent behind them wait their turn.

A producer has up to five requests under way. If the disk takes the second after refusing the
first, or answers that its sequence number is wrong, the client begins a new epoch and sends again
whatever it has no answer for, on every partition: records that stand already are then written
twice. So all that comes behind a refused batch is refused for the same reason, until that batch
is sent again. A client that gives it up instead is told of the gap after as many tries as it can
have under way.
"""

from typing import Final

from penstock.errors import KafkaStorage
from penstock.storage.log.appending import Batches
from penstock.storage.producers.producers import BATCHES_KEPT

_PRODUCERS_MAX: Final = 10_000  # Who came first is forgotten beyond this.


class RefusedBatches:
    """Of each producer and epoch the first sequence number that was refused."""

    def __init__(self) -> None:
        self.awaited: dict[tuple[int, int], tuple[int, int]] = {}  # And how often more may wait.

    def note(self, batches: Batches) -> None:
        """These could not be written."""
        for header, _ in batches:
            if header.producer_id >= 0 and header.base_sequence >= 0:
                producer = (header.producer_id, header.producer_epoch)
                self.awaited[producer] = (header.base_sequence, BATCHES_KEPT)
                break  # Clients send one idempotent batch per partition.
        while len(self.awaited) > _PRODUCERS_MAX:
            del self.awaited[next(iter(self.awaited))]

    def check(self, batches: Batches) -> None:
        """Raise if a batch before these must be sent again first."""
        for header, _ in batches:
            producer = (header.producer_id, header.producer_epoch)
            awaited, more = self.awaited.pop(producer, (-1, 0))
            if more and header.base_sequence > awaited:
                self.awaited[producer] = (awaited, more - 1)
                raise KafkaStorage(
                    f"producer {header.producer_id} sent sequence number {header.base_sequence} "
                    f"behind {awaited}, for which there was no room on the disk; send that first"
                )
            if more and header.base_sequence < awaited:
                self.awaited[producer] = (awaited, more)  # A duplicate, most likely.
