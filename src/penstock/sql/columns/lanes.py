"""Queries of one stream as lanes: bytes of a batch in, bytes of its results out.

A lane reads, filters and projects in columns. A row that could fail anywhere on its way, or that
the columns cannot read, is left to the steps of the query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.catalog.relations import ROWOFFSET, ROWPARTITION, ROWTIME
from penstock.sql.columns.cells import Cells, ColumnExpression, RowFrame, all_of, either, trues
from penstock.sql.columns.reading import BytesReader
from penstock.sql.columns.writing import BytesWriter
from penstock.streams.values.lanes import LaneRows
from penstock.streams.values.windows import FAR_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicColumns:
    """The rows of a stream's topic."""

    keys: Sequence[str]
    values: Sequence[str]
    read_key: BytesReader
    read_value: BytesReader

    def read(self, batch: Any) -> tuple[RowFrame, Any]:
        """The rows, and which of them are in doubt."""
        keys, values = self.read_key(batch["key"]), self.read_value(batch["value"])
        columns = dict(zip(self.values, values.arrays, strict=True))
        columns |= dict(zip(self.keys, keys.arrays, strict=True))
        columns[ROWTIME] = batch["timestamp"]
        columns[ROWPARTITION] = batch["partition"].cast(pa.int64())
        columns[ROWOFFSET] = batch["offset"]
        left = _flags(batch["value"].is_null()) | ~_flags(_in_reach(batch["timestamp"]))
        for found in (keys, values):
            left = left if found.doubts is None else left | found.doubts
        has = {name: column for name, column in columns.items() if column is not None}
        return RowFrame(len(batch), has), left


def _in_reach(times: Any) -> Any:
    """Whether windows can be reckoned with in 64 bits."""
    return pc.and_(pc.greater_equal(times, 0), pc.less(times, FAR_MS))


def _flags(values: Any) -> Any:
    return values.to_numpy(zero_copy_only=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWay:
    """The bytes of the key of what comes out."""

    parts: Sequence[ColumnExpression] | None  # None: the key that the record had.
    names: Sequence[str]  # Where the record's own key lies.
    write: BytesWriter

    def made(self, frame: RowFrame, had: Any) -> Cells:
        """The bytes; `had` are those of the records' own keys."""
        if self.parts is None:
            arrays = [frame.columns[name] for name in self.names]
            written = self.write(arrays, frame.size)
            return Cells(_unless(had.is_null(), written) if had.null_count else written)
        cells = [part.evaluate(frame) for part in self.parts]
        arrays = [one.array(frame.size) for one in cells]
        written = self.write(arrays, frame.size)
        if len(arrays) == 1 and arrays[0].null_count:
            written = _unless(arrays[0].is_null(), written)  # One column that is NULL is no key.
        return Cells(written, all_of(cells))


def _unless(absent: Any, written: Any) -> Any:
    return pc.if_else(absent, pa.scalar(None, pa.binary()), written)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLane:
    """WHERE, and what is made of the rows it lets through."""

    source: TopicColumns
    where: ColumnExpression | None
    key: KeyWay
    values: Sequence[ColumnExpression]
    write: BytesWriter | None  # None: the values are added up.
    needed: frozenset[str]  # The columns that keys and values are made of.

    def taken(self, batch: Any) -> LaneRows:
        """What comes to the end of the lane."""
        frame, left = self.source.read(batch)
        passes, left = self._passing(frame, left)
        places = np.flatnonzero(passes)
        kept = self._only_needed(frame).taken(pa.array(places))
        had = batch["key"].take(pa.array(places))
        key = self.key.made(kept, had)
        cells = [value.evaluate(kept) for value in self.values]
        arrays = [one.array(kept.size) for one in cells]
        doubts = all_of([key, *cells])
        if self.write is not None:
            made = [key.values, self.write(arrays, kept.size)]
            return _rows(left, places, made, doubts)
        absent, nothing = _flags(had.is_null()), _flags(key.values.is_null())
        doubts = either(doubts, nothing & ~absent)  # A key without bytes.
        return _rows(left, places, [key.values, *arrays], doubts, absent)

    def _passing(self, frame: RowFrame, left: Any) -> tuple[Any, Any]:
        if self.where is None:
            return ~left, left
        asked = self.where.evaluate(frame)
        left = left if asked.doubts is None else left | asked.doubts
        return trues(asked.values, frame.size) & ~left, left

    def _only_needed(self, frame: RowFrame) -> RowFrame:
        columns: Mapping[str, Any] = frame.columns
        return RowFrame(frame.size, {name: columns[name] for name in self.needed})


def _rows(
    left: Any, places: Any, columns: Sequence[Any], doubts: Any, dropped: Any = None
) -> LaneRows:
    """The rows without those in doubt, which are left, and those that nobody wants."""
    if doubts is not None:
        left = left.copy()
        left[places[doubts]] = True
    gone = either(doubts, dropped)
    if gone is not None and gone.any():
        kept = pa.array(~gone)
        places, columns = places[~gone], [column.filter(kept) for column in columns]
    key, *others = columns
    return LaneRows(places=places, left=np.flatnonzero(left), key=key, columns=others)
