"""What a partition and its readers tell each other; plain values, and who wants to be told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from penstock.storage.log.log import AbortedTransaction
from penstock.storage.segments.file_slice import FileSlice


class GrowthWatcher(Protocol):
    """Somebody who waits for readable bytes, such as a long poll."""

    def grown(self, size_bytes: int) -> None: ...


class FollowerWatcher(Protocol):
    """A follower's fetch session: it hears of every append, and of marks that moved."""

    def grown(self, size_bytes: int) -> None: ...

    def moved(self) -> None:
        """The high watermark or the log start moved; the next answer is soon enough to say so."""


class PartitionRead(NamedTuple):
    """What a reader gets: a slice of the log and the marks that stand beside it."""

    records: FileSlice | bytes
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTransaction] | None  # None: the reader did not ask for read_committed.
    diverging: tuple[int, int] | None = None  # The epoch, and its end, where the logs part.
    preferred_replica: int = -1  # Another replica that is nearer to the reader (KIP-392).


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerFetch:
    """What one fetch of a follower says about its log."""

    replica_id: int
    replica_epoch: int  # Of its broker; -1: it is older than that (KIP-903).
    fetch_offset: int
    log_start_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int
