"""CSV lines as columns."""

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from penstock.schemas.errors import SchemaError
from penstock.spark.formats import Csv, Raw

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=8)


def columns(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


def decoded(format: Csv | Raw, *values: bytes | None) -> tuple[list[Any], dict[int, str]]:  # noqa: A002
    array, failures = format.decoder().decode(pa.array(values, pa.binary()))
    return array.to_pylist(), {failure.row: failure.reason for failure in failures}


@given(st.lists(TEXT, min_size=1, max_size=4), st.sampled_from(",;|\t"), st.booleans())
def test_lines_of_the_csv_module_are_read(
    cells: list[str], delimiter: str, all_quoted: bool
) -> None:
    out = io.StringIO()
    quoting = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    csv.writer(out, delimiter=delimiter, quoting=quoting).writerow(cells)
    kind = columns(**{f"c{n}": t.StringType() for n in range(len(cells))})
    rows, failures = decoded(Csv(kind, delimiter=delimiter), out.getvalue().encode())
    assert failures == {}
    assert [value or "" for value in rows[0].values()] == cells


PRICE = columns(
    symbol=t.StringType(),
    price=t.DecimalType(10, 2),
    size=t.IntegerType(),
    ratio=t.DoubleType(),
    open=t.BooleanType(),
    day=t.DateType(),
    at=t.TimestampType(),
)


def test_columns_have_their_types() -> None:
    line = b'"A ""B"", C",12.50,-3,1e3,TRUE,2026-01-02,2026-01-02T03:04:05Z\r\n'
    rows, failures = decoded(Csv(PRICE), line, None)
    assert failures == {}
    assert rows[0] == {
        "symbol": 'A "B", C',
        "price": Decimal("12.50"),
        "size": -3,
        "ratio": 1000.0,
        "open": True,
        "day": date(2026, 1, 2),
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    }
    assert rows[1] is None


def test_nothing_is_null_and_quotes_around_nothing_are_an_empty_text() -> None:
    kind = columns(a=t.StringType(), b=t.StringType(), c=t.LongType())
    assert decoded(Csv(kind), b',"",')[0] == [{"a": None, "b": "", "c": None}]
    assert decoded(Csv(kind, null="NA"), b'NA,"NA",NA')[0] == [{"a": None, "b": "NA", "c": None}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"a,1", "has 2 columns instead of 3"),
        (b"a,1,2,3", "has 4 columns instead of 3"),
        (b"a,x,2.5", "n is not a bigint: x"),
        (b"a,1_000,2.5", "n is not a bigint: 1_000"),
        (b"a,9223372036854775808,2.5", "n is not a 64-bit integer"),
        (b'"a,1,2', "out of place behind character 0"),
        (b'"a"b,1,2', "out of place behind character 0"),
        (b"a\nb,1,2", "out of place"),
        (b"\xff,1,2", "not UTF-8 at byte 0"),
    ],
)
def test_a_bad_line_says_why(line: bytes, reason: str) -> None:
    kind = columns(s=t.StringType(), n=t.LongType(), d=t.DoubleType())
    rows, failures = decoded(Csv(kind), b"ok,1,2", line)
    assert rows == [{"s": "ok", "n": 1, "d": 2.0}, None]
    assert reason in failures[1]


def test_what_csv_cannot_be_is_refused() -> None:
    with pytest.raises(SchemaError, match="one character"):
        Csv(PRICE, delimiter="::")
    with pytest.raises(SchemaError, match="must differ"):
        Csv(PRICE, delimiter='"')
    with pytest.raises(SchemaError, match="no form for a array<string>"):
        Csv(columns(a=t.ArrayType(t.StringType()))).decoder()
