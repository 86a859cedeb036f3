"""Columns of a batch of rows, and which of the rows are in doubt.

A row is in doubt where the work of columns could differ from that of single rows: something fails,
overflows or has an unusual shape. Whoever asks for columns takes such rows one by one, so that
errors have one implementation.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.types.kinds import BIGINT, BOOLEAN, BYTES, DOUBLE, INTEGER, STRING, DataType

# An INTEGER lies in 64 bits, so that nothing overflows before it is wrapped around.
ARROW: Final[Mapping[DataType | None, pa.DataType]] = {
    BOOLEAN: pa.bool_(),
    INTEGER: pa.int64(),
    BIGINT: pa.int64(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    BYTES: pa.binary(),
}
_HALF: Final = 1 << 31
_PLAIN: Final = 0x80  # Bytes below are characters by themselves.
_CLASSES: Final[Mapping[DataType | None, type]] = {
    BOOLEAN: bool, INTEGER: int, BIGINT: int, DOUBLE: float, STRING: str, BYTES: bytes,
}  # fmt: skip

Doubts = Any  # Of numpy, a truth value for each row; None: no row is in doubt.


class NotInColumns(Exception):
    """What is asked for has to be done row by row."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A column: an Arrow array, or a scalar where all rows have the same value."""

    values: Any
    doubts: Doubts = None

    def array(self, size: int) -> pa.Array:
        """One value for each row."""
        return pa.repeat(self.values, size) if isinstance(self.values, pa.Scalar) else self.values

    def pylist(self, size: int) -> Iterable[Any]:
        """The values as Python has them."""
        if isinstance(self.values, pa.Scalar):
            return repeat(self.values.as_py(), size)
        found: list[Any] = self.values.to_pylist()
        return found


@dataclass(frozen=True, slots=True)
class RowFrame:
    """Rows of one batch by columns."""

    size: int
    columns: Mapping[str, pa.Array]

    def taken(self, positions: Any) -> "RowFrame":
        """Some of the rows."""
        if len(positions) == self.size:
            return self
        columns = {name: column.take(positions) for name, column in self.columns.items()}
        return RowFrame(len(positions), columns)


Evaluation = Callable[[RowFrame], Cells]


@dataclass(frozen=True, slots=True)
class ColumnExpression:
    """A type, and the function that computes the column."""

    type: DataType | None
    evaluate: Evaluation


def either(one: Doubts, other: Doubts) -> Doubts:
    """In doubt for one reason or another."""
    if one is None or other is None:
        return other if one is None else one
    return one | other


def all_of(parts: Iterable[Cells]) -> Doubts:
    """In doubt in any of the columns."""
    doubts = None
    for part in parts:
        doubts = either(doubts, part.doubts)
    return doubts


def trues(values: Any, size: int) -> Any:
    """Where a column of truth values is true; NULL is not."""
    column = Cells(values).array(size)
    return column.fill_null(False).to_numpy(zero_copy_only=False)


def cells_of(values: Sequence[Any], kind: DataType | None, doubts: Doubts = None) -> Cells:
    """Values of Python as a column; one that does not fit the type is in doubt."""
    wanted, arrow = _CLASSES[kind], ARROW[kind]
    if set(map(type, values)) <= {wanted, type(None)}:
        try:
            made = pa.array(values, arrow)
            return Cells(made, either(doubts, _too_large(made) if kind == INTEGER else None))
        except (pa.ArrowException, OverflowError, UnicodeError):
            pass  # A text that UTF-8 has not, or a number of more than 64 bits.
    fits = [value is None or (type(value) is wanted and _is_held(value, arrow)) for value in values]
    kept = [value if fit else None for value, fit in zip(values, fits, strict=True)]
    return cells_of(kept, kind, either(doubts, ~np.array(fits, bool)))


def _too_large(column: Any) -> Doubts:
    """Whole numbers of more than 32 bits."""
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None or (low >= -_HALF and high < _HALF):
        return None
    within = pc.and_(pc.greater_equal(column, -_HALF), pc.less(column, _HALF))
    return ~within.fill_null(True).to_numpy(zero_copy_only=False)


def _is_held(value: Any, arrow: pa.DataType) -> bool:
    try:
        pa.scalar(value, arrow)
    except (pa.ArrowException, OverflowError, UnicodeError):
        return False
    return True


def text_bytes(column: pa.Array) -> Any:
    """All bytes of a column of texts, one after the other."""
    if len(column) == 0 or column.buffers()[2] is None:
        return np.empty(0, np.uint8)
    edges = np.frombuffer(column.buffers()[1], np.int32)
    start, end = edges[column.offset], edges[column.offset + len(column)]
    return np.frombuffer(column.buffers()[2], np.uint8)[start:end]


def is_ascii(column: pa.Array) -> bool:
    """Whether no text has a character outside of ASCII."""
    found = text_bytes(column)
    return bool(len(found) == 0 or found.max() < _PLAIN)
