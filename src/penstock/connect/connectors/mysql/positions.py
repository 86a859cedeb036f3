"""Where a capture is, as its offsets say it: a place in the binary log, or a snapshot to be done.

A place is the end of the last transaction that is done, and how much of the one after it: so many
of its events, and so many rows of the event after those. The stream begins with that transaction,
and what is done is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.connect.errors.kinds import ConnectError


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogPosition:
    """What is done."""

    file: str
    pos: int
    event: int = 0  # Events with rows of the transaction behind `pos`, before the one begun.
    row: int = 0  # Rows of that one.
    is_snapshot: bool = False  # The snapshot is not done, and must begin anew.

    @classmethod
    def of_offset(cls, offset: Mapping[str, Any]) -> "BinlogPosition":
        """ConnectError for an offset that is none of ours."""
        file = offset.get("file")
        numbers = [offset.get(name, 0) for name in ("pos", "event", "row")]
        if not isinstance(file, str) or not file or not all(map(_is_count, numbers)):
            raise ConnectError(
                f"The offset {dict(offset)} is none of this connector: it needs 'file', a text, and"
                " 'pos', a whole number."
            )
        return cls(
            file=file,
            pos=numbers[0],
            event=numbers[1],
            row=numbers[2],
            is_snapshot=bool(offset.get("snapshot", False)),
        )

    def offset(self, **more: Any) -> dict[str, Any]:
        """As it is kept."""
        found: dict[str, Any] = {"file": self.file, "pos": self.pos, **more}
        if self.event or self.row:
            found |= {"event": self.event, "row": self.row}
        if self.is_snapshot:
            found["snapshot"] = True
        return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
