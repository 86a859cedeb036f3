"""What a snapshot has seen, so that neither it nor the stream behind it tells a change twice.

A snapshot reads its tables in a fixed order, each in the order of its key, in one transaction of
the database. It can be broken off and taken up again at the row where it was, but then in another
transaction, which sees more. So each *part*, from where it began on, is kept with the snapshot of
its transaction: the ids that were visible. The stream begins where the slot began, before all of
that. A change of a row is left out there if its transaction was visible to the part that read the
row: it is in what was read. All others are told. That is exact, whatever ran meanwhile.
"""

import json
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

KeyValues = tuple[Any, ...]  # Of one row; numbers and texts, compared as the database orders them.


@dataclass(frozen=True, slots=True)
class VisibleIds:
    """`xmin:xmax:xip`, PostgreSQL's snapshot: which transactions had ended."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def of(cls, text: str) -> "VisibleIds":
        """As `pg_current_snapshot()` shows it."""
        xmin, xmax, running = text.split(":")
        ids = frozenset(int(one) for one in running.split(",") if one)
        return cls(int(xmin), int(xmax), ids)

    def __str__(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, sorted(self.running)))}"

    def has(self, xid: int) -> bool:
        """Whether a transaction, by the 32 bits that the stream has of its id, was visible."""
        whole = (self.xmax >> 32 << 32) | xid
        if whole - self.xmax > 1 << 31:
            whole -= 1 << 32
        elif self.xmax - whole > 1 << 31:
            whole += 1 << 32
        return whole < self.xmax and whole not in self.running


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPart:
    """From a row on, in one transaction. Without `after` it begins with the table's first row."""

    table: str
    after: KeyValues | None
    visible: VisibleIds


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotMarks:
    """The parts of a snapshot in their order, and from which commit on none of them matters."""

    tables: tuple[str, ...] = ()  # In the order they are read.
    parts: tuple[SnapshotPart, ...] = ()
    until_lsn: int = 0
    _starts: tuple[tuple[int, bool, KeyValues], ...] = field(
        init=False, repr=False, compare=False, default=()
    )

    def __post_init__(self) -> None:
        starts = tuple(self._start(one) for one in self.parts)
        object.__setattr__(self, "_starts", starts)

    def with_part(self, part: SnapshotPart, *, until_lsn: int) -> "SnapshotMarks":
        """The snapshot is taken up here, again or for the first time."""
        return SnapshotMarks(tables=self.tables, parts=(*self.parts, part), until_lsn=until_lsn)

    def has_seen(self, table: str, key: KeyValues | None, xid: int) -> bool:
        """Whether a transaction's change of a row is in what the snapshot read."""
        part = self._part_of(table, key)
        return part is not None and part.visible.has(xid)

    def text(self) -> str:
        """As an offset carries it."""
        parts = [[one.table, one.after, str(one.visible)] for one in self.parts]
        return json.dumps({"tables": self.tables, "parts": parts, "until": self.until_lsn})

    @classmethod
    def of_text(cls, text: str) -> "SnapshotMarks":
        """From an offset; ValueError, KeyError or TypeError for what none ever was."""
        found = json.loads(text)
        parts = tuple(
            SnapshotPart(
                table=table,
                after=None if after is None else tuple(after),
                visible=VisibleIds.of(visible),
            )
            for table, after, visible in found["parts"]
        )
        return cls(tables=tuple(found["tables"]), parts=parts, until_lsn=int(found["until"]))

    def _start(self, part: SnapshotPart) -> tuple[int, bool, KeyValues]:
        return self.tables.index(part.table), part.after is not None, part.after or ()

    def _part_of(self, table: str, key: KeyValues | None) -> SnapshotPart | None:
        """The part that read the row: the last that began before it."""
        if table not in self.tables or not self.parts:
            return None
        number = self.tables.index(table)
        if key is None:  # Such a table is read anew from its start each time.
            at = bisect_right([start[0] for start in self._starts], number)
        else:
            # A part begins behind `after`, so the row with that very key is of the one before.
            at = sum(start[:2] <= (number, False) or _is_before(start, number, key)
                     for start in self._starts)  # fmt: skip
        return self.parts[at - 1] if at else None


def _is_before(start: tuple[int, bool, KeyValues], number: int, key: KeyValues) -> bool:
    return start[0] < number or (start[0] == number and start[2] < key)
