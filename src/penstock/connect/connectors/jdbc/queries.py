"""The questions of a JDBC source: what is new behind an offset, in an order that can be resumed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from penstock.connect.connectors.jdbc.dialects import Dialect
from penstock.connect.errors.kinds import ConnectError

Row = TypeVar("Row")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SourceMode(StrEnum):
    """How new rows are found."""

    BULK = "bulk"
    INCREMENTING = "incrementing"
    TIMESTAMP = "timestamp"
    BOTH = "timestamp+incrementing"

    @property
    def has_number(self) -> bool:
        """Whether a column counts up."""
        return self in (SourceMode.INCREMENTING, SourceMode.BOTH)

    @property
    def has_time(self) -> bool:
        """Whether a column tells when a row changed."""
        return self in (SourceMode.TIMESTAMP, SourceMode.BOTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPosition:
    """Behind the last row that was read; None: from the start."""

    number: int | None = None
    at: datetime | None = None

    @classmethod
    def of_offset(cls, offset: Mapping[str, Any] | None) -> "RowPosition":
        """ConnectError for an offset that is none of ours."""
        found = offset or {}
        values = [found.get(name) for name in ("incrementing", "timestamp", "timestamp_nanos")]
        for value in values:
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise ConnectError(f"The offset {dict(found)} has {value!r} instead of a number.")
        number, ms, nanos = values
        if ms is None:
            return cls(number=number)
        second = _EPOCH + timedelta(seconds=ms // 1000)
        micros = nanos // 1000 if nanos is not None else ms % 1000 * 1000
        return cls(number=number, at=second + timedelta(microseconds=micros))

    def offset(self) -> dict[str, Any]:
        """As Confluent's connector keeps it."""
        found: dict[str, Any] = {}
        if self.number is not None:
            found["incrementing"] = self.number
        if self.at is not None:
            past = self.at - _EPOCH
            micros = past // timedelta(microseconds=1)
            found["timestamp"] = micros // 1000
            found["timestamp_nanos"] = micros % 1_000_000 * 1000
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """What is asked of one table, or by one query of the user's."""

    mode: SourceMode
    selected: str  # SELECT ... FROM ..., without conditions of ours.
    number_column: str = ""
    time_columns: tuple[str, ...] = ()

    def text(
        self, dialect: Dialect, position: RowPosition, until: datetime
    ) -> tuple[str, list[Any]]:
        """The question with its values."""
        if self.mode is SourceMode.BULK:
            return self.selected, []
        number = dialect.column(self.number_column)
        moment = self._moment(dialect)
        if self.mode is SourceMode.INCREMENTING:
            condition, values = self._behind_number(dialect, number, position)
            order = number
        elif self.mode is SourceMode.TIMESTAMP:
            condition, values = self._behind_time(dialect, moment, position, until)
            order = moment
        else:
            condition, values = self._behind_both(dialect, moment, number, position, until)
            order = f"{moment}, {number}"
        where = f" WHERE {condition}" if condition else ""
        return f"{self.selected}{where} ORDER BY {order}", values

    def _moment(self, dialect: Dialect) -> str:
        """The first of the columns that is not null."""
        names = [dialect.column(one) for one in self.time_columns]
        return names[0] if len(names) == 1 else f"COALESCE({', '.join(names)})"

    def _behind_number(
        self, dialect: Dialect, number: str, position: RowPosition
    ) -> tuple[str, list[Any]]:
        if position.number is None:
            return "", []
        return f"{number} > {dialect.mark}", [position.number]

    def _behind_time(
        self, dialect: Dialect, moment: str, position: RowPosition, until: datetime
    ) -> tuple[str, list[Any]]:
        before = f"{moment} < {dialect.mark}"
        if position.at is None:
            return before, [until]
        return f"{moment} > {dialect.mark} AND {before}", [position.at, until]

    def _behind_both(
        self, dialect: Dialect, moment: str, number: str, position: RowPosition, until: datetime
    ) -> tuple[str, list[Any]]:
        mark = dialect.mark
        if position.at is None or position.number is None:
            return self._behind_time(dialect, moment, position, until)
        later = f"({moment} = {mark} AND {number} > {mark}) OR {moment} > {mark}"
        return (
            f"{moment} < {mark} AND ({later})",
            [until, position.at, position.number, position.at],
        )


def resumable(
    rows: Iterable[tuple[Row, RowPosition]], start: RowPosition, mode: SourceMode
) -> Iterator[tuple[Row, RowPosition]]:
    """Rows with the positions to go on from, so that none is missed.

    By time alone, rows of one time are passed with the last of them: whoever stops before reads
    them again.
    """
    held: tuple[Row, RowPosition] | None = None
    safe = start
    for row, position in rows:
        if held is not None:
            if mode is not SourceMode.TIMESTAMP or position.at != held[1].at:
                safe = held[1]
            yield held[0], safe
        held = (row, position)
    if held is not None:
        yield held
