"""How a table's columns may follow its data."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lake.columns.schema import (
    conform,
    conform_array,
    is_only_growth,
    lake_schema,
    unify,
    wider,
)
from penstock.lake.errors import IncompatibleSchema, LakeError

SCALARS = [
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.decimal128(10, 2),
    pa.decimal128(12, 0),
]
types = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(lambda kind: pa.list_(pa.field("element", kind))),
        st.dictionaries(st.sampled_from("xyz"), inner, min_size=1).map(
            lambda fields: pa.struct([pa.field(name, kind) for name, kind in fields.items()])
        ),
    ),
    max_leaves=4,
)


@given(types, types)
def test_the_wider_type_is_a_fixed_point(one: pa.DataType, other: pa.DataType) -> None:
    try:
        both = wider(one, other)
    except IncompatibleSchema:
        return
    assert wider(both, one).equals(both)
    assert wider(both, other).equals(both)


@given(types, types)
def test_an_array_of_nulls_fits_into_the_wider_type(one: pa.DataType, other: pa.DataType) -> None:
    try:
        both = wider(one, other)
    except IncompatibleSchema:
        return
    assert conform_array(pa.nulls(3, one), both).to_pylist() == [None] * 3


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int8(), pa.int64()),
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.float32(), pa.int32(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(12, 0), pa.decimal128(14, 2)),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.null(), pa.string(), pa.string()),
    ],
)
def test_types_that_widen(old: pa.DataType, new: pa.DataType, both: pa.DataType) -> None:
    assert wider(old, new).equals(both)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int64(), pa.string()),
        (pa.string(), pa.int64()),
        (pa.bool_(), pa.int64()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.decimal128(38, 0), pa.decimal128(10, 10)),
        (pa.list_(pa.int64()), pa.int64()),
    ],
)
def test_types_that_do_not(old: pa.DataType, new: pa.DataType) -> None:
    with pytest.raises(IncompatibleSchema):
        wider(old, new)


def test_columns_keep_their_order_and_new_ones_come_last() -> None:
    table = pa.schema([("b", pa.int32()), ("a", pa.string())])
    data = pa.schema([("z", pa.bool_()), ("a", pa.string()), ("b", pa.int64())])
    assert unify(table, data) == pa.schema(
        [("b", pa.int64()), ("a", pa.string()), ("z", pa.bool_())]
    )


def test_columns_that_differ_only_in_case_are_refused() -> None:
    with pytest.raises(LakeError, match="Id and id differ only in case"):
        unify(pa.schema([("Id", pa.int64())]), pa.schema([("id", pa.int64())]))


def test_columns_of_unknown_type_are_left_out() -> None:
    data = pa.schema(
        [("a", pa.null()), ("b", pa.list_(pa.null())), ("c", pa.struct([])), ("d", pa.int64())]
    )
    assert lake_schema(data).names == ["d"]


def test_growth_inside_a_struct_is_growth_and_a_wider_type_is_not() -> None:
    table = pa.schema([("s", pa.struct([("x", pa.int32())]))])
    more = pa.schema([("s", pa.struct([("x", pa.int32()), ("y", pa.string())]))])
    wide = pa.schema([("s", pa.struct([("x", pa.int64())]))])
    assert is_only_growth(table, more)
    assert not is_only_growth(table, wide)


def test_nested_values_conform_with_their_nulls_and_slices() -> None:
    lists = pa.array([[{"x": 1}], None, [], [{"x": 2}, None]])
    wanted = pa.list_(pa.field("element", pa.struct([("x", pa.float64()), ("y", pa.string())])))
    batch = pa.RecordBatch.from_pydict({"l": lists}).slice(1)
    assert conform(batch, pa.schema([("l", wanted)]))["l"].to_pylist() == [
        None,
        [],
        [{"x": 2.0, "y": None}, None],
    ]


def test_times_and_durations_become_microseconds() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "took": pa.array([1, None], pa.duration("s")),
            "clock": pa.array([1, None], pa.time32("ms")),
            "inner": pa.array([{"took": 5}, None], pa.struct([("took", pa.duration("us"))])),
        }
    )
    schema = lake_schema(batch.schema)
    assert [field.type for field in schema][:2] == [pa.int64(), pa.int64()]
    assert conform(batch, schema).to_pylist() == [
        {"took": 1_000_000, "clock": 1_000, "inner": {"took": 5}},
        {"took": None, "clock": None, "inner": None},
    ]
