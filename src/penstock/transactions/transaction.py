"""What is known of one transactional id: a value that each step replaces by another.

The steps themselves are in `rules.py`, the bytes it is stored as in `stored.py`.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

TopicPartition = tuple[str, int]

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = (1 << 15) - 1
# The highest epoch a client gets, so that there is always one left to fence it with.
CLIENT_EPOCH_MAX: Final = EPOCH_MAX - 1
# Transaction versions (KIP-890). Clients of the first ask before they write and keep their epoch
# from one transaction to the next; clients of the second get a new epoch for each.
TV1: Final = 0  # Stored as 0, like everything from before versions had numbers.
TV2: Final = 2


class TransactionState(IntEnum):
    """Where a transaction stands; the numbers are stored."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2  # Decided: from here on only markers are missing.
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6  # Expired, about to be forgotten.
    PREPARE_EPOCH_FENCE = 7  # An older producer is being fenced off; ends as an abort.

    @property
    def label(self) -> str:
        """The name as Kafka's tools print it: PrepareCommit."""
        return LABELS[self]

    @property
    def is_preparing(self) -> bool:
        return self is TransactionState.PREPARE_COMMIT or self is TransactionState.PREPARE_ABORT


LABELS: Final = {
    state: "".join(word.capitalize() for word in state.name.split("_"))
    for state in TransactionState
}
STATES_BY_LABEL: Final = {label: state for state, label in LABELS.items()}


class ProducerIdentity(NamedTuple):
    """Who a producer is: the id, and which of its lives."""

    producer_id: int
    producer_epoch: int

    @property
    def is_exhausted(self) -> bool:
        """Whether no further epoch may be given to a client of this id."""
        return self.producer_epoch >= CLIENT_EPOCH_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One transactional id, its producer and its latest transaction."""

    transactional_id: str
    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    updated_ms: int
    started_ms: int = NO_TIME  # When the first partition was added.
    partitions: frozenset[TopicPartition] = frozenset()
    client_version: int = TV1  # Which the latest step spoke.
    # Before the latest step; another one if the epochs of the old had run out.
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID  # Given to the client already, in use once complete.
    # The epoch whose owner may still ask what became of it; not stored, so after a reload it may
    # not. NO_EPOCH: nobody but the owner of the current epoch.
    last_epoch: int = NO_EPOCH

    @property
    def identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def next_identity(self) -> ProducerIdentity:
        """Who the producer is once this transaction is complete."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return self.identity
        return ProducerIdentity(self.next_producer_id, 0)

    @property
    def is_committed(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
