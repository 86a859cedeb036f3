"""Where a capture is, as its offsets say it: in the snapshot, or in the stream.

A position in the stream is the end of the last transaction that is done, and how many changes of
the one after it. The server begins again with that one, and the changes that are done are left out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.connect.connectors.postgres.snapshot_marks import KeyValues, SnapshotMarks
from penstock.connect.errors.kinds import ConnectError


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePosition:
    """What is done."""

    lsn_commit: int  # The stream goes on with transactions that were committed from here on.
    lsn: int = 0  # The commit of the transaction that is partly done.
    event: int = 0  # How many of its changes are done.
    marks: SnapshotMarks | None = None  # None: there was no snapshot, or it does not matter now.
    is_snapshot: bool = False  # The snapshot is not done.
    table: str | None = None  # In a snapshot: the table of the last row.
    after: KeyValues | None = None  # Its key; None: the table must be read from its start.

    @classmethod
    def of_offset(cls, offset: Mapping[str, Any]) -> "CapturePosition":
        """ConnectError for an offset that is none of ours."""
        try:
            marks = offset.get("snapshot_marks")
            numbers = [_number(offset, name) for name in ("lsn_commit", "lsn", "event")]
            after = offset.get("snapshot_after")
            return cls(
                lsn_commit=numbers[0],
                lsn=numbers[1],
                event=numbers[2],
                marks=None if marks is None else SnapshotMarks.of_text(marks),
                is_snapshot=bool(offset.get("snapshot", False)),
                table=offset.get("snapshot_table"),
                after=None if after is None else tuple(json.loads(after)),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectError(
                f"The offset {dict(offset)} is none of this connector: it needs a whole number as"
                f" 'lsn_commit', and what goes with it. {error}"
            ) from error

    def offset(self, **more: Any) -> dict[str, Any]:
        """As it is kept."""
        found: dict[str, Any] = {"lsn_commit": self.lsn_commit, **more}
        if self.event:
            found |= {"lsn": self.lsn, "event": self.event}
        if self.marks is not None:
            found["snapshot_marks"] = self.marks.text()
        if self.is_snapshot:
            found |= {"snapshot": True, "snapshot_table": self.table}
            if self.after is not None:
                found |= after_key(self.after)
        return found

    def inside(self, lsn: int, event: int) -> "CapturePosition":
        """The same, with so many changes of a transaction done."""
        return CapturePosition(lsn_commit=self.lsn_commit, lsn=lsn, event=event, marks=self.marks)

    def passed(self, lsn: int) -> "CapturePosition":
        """The same once the stream is here: whatever the snapshot saw was committed before."""
        if self.marks is None or lsn < self.marks.until_lsn:
            return self
        return replace(self, marks=None)


def after_key(values: KeyValues) -> dict[str, str]:
    """What a snapshot's offset has of the last row's key."""
    return {"snapshot_after": json.dumps(values)}


def _number(offset: Mapping[str, Any], name: str) -> int:
    value = offset["lsn_commit"] if name == "lsn_commit" else offset.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is {value!r}")
    return value
