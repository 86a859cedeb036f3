"""Bytes as columns: read as the codec reads them, or in doubt."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.catalog.relations import DataFormat, RelationColumn
from penstock.sql.columns.cells import NotInColumns
from penstock.sql.columns.reading import reader_of
from penstock.sql.formats.codec import FormatMisfit
from penstock.sql.formats.serdes import codec_of
from penstock.sql.types.kinds import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, DataType, DecimalOf

KINDS = {"A": INTEGER, "B": BIGINT, "C": DOUBLE, "S": STRING, "T": BOOLEAN}
COLUMNS = [RelationColumn(name, kind) for name, kind in KINDS.items()]
JSON = DataFormat("JSON")


def read(cells: list[bytes | None], columns: list[RelationColumn] = COLUMNS) -> list[Any]:
    """The values of each row; None for one in doubt."""
    reader = reader_of(JSON, columns, codec_of(JSON, columns, "", None))
    found = reader(pa.array(cells, pa.binary()))
    doubts = [False] * len(cells) if found.doubts is None else found.doubts.tolist()
    rows = zip(*(array.to_pylist() for array in found.arrays), strict=True)
    return [None if doubt else list(row) for row, doubt in zip(rows, doubts, strict=True)]


@pytest.mark.parametrize(
    "cell",
    [
        b'{"A":"1"}', b'{"A":1.0}', b'{"A":2147483648}', b'{"A":true}',
        b'{"B":9223372036854775808}',
        b'{"C":"1"}', b'{"C":true}', b'{"C":1e400}', b'{"S":1}', b'{"S":{}}', b'{"T":1}', b"[]",
        b'{"B":1,"x":' + b"[" * 600 + b"]" * 600 + b"}",
        b'{"S":"\\ud800"}', b"", b"{", b'\xef\xbb\xbf{"A":1}', b"nonsense", b"null", b"NaN",
    ],
)  # fmt: skip
def test_what_is_not_plainly_of_the_columns_is_in_doubt(cell: bytes) -> None:
    plain = b'{"A":1,"B":2,"C":3,"S":"x","T":true}'
    assert read([plain, cell, plain]) == [[1, 2, 3.0, "x", True], None, [1, 2, 3.0, "x", True]]


def test_fields_are_found_in_other_cases_in_each_object_by_itself() -> None:
    cells: list[bytes | None] = [b'{"a":1}', b'{"A":2,"a":3}', b'{"a":4,"S":"x"}', b"{}"]
    assert [row[0] for row in read(cells)] == [1, 2, 4, None]


NAMES = st.sampled_from(["A", "a", "B", "b", "C", "S", "s", "T", "other", ""])
VALUES = st.sampled_from(
    [b"1", b"-7", b"2.5", b"1E3", b"-0", b"0.1", b'"x"', b'"\\u00df"', b"true", b"null", b"[1]",
     b"12345678901234567890123", b"9007199254740993.0", b"-1e-99999999999999999999",
     b"1e99999999999999999999", b"1e999999999"]
)  # fmt: skip
OBJECTS = st.lists(st.tuples(NAMES, VALUES), max_size=5).map(
    lambda fields: b"{" + b",".join(b'"%s":%s' % (n.encode(), v) for n, v in fields) + b"}"
)


@given(st.lists(OBJECTS, min_size=1, max_size=12))
def test_what_is_not_in_doubt_is_what_the_codec_reads(cells: list[bytes]) -> None:
    codec = codec_of(JSON, COLUMNS, "", None)
    for cell, row in zip(cells, read([*cells]), strict=True):
        if row is None:
            continue
        try:
            assert repr(row) == repr(codec.read(cell))
        except FormatMisfit:
            pytest.fail(f"{cell!r} was read as {row}")


def test_columns_of_other_types_are_read_by_the_codec_and_not_shown() -> None:
    kinds: list[DataType] = [DecimalOf(4, 2), STRING]
    columns = [RelationColumn(f"C{at}", kind) for at, kind in enumerate(kinds)]
    reader = reader_of(JSON, columns, codec_of(JSON, columns, "", None))
    found = reader(pa.array([b'{"C0":1.5,"C1":"x"}', b'{"C0":100.5,"C1":"x"}']))
    assert found.arrays[0] is None and found.arrays[1].to_pylist() == ["x", None]
    assert found.doubts.tolist() == [False, True]


def test_a_format_that_asks_a_registry_is_not_read_in_columns() -> None:
    with pytest.raises(NotInColumns):
        reader_of(DataFormat("AVRO"), COLUMNS, codec_of(JSON, COLUMNS, "", None))
