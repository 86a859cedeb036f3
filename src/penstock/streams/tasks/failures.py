"""What fails for a record and does not stop it: told by functions, written down by the host.

A function of a topology that can go on without a value tells the reason. It knows neither the
record that is under way nor who writes, and a host that keeps no log listens to nobody. What is
written is bounded for each batch, however many records fail.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, NamedTuple

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("failure listener", default=None)
REASON_CHARACTERS_MAX: Final = 2_000


def tell(reason: str) -> None:
    """Something failed for the record that is under way."""
    listener = _listener.get()
    if listener is not None:
        listener(reason)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Hear what is told for as long as it is entered."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class RecordFailure(NamedTuple):
    """What is known of a failure."""

    reason: str
    at_ms: int  # When it was seen.
    part: str | None = None  # "key" or "value" could not be read; None: it failed later.
    topic: str | None = None  # None: it belongs to no record.
    partition: int | None = None
    offset: int | None = None
    data: bytes | None = None  # Of the part, or the record's value.


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLog:
    """Where failures are written, how, and how many of a batch."""

    topic: str
    entry: Callable[[RecordFailure], bytes]
    entries_max: int


@dataclass(slots=True)
class FailureNotes:
    """The entries of one task's batch; a last one tells how many more there were."""

    log: FailureLog
    _written: int = 0
    _left_out: int = 0

    def entry(self, failure: RecordFailure) -> bytes | None:
        """What is to be written; None: the batch has as many entries as it may."""
        if self._written >= self.log.entries_max:
            self._left_out += 1
            return None
        self._written += 1
        reason = failure.reason
        if len(reason) > REASON_CHARACTERS_MAX:
            failure = failure._replace(reason=f"{reason[:REASON_CHARACTERS_MAX]}...")
        return self.log.entry(failure)

    def rest(self, at_ms: int) -> bytes | None:
        """The last entry; None: nothing was left out."""
        left_out, self._left_out = self._left_out, 0
        if not left_out:
            return None
        told = f"{left_out} more failures of this batch are not told one by one"
        return self.log.entry(RecordFailure(told, at_ms))
