"""What flows between the nodes of a topology, and what a table keeps of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRecord:
    """One record on its way from node to node. The value of a table's record is a TableChange.

    Its copies are made by hand: every record is copied a few times, and dataclasses.replace takes
    three times as long.
    """

    key: Any
    value: Any
    timestamp_ms: int
    headers: Headers = ()

    def with_key(self, key: Any) -> "StreamRecord":
        """The same record under another key."""
        return StreamRecord(
            key=key, value=self.value, timestamp_ms=self.timestamp_ms, headers=self.headers
        )

    def with_value(self, value: Any) -> "StreamRecord":
        """The same record with another value."""
        return StreamRecord(
            key=self.key, value=value, timestamp_ms=self.timestamp_ms, headers=self.headers
        )

    def at(self, timestamp_ms: int) -> "StreamRecord":
        """The same record at another time."""
        return StreamRecord(
            key=self.key, value=self.value, timestamp_ms=timestamp_ms, headers=self.headers
        )


# What a source makes of a record, its partition and its offset; SerdeError: it cannot be read.
Intake = Callable[[StreamRecord, int, int], StreamRecord]


@dataclass(frozen=True, slots=True)
class TableChange:
    """A table's row became `new`; None is a tombstone.

    `old` is None where there was no row, and also where nothing downstream asks for it.
    """

    new: Any
    old: Any = None


@dataclass(frozen=True, slots=True)
class Stamped:
    """A value and the time of the record that made it so."""

    value: Any
    timestamp_ms: int


@dataclass(frozen=True, slots=True, order=True)
class TimeWindow:
    """A span of time; the end of a time window is outside it, of a session inside."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Windowed:
    """A key and the window it was aggregated in."""

    key: Any
    window: TimeWindow
