"""Protobuf messages as columns: types, presence, the list of message indexes."""

import pickle
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.schemas.protos import add, shop_file, shop_set

from penstock.schemas.errors import EncodeError, SchemaError
from penstock.schemas.lookup import SchemaDirectory
from penstock.schemas.protobuf import ProtobufSchema
from penstock.schemas.wire_header import write_header, write_message_indexes
from penstock.spark.formats import Protobuf
from penstock.spark.formats.format import arrow_type

ORDER = Protobuf(shop_set(), "shop.Order")
MESSAGE = ProtobufSchema.of(shop_set(), "shop.Order").message_class
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
LONG, INT = st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1)
LINES = st.fixed_dictionaries({"sku": TEXT, "count": st.integers(0, 2**32 - 1)})
ROWS = st.fixed_dictionaries(
    {
        "id": LONG,
        "units": INT,
        "big": st.integers(0, 2**64 - 1).map(Decimal),
        "signed": LONG,
        "paid": st.booleans(),
        "ratio": st.floats(allow_nan=False),
        "small": st.floats(width=32, allow_nan=False),
        "shop": TEXT,
        "mark": st.binary(max_size=4),
        "state": st.sampled_from(["NEW", "PAID", "SENT", "17"]),
        "first": st.none() | LINES,
        "ordered_at": st.none()
        | st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1)).map(
            lambda m: m.replace(tzinfo=UTC)
        ),
        "took": st.none() | st.timedeltas(timedelta(days=-9999), timedelta(days=9999)),
        "discount": st.none() | st.floats(allow_nan=False),
        "extra": st.none() | st.just('{"a": [1.0, null, "x"]}'),
        "lines": st.lists(LINES, max_size=3),
        "tags": st.lists(TEXT, max_size=3),
        "counts": st.dictionaries(TEXT, INT, max_size=3).map(lambda d: sorted(d.items())),
        "named": st.dictionaries(TEXT, LINES, max_size=2).map(lambda d: sorted(d.items())),
        "note": st.none() | TEXT,
    }
)


def rows_of(array: pa.Array) -> list[dict[str, Any]]:
    """Maps have no order on the wire."""
    rows = array.to_pylist()
    for row in rows:
        if row is not None:
            row.update({name: sorted(row[name]) for name in ("counts", "named")})
    return rows


@given(st.lists(st.none() | ROWS, max_size=4))
def test_every_type_comes_back(rows: list[dict[str, Any] | None]) -> None:
    order = pickle.loads(pickle.dumps(ORDER))
    values = pa.array(rows, arrow_type(order.spark_type()))
    encoded = order.encoder(order.spark_type()).encode(values)
    decoded = order.decoder().decode(encoded)
    assert decoded.failures == []
    assert rows_of(decoded.array) == rows_of(values)


def test_types_are_mapped_as_documented() -> None:
    line = "struct<sku:string,count:bigint>"
    assert ORDER.spark_type().simpleString() == (
        "struct<id:bigint,units:int,big:decimal(20,0),signed:bigint,paid:boolean,ratio:double,"
        f"small:float,shop:string,mark:binary,state:string,first:{line},ordered_at:timestamp,"
        f"took:interval day to second,discount:double,extra:string,lines:array<{line}>,"
        f"tags:array<string>,counts:map<string,int>,named:map<string,{line}>,note:string>"
    )


def decoded_one(order: Protobuf, data: bytes) -> Any:
    result = order.decoder().decode(pa.array([data], pa.binary()))
    assert result.failures == []
    return result.array.to_pylist()[0]


def test_only_fields_that_can_tell_are_null_when_not_set() -> None:
    row = decoded_one(ORDER, b"")
    null = {name for name, value in row.items() if value is None}
    assert null == {"first", "ordered_at", "took", "discount", "extra", "note"}
    assert (row["id"], row["state"], row["lines"]) == (0, "NEW", [])
    assert decoded_one(ORDER, MESSAGE(note="", first={}).SerializeToString())["note"] == ""


def test_times_are_read_to_the_microsecond() -> None:
    message = MESSAGE()
    message.ordered_at.seconds, message.ordered_at.nanos = -1, 999_999_999
    message.took.seconds, message.took.nanos = -1, -500_000_000
    row = decoded_one(ORDER, message.SerializeToString())
    assert row["ordered_at"] == datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert row["took"] == timedelta(seconds=-1.5)


def failures(order: Protobuf, *values: bytes) -> list[str]:
    result = order.decoder().decode(pa.array(values, pa.binary()))
    return [failure.reason for failure in result.failures]


def test_a_broken_message_is_a_bad_record() -> None:
    assert failures(ORDER, b"\xff\xff", b"") == ["the bytes are not a Protobuf message shop.Order"]


def test_a_framed_value_must_be_the_message_that_is_wanted() -> None:
    order = Protobuf(shop_set(), "shop.Order", framed=True)
    body = MESSAGE(id=5).SerializeToString()
    right = write_header(3) + write_message_indexes([1]) + body
    assert decoded_one(order, right)["id"] == 5
    wrong = write_header(3) + write_message_indexes([0]) + body
    assert failures(order, wrong, body) == [
        "the value is message [0] of schema 3; shop.Order is [1] of its own",
        "2 bytes are too few for the header that names the schema (5 bytes)",
    ]


def test_written_values_carry_id_and_place() -> None:
    order = Protobuf(shop_set(), "shop.Order.Line", framed=True, schema_id=9)
    rows = pa.array([{"sku": "a", "count": 2}], arrow_type(order.spark_type()))
    (data,) = order.encoder(order.spark_type()).encode(rows).to_pylist()
    assert data[:8] == write_header(9) + b"\x04\x02\x00"
    assert decoded_one(order, data) == {"sku": "a", "count": 2}


@pytest.fixture
def directory(tmp_path: Path) -> SchemaDirectory:
    """Schema 1 is shop.proto; in schema 2 the messages stand in another order."""
    (tmp_path / "1.desc").write_bytes(shop_set())
    moved = shop_file()
    refund = moved.message_type[0]
    del moved.message_type[0]
    moved.message_type.append(refund)
    moved_set = descriptor_pb2.FileDescriptorSet(file=[moved])
    (tmp_path / "2.desc").write_bytes(moved_set.SerializeToString())
    return SchemaDirectory(tmp_path)


def test_a_message_that_moved_is_found_by_its_schema(directory: SchemaDirectory) -> None:
    order = Protobuf(message="shop.Order", lookup=directory, schema_id=1)
    body = MESSAGE(id=5).SerializeToString()
    for schema_id, place in ((1, 1), (2, 0)):
        data = write_header(schema_id) + write_message_indexes([place]) + body
        assert decoded_one(order, data)["id"] == 5
    wrong = write_header(2) + write_message_indexes([1]) + body
    unknown = write_header(3) + write_message_indexes([1]) + body
    found = failures(order, wrong, unknown)
    assert found[0] == "the value is a shop.Refund (message [1] of schema 2), not a shop.Order"
    assert "no schema with id 3" in found[1]


def test_a_generated_class_and_a_file_are_taken_too(tmp_path: Path) -> None:
    file = tmp_path / "shop.desc"
    file.write_bytes(shop_set())
    assert Protobuf(MESSAGE).spark_type() == ORDER.spark_type()
    assert Protobuf(str(file), "shop.Order").spark_type() == ORDER.spark_type()
    with pytest.raises(SchemaError, match="cannot be read"):
        Protobuf(tmp_path / "missing.desc")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"state": "LOST"}, "no value LOST"),
        ({"big": Decimal(-1)}, "big"),
        ({"tags": ["a", None]}, "holds a null"),
        ({"extra": "{"}, "extra|Struct"),
    ],
)
def test_a_value_that_the_message_cannot_hold_is_refused(row: dict[str, Any], reason: str) -> None:
    values = pa.array([row], arrow_type(ORDER.spark_type()))
    with pytest.raises(EncodeError, match=reason):
        ORDER.encoder(ORDER.spark_type()).encode(values)


def test_a_message_without_columns_is_refused() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="a", syntax="proto3")
    file.message_type.add(name="Empty")
    add(file.message_type.add(name="Tree"), "left", "a.Tree")
    data = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    with pytest.raises(SchemaError, match=r"a\.Empty has no fields"):
        Protobuf(data, "a.Empty").spark_type()
    with pytest.raises(SchemaError, match=r"a\.Tree contains itself"):
        Protobuf(data, "a.Tree").spark_type()


def test_contradictions_are_refused() -> None:
    with pytest.raises(SchemaError, match="needs a descriptor set"):
        Protobuf().spark_type()
    with pytest.raises(SchemaError, match="without framed=True"):
        Protobuf(shop_set(), schema_id=1)
    with pytest.raises(SchemaError, match="schema_id="):
        Protobuf(shop_set(), framed=True).encoder(ORDER.spark_type())
