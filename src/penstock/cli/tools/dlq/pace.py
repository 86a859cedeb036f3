"""How fast dead letters go back: in transactions, no larger than a second's worth."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

RECORDS_PER_TRANSACTION = 500
T = TypeVar("T")


def batches(records: Sequence[T], rate: float | None) -> Iterator[Sequence[T]]:
    """What is sent together."""
    size = RECORDS_PER_TRANSACTION
    if rate is not None:
        size = max(1, min(size, int(rate)))
    for at in range(0, len(records), size):
        yield records[at : at + size]


def pause_s(sent: int, rate: float, elapsed_s: float) -> float:
    """How long to wait until so many are not too many for the time."""
    return max(0.0, sent / rate - elapsed_s)
