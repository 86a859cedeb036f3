"""What a shard needs from outside, as ports: a journal, a clock, names, settings, the cluster.

The machines in this package know no event loop, no files and no real time. The coordinator plugs
in the real things; tests plug in lists and a clock they turn by hand.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from penstock.cluster.image import ClusterImage
from penstock.config.broker import BrokerConfig

KeyValue = tuple[bytes, bytes | None]  # A record; None is a tombstone.
NO_PRODUCER = -1


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


class Clock(Protocol):
    """Two clocks: one that records are stamped with, one that never jumps."""

    def now_ms(self) -> int:
        """The wall clock, for what is stored and for what expires after days."""
        ...

    def elapsed_ms(self) -> int:
        """Milliseconds since some fixed moment, for sessions and other timers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Everything a shard may ask or tell."""

    journal: Journal
    clock: Clock
    new_id: Callable[[], str]  # A fresh random UUID in its usual text form.
    config: Callable[[], BrokerConfig]  # As it holds now.
    image: Callable[[], ClusterImage]  # As it is now.
    report: Callable[[str], None]  # A line for the broker's log.


class Caller(NamedTuple):
    """Who sent a request, and in which version of it."""

    version: int
    client_id: str
    client_host: str


class Claim(NamedTuple):
    """The membership that a committer says it has; -1 and "" claim none."""

    member_id: str = ""
    epoch: int = -1  # The generation in the classic protocol, the member epoch in the new one.
    instance_id: str | None = None
