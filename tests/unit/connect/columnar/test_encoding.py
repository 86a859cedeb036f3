"""Columns become the bytes that the converter gives for each value."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.columnar.arrow_schemas import arrow_schema_of, connect_value_of
from penstock.connect.columnar.encoding import ColumnEncoder
from penstock.connect.converters.json import JsonConverter
from penstock.connect.converters.numbers import ByteArrayConverter
from penstock.connect.converters.text import StringConverter
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.contract import Converter
from penstock.connect.values.logical import (
    DATE_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    decimal_schema,
)
from penstock.connect.values.schema import (
    BYTES_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaField,
    SchemaType,
)

_PARTS: dict[str, tuple[Schema, st.SearchStrategy[Any]]] = {
    "whole": (Schema(type=SchemaType.INT64), st.integers(-(2**63), 2**63 - 1)),
    "small": (Schema(type=SchemaType.INT8), st.integers(-128, 127)),
    "real": (Schema(type=SchemaType.FLOAT64), st.floats()),
    "flag": (Schema(type=SchemaType.BOOLEAN), st.booleans()),
    'te"xt': (Schema(type=SchemaType.STRING), st.text(st.characters(codec="utf-8"))),
    "bytes": (Schema(type=SchemaType.BYTES), st.binary(max_size=9)),
    "date": (DATE_SCHEMA, st.dates(datetime.date(1900, 1, 1))),
    "time": (
        TIME_SCHEMA,
        st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    ),
    "stamp": (
        TIMESTAMP_SCHEMA,
        st.integers(-(10**12), 10**13).map(
            lambda ms: (
                datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
                + datetime.timedelta(milliseconds=ms)
            )
        ),
    ),
    "decimal": (
        decimal_schema(2),
        st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2)),
    ),
}
_SCHEMA = Schema(
    type=SchemaType.STRUCT,
    fields=tuple(SchemaField(name, one.as_optional()) for name, (one, _) in _PARTS.items()),
)
_ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in _PARTS.items()}),
    min_size=1,
    max_size=5,
)


def one_by_one(converter: Converter, schema: Schema, rows: list[Any]) -> list[bytes | None]:
    return [converter.from_connect("t", schema, connect_value_of(schema, row)) for row in rows]


@pytest.mark.parametrize("schemas", ["true", "false"])
@pytest.mark.parametrize("decimals", ["BASE64", "NUMERIC"])
@given(rows=_ROWS)
def test_structs_are_the_same_json(schemas: str, decimals: str, rows: list[Any]) -> None:
    config = {"schemas.enable": schemas, "decimal.format": decimals}
    converter = JsonConverter(config, is_key=False)
    columns = arrow_schema_of(_SCHEMA)
    values = pa.array(rows, pa.struct(list(columns)))
    found = ColumnEncoder(converter).encode("t", _SCHEMA, values).to_pylist()
    assert found == one_by_one(converter, _SCHEMA, values.to_pylist())


@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_texts_are_the_same_bytes(texts: list[str]) -> None:
    for converter in (StringConverter({}, is_key=False), JsonConverter({}, is_key=False)):
        values = pa.array(texts, pa.string())
        found = ColumnEncoder(converter).encode("t", STRING_SCHEMA, values).to_pylist()
        assert found == [converter.from_connect("t", STRING_SCHEMA, one) for one in texts]


def test_bytes_stay_as_they_are() -> None:
    encoder = ColumnEncoder(ByteArrayConverter({}, is_key=False))
    assert encoder.encode("t", BYTES_SCHEMA, pa.array([b"\xff", b""])).to_pylist() == [b"\xff", b""]


def test_an_encoding_that_is_not_arrows_is_written_one_by_one() -> None:
    converter = StringConverter({"converter.encoding": "ISO-8859-1"}, is_key=False)
    found = ColumnEncoder(converter).encode("t", STRING_SCHEMA, pa.array(["é", "日"]))
    assert found.to_pylist() == [b"\xe9", b"?"]


def test_a_null_where_none_may_be_is_an_error_as_for_single_values() -> None:
    schema = Schema(
        type=SchemaType.STRUCT, fields=(SchemaField("n", Schema(type=SchemaType.INT64)),)
    )
    values = pa.array([{"n": 1}, {"n": None}], pa.struct([pa.field("n", pa.int64())]))
    with pytest.raises(DataError, match="null value for field that is required"):
        ColumnEncoder(JsonConverter({}, is_key=False)).encode("t", schema, values)


def test_a_null_becomes_the_default_of_its_field() -> None:
    part = Schema(type=SchemaType.INT64, default=7)
    schema = Schema(type=SchemaType.STRUCT, fields=(SchemaField("n", part),))
    values = pa.array([{"n": None}], pa.struct([pa.field("n", pa.int64())]))
    converter = JsonConverter({"schemas.enable": "false"}, is_key=False)
    assert ColumnEncoder(converter).encode("t", schema, values).to_pylist() == [b'{"n":7}']
