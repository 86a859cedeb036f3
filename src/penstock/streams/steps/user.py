"""`process`: a processor of the user's own, with state stores and punctuators.

Here the user's code acts instead of returning values, so its context is the host's to give.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.streams.steps.contract import RecordStep
from penstock.streams.values.records import StreamRecord
from penstock.streams.values.serdes import Serde
from penstock.streams.words.kafka_words import KafkaWords


class UserStore(KafkaWords):
    """A key-value store as a processor sees it, in the order of the keys' bytes.

    A host has `get`, `put` and `between`; the rest is made of them.
    """

    __slots__ = ()

    def get(self, key: Any) -> Any:
        """The value, or None."""
        raise NotImplementedError

    def put(self, key: Any, value: Any) -> None:
        """Set the value; None deletes."""
        raise NotImplementedError

    def between(self, low: bytes, high: bytes | None, *, backwards: bool) -> Iterator[Any]:
        """The entries whose keys' bytes lie between two, both included; None is the end."""
        raise NotImplementedError

    def key_bytes(self, key: Any) -> bytes:
        """The key as it is ordered; nothing for None."""
        raise NotImplementedError

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value of a key that has none; the value it had."""
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Set the values of many keys."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        """Remove the key; the value it had."""
        before = self.get(key)
        self.put(key, None)
        return before

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All entries."""
        return self.between(b"", None, backwards=False)

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """All entries, the last key first."""
        return self.between(b"", None, backwards=True)

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """The entries between two keys, both included; None is the start or the end."""
        return self._range(first, last, backwards=False)

    def reverse_range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """The same entries, the last key first."""
        return self._range(first, last, backwards=True)

    def prefix_scan(
        self, prefix: Any, serde: Serde[Any] | None = None
    ) -> Iterator[tuple[Any, Any]]:
        """The entries whose keys' bytes begin with those of a prefix, by the store's serde."""
        start = self.key_bytes(prefix) if serde is None else serde.serialize(prefix) or b""
        for key, value in self.between(start, None, backwards=False):
            if not self.key_bytes(key).startswith(start):
                return
            yield key, value

    def approximate_num_entries(self) -> int:
        """How many entries there are; here the number is exact."""
        return sum(1 for _ in self.all())

    def _range(self, first: Any, last: Any, *, backwards: bool) -> Iterator[tuple[Any, Any]]:
        high = None if last is None else self.key_bytes(last)
        return self.between(self.key_bytes(first), high, backwards=backwards)


class Cancellable(Protocol):
    """A punctuator's schedule."""

    def cancel(self) -> None:
        """Call it no more."""


class ProcessorContext(Protocol):
    """What a processor may ask of its host."""

    def forward(self, record: StreamRecord) -> None:
        """Send a record on."""

    def store(self, name: str) -> UserStore:
        """A store the processor was given."""

    def schedule(
        self, interval_ms: int, kind: str, punctuator: Callable[[int], None]
    ) -> Cancellable:
        """Call at every interval of `stream` time or of the `wall` clock."""

    @property
    def stream_time_ms(self) -> int:
        """The latest time of any record of the task."""

    @property
    def wall_clock_ms(self) -> int:
        """The host's clock."""


class Processor:
    """The user's own step: override what is needed."""

    def init(self, context: ProcessorContext) -> None:
        """Keep the context, schedule punctuators."""

    def process(self, record: StreamRecord) -> None:
        """Work on one record."""

    def close(self) -> None:
        """The topology ends."""


@dataclass(frozen=True, slots=True)
class UserStep(RecordStep):
    """A processor, made anew for each task, and the stores it was given."""

    supplier: Callable[[], Processor]
    stores: tuple[str, ...]
    keeps_key: bool = False  # What it sends has the key of the record it works on.
