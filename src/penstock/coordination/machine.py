"""What a machine in a partition of a state topic is, seen from the shell that keeps it.

A machine is the state of one partition in one leader epoch: all groups of a partition of
`__consumer_offsets`, or all transactional ids of one of `__transaction_state`. It knows no event
loop, no files and no time of its own. The shell (`shell.py`) replays the log into it, hands it
requests, markers and the time, and lets nothing out before what it rests on is safe.

A machine keeps one rule: write, then believe. It decides first, writes its records through the
`Journal`, and changes its state after that. A write that is refused raises the error for the
client, and the state is as it was. What it answers it returns: at once, or under a ticket
(`answers.py`).
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from penstock.coordination.answers import LateAnswer
from penstock.errors import ErrorCode

KeyValue = tuple[bytes, bytes | None]  # A record; None is a tombstone.
NO_PRODUCER: Final = -1


class Journal(Protocol):
    """Where records go before anything they say becomes true."""

    def write(
        self,
        records: Sequence[KeyValue],
        *,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_PRODUCER,
    ) -> int:
        """Write all or none, in one batch; the offset of the first.

        With a producer id the batch belongs to that producer's transaction. Raises the
        ProtocolError a client is to be told, and then nothing was written.
        """
        ...

    def check_size(self, size_bytes: int) -> None:
        """Raise what `write` would for records of at least so many bytes."""
        ...


class Clock(Protocol):
    """Two clocks: one that records are stamped with, one that never jumps."""

    def now_ms(self) -> int:
        """The wall clock, for what is stored and for what expires after days."""
        ...

    def elapsed_ms(self) -> int:
        """Milliseconds since some fixed moment, for sessions and other timers."""
        ...


class Machine(Protocol):
    """One partition's state; the shell calls all of this from one thread."""

    def replay(
        self, key: bytes | None, value: bytes | None, record_offset: int, producer_id: int
    ) -> None:
        """Take in one record of the log; one that cannot be read is reported and left out.

        With a producer id it belongs to that producer's transaction, which a marker decides.
        """
        ...

    def take_marker(self, producer_id: int, *, is_committed: bool, marker_offset: int) -> None:
        """The marker of a producer's transaction is in the log."""
        ...

    def start(self) -> None:
        """All of the log is replayed and safe: come to life."""
        ...

    def stop(self, error: ErrorCode) -> None:
        """This broker leads the partition no more: whoever waits is told the error."""
        ...

    def next_timer_ms(self) -> int | None:
        """A moment of `Clock.elapsed_ms` not after the next timer; None: there is none."""
        ...

    def ring(self) -> None:
        """Do what is due by now."""
        ...

    def take_answers(self) -> Sequence[LateAnswer]:
        """What it has for requests that wait; the shell asks at the end of every turn."""
        ...

    def content(self) -> str:
        """What it holds, in words for the broker's log."""
        ...


M = TypeVar("M", bound=Machine)
