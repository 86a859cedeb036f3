"""Where a capture is, as its offsets say it: one for each table, and one for each shard.

A shard's says which change of it was the last. A table's is its *mark*: how far the snapshot is,
and since when changes count. The first record of a table always carries the mark, so that a task
that starts knows whether the table was ever read, even if all shards of that time are gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.connect.errors.kinds import ConnectError

TABLE, STREAM, SHARD = "table", "stream", "shard"
_SEQUENCE, _PART = "sequence", "part"
_DIGITS_MAX = 64


class SnapshotState(StrEnum):
    """How far the snapshot of a table is."""

    NONE = "none"
    RUNNING = "running"
    DONE = "done"


def table_partition(table: str) -> dict[str, str]:
    """The source partition of a table's mark."""
    return {TABLE: table}


def shard_partition(table: str, stream: str, shard: str) -> dict[str, str]:
    """The source partition of a shard of a stream, which is known by its label."""
    return {TABLE: table, STREAM: stream, SHARD: shard}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardPosition:
    """The last change of a shard that is done, or the first records of it."""

    sequence: str
    part: int = 0  # How many of its records are done; 0: all of them.

    @classmethod
    def of_offset(cls, offset: Mapping[str, Any]) -> "ShardPosition":
        """ConnectError for an offset that is none of ours."""
        sequence, part = offset.get(_SEQUENCE), offset.get(_PART, 0)
        if not isinstance(sequence, str) or not _is_sequence(sequence) or not _is_count(part):
            raise ConnectError(
                f"The offset {dict(offset)!s:.300} is none of a shard: it needs '{_SEQUENCE}', a"
                " text of digits."
            )
        return cls(sequence=sequence, part=part)

    def offset(self) -> dict[str, Any]:
        """As it is kept."""
        found: dict[str, Any] = {_SEQUENCE: self.sequence}
        return found | ({_PART: self.part} if self.part else {})

    def is_behind(self, other: "ShardPosition") -> bool:
        """Whether the other one is further."""
        return self._rank() < other._rank()

    def _rank(self) -> tuple[int, bool, int]:
        return int(self.sequence), self.part == 0, self.part


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMark:
    """What is known of a table as a whole."""

    stream: str  # The label of the stream; empty: the table has none, and its items alone are read.
    snapshot: SnapshotState
    since_ms: int = 0  # Changes before that are left out.
    key: str = ""  # Behind which item the snapshot goes on, as JSON of its key.
    seen_ms: int = 0  # When everything that was there had last been read, by the server's clock.
    shard: str = ""  # The mark came with a change of this shard; empty: with none.
    position: ShardPosition | None = None  # Of that change.

    @classmethod
    def of_offset(cls, offset: Mapping[str, Any]) -> "TableMark":
        """ConnectError for an offset that is none of ours."""
        stream, key, shard = (offset.get(name, "") for name in (STREAM, "key", SHARD))
        since_ms, seen_ms = offset.get("since", 0), offset.get("seen", 0)
        states = {state.value for state in SnapshotState}
        is_right = all(isinstance(one, str) for one in (stream, key, shard))
        if not is_right or offset.get("snapshot") not in states:
            raise _strange_mark(offset)
        if not _is_count(since_ms) or not _is_count(seen_ms):
            raise _strange_mark(offset)
        return cls(
            stream=stream,
            snapshot=SnapshotState(offset["snapshot"]),
            since_ms=since_ms,
            key=key,
            seen_ms=seen_ms,
            shard=shard,
            position=ShardPosition.of_offset(offset) if shard else None,
        )

    def offset(self) -> dict[str, Any]:
        """As it is kept."""
        found: dict[str, Any] = {STREAM: self.stream, "snapshot": self.snapshot.value}
        more = {"since": self.since_ms, "key": self.key, "seen": self.seen_ms, SHARD: self.shard}
        found |= {name: value for name, value in more.items() if value}
        return found | (self.position.offset() if self.position is not None else {})


def check_altered(partition: Mapping[str, Any], offset: Mapping[str, Any]) -> None:
    """ConnectError for an offset that no task could use."""
    if partition.keys() == {TABLE, STREAM, SHARD}:
        ShardPosition.of_offset(offset)
    elif partition.keys() == {TABLE}:
        TableMark.of_offset(offset)
    else:
        raise ConnectError(
            f"A partition has '{TABLE}' alone, or with '{STREAM}' and '{SHARD}', not"
            f" {dict(partition)!s:.300}."
        )


def _strange_mark(offset: Mapping[str, Any]) -> ConnectError:
    return ConnectError(
        f"The offset {dict(offset)!s:.300} is none of a table: it needs 'stream', the label of a"
        " stream, and 'snapshot': none, running or done."
    )


def _is_sequence(text: str) -> bool:
    return text.isdecimal() and len(text) <= _DIGITS_MAX


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
