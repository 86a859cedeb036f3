"""JSON values as columns: both ways of reading agree, and a bad record is named among good ones."""

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from penstock.schemas.errors import DecodeError, SchemaError
from penstock.schemas.wire_header import write_header
from penstock.spark.formats import Json
from penstock.spark.formats.format import arrow_type, decode_each
from penstock.spark.formats.json_format import JsonDecoder, read_together
from penstock.spark.formats.json_values import converter, infer, loads


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


ORDER = struct(
    id=t.LongType(),
    shop=t.StringType(),
    ratio=t.DoubleType(),
    paid=t.BooleanType(),
    tags=t.ArrayType(t.StringType()),
    line=struct(sku=t.StringType(), count=t.IntegerType()),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ORDERS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        "shop": st.none() | TEXT,
        "ratio": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "paid": st.none() | st.booleans(),
        "tags": st.none() | st.lists(st.none() | TEXT, max_size=3),
        "line": st.none() | st.fixed_dictionaries({}, optional={"count": st.integers(0, 9)}),
        "more": st.recursive(st.none() | TEXT, lambda inner: st.lists(inner, max_size=2)),
    },
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
BROKEN = [
    b"",
    b"{",
    b"{}{}",
    b"{}\n{}",
    b'{"id":1}]',
    b"[1",
    b'{"id":"x"}',
    b"7",
    b'"\xff"',
    b"\x00",
]


def binary(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


def whole(value: dict[str, Any]) -> dict[str, Any]:
    """With every column, as Spark has it."""
    line = value.get("line")
    names = [field.name for field in ORDER.fields]
    row = {name: value.get(name) for name in names}
    row["line"] = None if line is None else {"sku": None, "count": line.get("count")}
    return row


@given(st.lists(st.none() | ORDERS, max_size=10), st.sampled_from([None, 2]))
def test_values_become_rows_in_order(orders: list[dict[str, Any] | None], indent: int) -> None:
    values = [None if o is None else json.dumps(o, indent=indent).encode() for o in orders]
    decoded = JsonDecoder(ORDER, framed=False).decode(binary(*values))
    assert decoded.failures == []
    assert decoded.array.type == arrow_type(ORDER)
    assert decoded.array.to_pylist() == [None if o is None else whole(o) for o in orders]


@given(st.lists(ORDERS.map(json.dumps).map(str.encode) | st.sampled_from(BROKEN), max_size=200))
def test_a_bad_record_fails_alone_wherever_it_is(values: list[bytes]) -> None:
    decoded = JsonDecoder(ORDER, framed=False).decode(binary(*values))
    assert [failure.row for failure in decoded.failures] == [
        row for row, value in enumerate(values) if value in BROKEN
    ]
    good = [None if v in BROKEN else whole(json.loads(v)) for v in values]
    assert decoded.array.to_pylist() == good


@given(st.lists(JSON.map(json.dumps).map(str.encode) | st.binary(max_size=12), max_size=6))
def test_what_is_read_together_is_what_is_read_alone(values: list[bytes]) -> None:
    for kind in (ORDER, t.LongType(), t.StringType(), t.ArrayType(t.DoubleType())):
        target = arrow_type(kind)
        together = read_together(binary(*values), pa.schema([("v", pa.list_(target))]))
        if together is None:
            continue
        convert = converter(kind)
        alone = decode_each(binary(*values), lambda d, c=convert: c(loads(d)), target, target)  # type: ignore[misc]
        assert alone.failures == []
        assert repr(together.cast(target).to_pylist()) == repr(alone.array.to_pylist())


def test_values_that_only_look_like_one_when_joined_are_refused() -> None:
    decoded = JsonDecoder(ORDER, framed=False).decode(
        binary(b'{"id":1},{"id":2}', b'{"id":3', b"}", b"{}]}\n" + b'{"v":[{}')
    )
    assert [failure.row for failure in decoded.failures] == [0, 1, 2, 3]


def test_types_that_json_lacks_are_written_as_text() -> None:
    kind = struct(
        at=t.TimestampType(),
        local=t.TimestampNTZType(),
        day=t.DateType(),
        cents=t.DecimalType(12, 2),
        mark=t.BinaryType(),
        counts=t.MapType(t.StringType(), t.LongType()),
        any=t.StringType(),
        real=t.FloatType(),
    )
    text = json.dumps(
        {
            "at": "2026-01-02T03:04:05.123456+02:00",
            "local": "2026-01-02T03:04:05",
            "day": "2026-01-02",
            "cents": "12.50",
            "mark": base64.b64encode(b"\x00\xff").decode(),
            "counts": {"a": 1, "b": None},
            "any": {"x": [1, 2.5]},
            "real": "NaN",
        }
    )
    (row,) = JsonDecoder(kind, framed=False).decode(binary(text.encode())).array.to_pylist()
    assert row["at"] == datetime(2026, 1, 2, 1, 4, 5, 123456, tzinfo=UTC)
    assert row["local"] == datetime(2026, 1, 2, 3, 4, 5)
    assert (row["day"], row["cents"]) == (date(2026, 1, 2), Decimal("12.50"))
    assert (row["mark"], row["counts"]) == (b"\x00\xff", [("a", 1), ("b", None)])
    assert (row["any"], str(row["real"])) == ('{"x": [1, 2.5]}', "nan")


def test_decimals_keep_all_their_digits() -> None:
    kind = struct(n=t.DecimalType(38, 18))
    value = b'{"n": 12345678901234567890.123456789012345678}'
    (row,) = JsonDecoder(kind, framed=False).decode(binary(value)).array.to_pylist()
    assert str(row["n"]) == "12345678901234567890.123456789012345678"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"id": 1.5}', "id is not a 64-bit integer: 1.5"),
        (b'{"id": true}', "id is not a 64-bit integer: true"),
        (b'{"id": 9223372036854775808}', "id is not a 64-bit integer"),
        (b'{"line": {"count": 2147483648}}', "line.count is not a 32-bit integer"),
        (b'{"line": []}', "line is not an object"),
        (b'{"tags": "a"}', "tags is not an array"),
        (b'{"paid": 1}', "paid is not a boolean: 1"),
        (b'{"ratio": "1"}', "ratio is not a double: 1"),
        (b"[]", "the value is not an object"),
        (b"{", "this is not JSON: .*line 1 column 2"),
        (b"\xff", "not UTF-8: invalid start byte at byte 0"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"shop": "\\ud800"}', "does not fit its column"),
    ],
)
def test_the_reason_names_the_field(value: bytes, reason: str) -> None:
    (failure,) = JsonDecoder(ORDER, framed=False).decode(binary(value)).failures
    with pytest.raises(DecodeError, match=reason):
        raise DecodeError(failure.reason)
    assert failure.error_class == "penstock.schemas.errors.DecodeError"


def test_a_framed_value_is_read_behind_its_header() -> None:
    values = binary(write_header(7) + b'{"id":1}', b'{"id":2}', None, write_header(7) + b"x")
    decoded = JsonDecoder(struct(id=t.LongType()), framed=True).decode(values)
    assert [failure.row for failure in decoded.failures] == [1, 3]
    assert decoded.array.to_pylist() == [{"id": 1}, None, None, None]


@given(st.lists(JSON, min_size=1, max_size=5))
def test_an_inferred_schema_reads_its_samples(samples: list[Any]) -> None:
    values = [loads(json.dumps(sample).encode()) for sample in samples]
    convert = converter(infer(values))
    for value in values:
        convert(value)


def test_inference_widens_as_little_as_it_can() -> None:
    samples = [
        {"a": 1, "b": None, "c": [1]},
        {"a": 2.5, "c": [None, 2], "d": {"x": "y"}},
        {"d": {}},
    ]
    assert infer(samples).simpleString() == (
        "struct<a:double,b:string,c:array<bigint>,d:struct<x:string>>"
    )
    assert infer([1, "x"]).simpleString() == "string"


def test_a_stream_cannot_be_looked_into_for_its_schema() -> None:
    with pytest.raises(SchemaError, match=r"for a stream, give one"):
        Json().spark_type()


def test_a_type_that_json_cannot_hold_is_refused_at_once() -> None:
    with pytest.raises(SchemaError, match="no form for interval"):
        JsonDecoder(struct(a=t.DayTimeIntervalType()), framed=False)
    with pytest.raises(SchemaError, match="keys of a JSON object are strings"):
        JsonDecoder(struct(a=t.MapType(t.LongType(), t.LongType())), framed=False)
