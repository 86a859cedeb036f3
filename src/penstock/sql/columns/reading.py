"""The bytes of keys and values as columns. What is not plainly of its format is in doubt."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.catalog.relations import DataFormat, RelationColumn
from penstock.sql.columns.cells import ARROW, Doubts, NotInColumns, cells_of
from penstock.sql.formats.codec import FormatCodec, FormatMisfit
from penstock.sql.formats.json_format import fields_spelt
from penstock.sql.types.kinds import BIGINT, BOOLEAN, BYTES, DOUBLE, INTEGER, STRING, DataType

_WIDTHS: Final[Mapping[DataType | None, int]] = {INTEGER: 4, BIGINT: 8, DOUBLE: 8}
_FORMS: Final[Mapping[DataType | None, str]] = {INTEGER: ">i4", BIGINT: ">i8", DOUBLE: ">f8"}
_JSON: Final = frozenset({BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING})
_BRACKETS_MAX: Final = 500
_SPELLINGS_MAX: Final = 16  # Of the objects of one batch; more are read one by one.


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """Columns of as many rows as there are bytes; NULL where there are no bytes."""

    arrays: Sequence[Any]  # None: a column of a type that Arrow has not here.
    doubts: Doubts = None


BytesReader = Callable[[Any], ReadColumns]


def reader_of(
    chosen: DataFormat, columns: Sequence[RelationColumn], codec: FormatCodec
) -> BytesReader:
    """What reads the columns of a format; NotInColumns for formats that ask a registry."""
    kinds = [column.type for column in columns]
    match chosen.name:
        case "KAFKA" | "NONE":
            if not columns:
                return lambda data: ReadColumns([])
            return _bare_reader(kinds[0])
        case "JSON" if _JSON.issuperset(kinds) and (chosen.is_wrapped or len(kinds) != 1):
            return _json_reader([column.name for column in columns], kinds)
        case "JSON" | "DELIMITED":
            return _codec_reader(kinds, codec)
    raise NotInColumns


# KAFKA


def _bare_reader(kind: DataType | None) -> BytesReader:
    if kind == STRING:
        return _texts
    if kind == BYTES:
        return lambda data: ReadColumns([data])
    if kind not in _WIDTHS:
        raise NotInColumns
    return lambda data: _numbers(data, kind)


def _texts(data: Any) -> ReadColumns:
    try:
        return ReadColumns([data.cast(pa.string())])
    except pa.ArrowInvalid:
        return _some_texts(data)


def _some_texts(data: Any) -> ReadColumns:
    """Where some bytes are no UTF-8."""
    found, bad = [], []
    for cell in data.to_pylist():
        text, is_bad = _decoded(cell)
        found.append(text)
        bad.append(is_bad)
    return ReadColumns([pa.array(found, pa.string())], np.array(bad, bool))


def _decoded(cell: bytes | None) -> tuple[str | None, bool]:
    try:
        return None if cell is None else cell.decode(), False
    except UnicodeDecodeError:
        return None, True


def _numbers(data: Any, kind: DataType | None) -> ReadColumns:
    fits = pc.fill_null(pc.equal(pc.binary_length(data), _WIDTHS[kind]), False)
    whole = data.filter(fits)
    numbers = np.frombuffer(b"".join(whole.to_pylist()), _FORMS[kind])
    has, values = fits.to_numpy(zero_copy_only=False), np.zeros(len(data), numbers.dtype)
    values[has] = numbers
    column = pa.array(values.astype(numbers.dtype.newbyteorder("=")), mask=~has)
    misfits = ~has & data.is_valid().to_numpy(zero_copy_only=False)
    return ReadColumns([column.cast(ARROW[kind])], misfits if misfits.any() else None)


# Any format, cell by cell


def _codec_reader(kinds: Sequence[DataType | None], codec: FormatCodec) -> BytesReader:
    nothing = [None] * len(kinds)

    def read(data: Any) -> ReadColumns:
        rows, bad = [], np.zeros(len(data), bool)
        for at, cell in enumerate(data.to_pylist()):
            try:
                rows.append(nothing if cell is None else codec.read(cell))
            except (FormatMisfit, ValueError, TypeError):
                rows.append(nothing)
                bad[at] = True
        columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
        return _gathered(columns, kinds, bad if bad.any() else None)

    return read


def _gathered(
    columns: Iterable[Sequence[Any]], kinds: Sequence[DataType | None], doubts: Doubts
) -> ReadColumns:
    arrays: list[Any] = []
    for values, kind in zip(columns, kinds, strict=True):
        if kind not in ARROW:
            arrays.append(None)
            continue
        cells = cells_of(values, kind, doubts)
        arrays.append(cells.values)
        doubts = cells.doubts
    return ReadColumns(arrays, doubts)


# JSON


def _json_reader(names: Sequence[str], kinds: Sequence[DataType | None]) -> BytesReader:
    """Objects whose fields have the columns' own types; numbers written as strings are in doubt."""

    def read(data: Any) -> ReadColumns:
        objects, doubts = _objects(data)
        columns = [
            _with_fractions(values) if kind == DOUBLE else values
            for values, kind in zip(_fields(objects, names), kinds, strict=True)
        ]
        return _gathered(columns, kinds, doubts)

    return read


_NOTHING: Final[dict[str, Any]] = {}


def _objects(data: Any) -> tuple[list[dict[str, Any]], Doubts]:
    cells = data.to_pylist()
    try:
        if _has_long(data) and any(map(_may_nest_deep, cells)):
            raise TypeError
        found = list(map(orjson.loads, cells))
        if set(map(type, found)) <= {dict}:
            return found, None
    except (orjson.JSONDecodeError, TypeError):
        pass
    found = [_object(cell) for cell in cells]
    bad = [one is None for one in found]
    return [one or _NOTHING for one in found], np.array(bad, bool)


def _has_long(data: Any) -> bool:
    longest: int | None = pc.max(pc.binary_length(data)).as_py()
    return longest is not None and longest > _BRACKETS_MAX


def _may_nest_deep(cell: bytes) -> bool:
    """Whether a row's own way might find more levels than it can read."""
    is_long = len(cell) > _BRACKETS_MAX
    return is_long and cell.count(b"[") + cell.count(b"{") > _BRACKETS_MAX


def _object(cell: bytes | None) -> dict[str, Any] | None:
    """None where there is none that everybody reads alike."""
    if cell is None:
        return _NOTHING
    if _may_nest_deep(cell):
        return None
    try:
        found = orjson.loads(cell)
    except orjson.JSONDecodeError:
        return None
    return found if type(found) is dict else None


def _fields(objects: list[dict[str, Any]], names: Sequence[str]) -> list[list[Any]]:
    """The columns; where objects spell their fields alike, each by one look."""
    if not objects:
        return [[] for _ in names]
    shapes = set(map(tuple, objects))
    if len(shapes) > _SPELLINGS_MAX:
        return _one_by_one(objects, names)
    spellings = [fields_spelt(names, shape) for shape in shapes]
    taken: list[set[Any]] = [
        {one for one in choices if one is not None} for choices in zip(*spellings, strict=True)
    ]
    if any(len(fields) > 1 for fields in taken):
        return _one_by_one(objects, names)
    chosen: list[Any] = [next(iter(fields), None) for fields in taken]  # No field is None.
    return [[one.get(field) for one in objects] for field in chosen]


def _one_by_one(objects: list[dict[str, Any]], names: Sequence[str]) -> list[list[Any]]:
    rows = [[one.get(field) for field in fields_spelt(names, tuple(one))] for one in objects]
    return [list(column) for column in zip(*rows, strict=True)]


def _with_fractions(values: list[Any]) -> list[Any]:
    """Numbers as doubles, those too that are written without a point."""
    if int not in set(map(type, values)):
        return values
    return [float(value) if type(value) is int else value for value in values]
