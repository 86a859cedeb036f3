"""`process`: a processor of the user's own, with state stores and punctuators.

Here the user's code acts instead of returning values, so its context is the host's to give.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.streams.steps.contract import RecordStep
from penstock.streams.values.records import StreamRecord


class UserStore(Protocol):
    """A key-value store as a processor sees it, in the order of the keys' bytes."""

    def get(self, key: Any) -> Any:
        """The value, or None."""

    def put(self, key: Any, value: Any) -> None:
        """Set the value; None deletes."""

    def delete(self, key: Any) -> Any:
        """Remove the key; the value it had."""

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All entries."""

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """The entries between two keys, both included."""


class ProcessorContext(Protocol):
    """What a processor may ask of its host."""

    def forward(self, record: StreamRecord) -> None:
        """Send a record on."""

    def store(self, name: str) -> UserStore:
        """A store the processor was given."""

    def schedule(self, interval_ms: int, kind: str, punctuator: Callable[[int], None]) -> None:
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
