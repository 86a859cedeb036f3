"""Avro values as columns: types, unions, resolution by the header's id."""

import pickle
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from penstock.schemas.avro import AvroWriter, parse
from penstock.schemas.errors import EncodeError, SchemaError
from penstock.schemas.lookup import SchemaDirectory
from penstock.schemas.wire_header import write_header
from penstock.spark.formats import Avro
from penstock.spark.formats.avro_types import avro_schema, mapped
from penstock.spark.formats.format import arrow_type


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


EVERY = record(
    ("flag", "boolean"),
    ("small", "int"),
    ("big", "long"),
    ("single", "float"),
    ("real", "double"),
    ("text", "string"),
    ("raw", "bytes"),
    ("maybe", ["null", "string"]),
    ("color", {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}),
    ("hash", {"type": "fixed", "name": "Hash", "size": 4}),
    ("day", logical("int", "date")),
    ("at", logical("long", "timestamp-millis")),
    ("exact", logical("long", "timestamp-micros")),
    ("local", logical("long", "local-timestamp-micros")),
    ("clock", logical("int", "time-millis")),
    ("cents", logical("bytes", "decimal", precision=12, scale=2)),
    ("uid", logical("string", "uuid")),
    ("items", {"type": "array", "items": record(("n", "int"), name="Item")}),
    ("counts", {"type": "map", "values": "long"}),
    ("choice", ["null", "string", "Color", "Item", "long"]),
)
INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
DAYS = st.dates(date(1, 1, 1), date(9999, 12, 31))
TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))
ITEM = st.builds(lambda n: {"n": n}, INT)
MEMBERS = [("member0", TEXT), ("member1", st.sampled_from(["RED", "BLUE"])),
           ("member2", ITEM), ("member3", LONG)]  # fmt: skip


def member(name: str, value: Any) -> dict[str, Any]:
    return {key: value if key == name else None for key, _ in MEMBERS}


CHOICES = st.one_of([kind.map(lambda v, n=name: member(n, v)) for name, kind in MEMBERS])  # type: ignore[misc]
ROWS = st.fixed_dictionaries(
    {
        "flag": st.booleans(),
        "small": INT,
        "big": LONG,
        "single": st.floats(width=32, allow_nan=False),
        "real": st.floats(allow_nan=False),
        "text": TEXT,
        "raw": st.binary(max_size=5),
        "maybe": st.none() | TEXT,
        "color": st.sampled_from(["RED", "BLUE"]),
        "hash": st.binary(min_size=4, max_size=4),
        "day": DAYS,
        "at": TIMES.map(lambda m: m.replace(microsecond=m.microsecond // 1000 * 1000, tzinfo=UTC)),
        "exact": TIMES.map(lambda m: m.replace(tzinfo=UTC)),
        "local": TIMES,
        "clock": st.times().map(lambda c: c.replace(microsecond=c.microsecond // 1000 * 1000)),
        "cents": st.decimals(-(10**9), 10**9, places=2),
        "uid": st.uuids().map(str),
        "items": st.lists(ITEM, max_size=3),
        "counts": st.dictionaries(TEXT, LONG, max_size=3).map(lambda d: list(d.items())),
        "choice": st.none() | CHOICES,
    }
)


def array(rows: list[Any], schema: Any) -> pa.Array:
    return pa.array(rows, arrow_type(mapped(parse(schema)).spark))


@given(st.lists(st.none() | ROWS, max_size=5))
def test_every_type_comes_back(rows: list[dict[str, Any] | None]) -> None:
    avro = pickle.loads(pickle.dumps(Avro(EVERY)))
    values = array(rows, EVERY)
    encoded = avro.encoder(avro.spark_type()).encode(values)
    decoded = avro.decoder().decode(encoded)
    assert decoded.failures == []
    assert decoded.array.to_pylist() == values.to_pylist()


@given(st.lists(ROWS, max_size=3))
def test_other_avro_libraries_read_what_we_write_and_we_what_they_write(
    rows: list[dict[str, Any]],
) -> None:
    """fastavro with all its logical types, as any Python program would use it."""
    avro = Avro(EVERY)
    writer = AvroWriter.of(parse(EVERY))
    tags = {"member0": "string", "member1": "Color", "member2": "Item", "member3": "long"}

    def theirs(row: dict[str, Any]) -> dict[str, Any]:
        choice = row["choice"] and next(
            (tags[k], v) for k, v in row["choice"].items() if v is not None
        )
        return {**row, "counts": dict(row["counts"]), "choice": choice}

    data = pa.array([writer.encode(theirs(row)) for row in rows], pa.binary())
    assert avro.decoder().decode(data).array.to_pylist() == array(rows, EVERY).to_pylist()
    assert avro.encoder(avro.spark_type()).encode(array(rows, EVERY)) == data


def test_types_are_mapped_as_documented() -> None:
    assert mapped(parse(EVERY)).spark.simpleString() == (
        "struct<flag:boolean,small:int,big:bigint,single:float,real:double,text:string,raw:binary,"
        "maybe:string,color:string,hash:binary,day:date,at:timestamp,exact:timestamp,"
        "local:timestamp_ntz,clock:time(3),cents:decimal(12,2),uid:string,"
        "items:array<struct<n:int>>,counts:map<string,bigint>,"
        "choice:struct<member0:string,member1:string,member2:struct<n:int>,member3:bigint>>"
    )
    assert mapped(parse(["null", "int", "long"])).spark == t.LongType()
    assert mapped(parse(["float", "double"])).spark == t.DoubleType()


def test_a_schema_made_from_columns_gives_the_same_columns() -> None:
    fields = [field for field in mapped(parse(EVERY)).spark.fields if field.name != "at"]  # type: ignore[attr-defined]
    kind = t.StructType([*fields, t.StructField("tiny", t.ByteType())])
    again = mapped(parse(avro_schema(kind, "Row", "shop"))).spark.simpleString()
    expected = kind.simpleString().replace("tinyint", "int").replace("time(3)", "time(3)")
    assert again == expected


def test_times_beyond_the_calendar_of_python_are_kept() -> None:
    schema = logical("long", "timestamp-micros")
    avro = Avro(schema)
    values = pa.array([10**17 * 8], pa.timestamp("us", "UTC"))
    data = avro.encoder(avro.spark_type()).encode(values)
    assert avro.decoder().decode(data).array == values


def test_a_time_that_does_not_fit_is_a_bad_record() -> None:
    writer = AvroWriter.of(parse("long"))
    data = pa.array([writer.encode(2**62), writer.encode(1000)], pa.binary())
    decoded = Avro(logical("long", "timestamp-millis")).decoder().decode(data)
    assert [failure.row for failure in decoded.failures] == [0]
    assert decoded.array.to_pylist() == [None, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]


OLD = record(("id", "int"), ("nick", "string"), name="shop.P")
NEW = {
    "type": "record",
    "name": "shop.P",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string", "aliases": ["nick"]},
        {"name": "age", "type": ["null", "int"], "default": None},
    ],
}


@pytest.fixture
def directory(tmp_path: Path) -> SchemaDirectory:
    import json

    (tmp_path / "1.avsc").write_text(json.dumps(OLD))
    (tmp_path / "2.avsc").write_text(json.dumps(NEW))
    (tmp_path / "3.avsc").write_text('"string"')
    (tmp_path / "4.json").write_text("{}")
    return SchemaDirectory(tmp_path)


def framed(schema_id: int, schema: Any, value: Any) -> bytes:
    return AvroWriter.of(parse(schema)).encode(value, write_header(schema_id))


def test_values_of_several_schemas_become_the_columns_of_one(directory: SchemaDirectory) -> None:
    values = [
        framed(1, OLD, {"id": 1, "nick": "ann"}),
        framed(2, NEW, {"id": 2**40, "name": "bob", "age": 5}),
        None,
        framed(3, "string", "not a person"),
        framed(99, OLD, {"id": 1, "nick": "x"}),
        framed(4, OLD, {"id": 1, "nick": "x"}),
        b"no header",
    ]
    avro = Avro(lookup=directory, schema_id=2)
    decoded = avro.decoder().decode(pa.array(values, pa.binary()))
    assert decoded.array.to_pylist()[:3] == [
        {"id": 1, "name": "ann", "age": None},
        {"id": 2**40, "name": "bob", "age": 5},
        None,
    ]
    reasons = {failure.row: failure.reason for failure in decoded.failures}
    assert sorted(reasons) == [3, 4, 5, 6]
    assert "no schema with id 99" in reasons[4]
    assert "schema 4 is JSON, not AVRO" in reasons[5]
    assert "begins with byte 110" in reasons[6]


def test_written_values_carry_the_id(directory: SchemaDirectory) -> None:
    avro = Avro(lookup=directory, schema_id=1)
    rows = pa.array([{"id": 1, "nick": "ann"}], arrow_type(avro.spark_type()))
    (data,) = avro.encoder(avro.spark_type()).encode(rows).to_pylist()
    assert data == framed(1, OLD, {"id": 1, "nick": "ann"})


def test_bare_values_of_an_older_schema_are_resolved() -> None:
    data = pa.array([AvroWriter.of(parse(OLD)).encode({"id": 1, "nick": "a"})], pa.binary())
    decoded = Avro(NEW, writer_schema=OLD).decoder().decode(data)
    assert decoded.array.to_pylist() == [{"id": 1, "name": "a", "age": None}]


def test_a_lookup_that_fails_is_no_fault_of_the_record() -> None:
    class Gone:
        def by_id(self, schema_id: int) -> Any:
            raise ConnectionError("no registry")

    data = pa.array([framed(1, OLD, {"id": 1, "nick": "a"})], pa.binary())
    with pytest.raises(ConnectionError):
        Avro(OLD, lookup=Gone()).decoder().decode(data)


def test_an_unknown_id_is_asked_for_once(directory: SchemaDirectory) -> None:
    asked: list[int] = []

    class Counting:
        def by_id(self, schema_id: int) -> Any:
            asked.append(schema_id)
            return directory.by_id(schema_id)

    data = pa.array([framed(99, OLD, {"id": 1, "nick": "a"})] * 3, pa.binary())
    assert len(Avro(OLD, lookup=Counting()).decoder().decode(data).failures) == 3
    assert asked == [99]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (record(("t", ["null", "R"])), "R contains itself"),
        (record(), "has no fields"),
        (logical("bytes", "decimal", precision=40, scale=2), "40 digits"),
    ],
)
def test_a_schema_without_columns_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        Avro(schema).spark_type()


def test_a_recursive_schema_of_a_writer_is_not_followed() -> None:
    with pytest.raises(SchemaError, match="contains itself"):
        Avro(record(("id", "int")), writer_schema=record(("t", ["null", "R"]))).decoder()


def test_a_column_that_does_not_fit_the_schema_is_refused() -> None:
    avro = Avro(record(("id", "long")))
    with pytest.raises(EncodeError, match="does not fit the Avro schema"):
        avro.encoder(avro.spark_type()).encode(pa.array([{"id": "x"}]))
    with pytest.raises(EncodeError, match="not of the Avro schema"):
        avro.encoder(avro.spark_type()).encode(
            pa.array([{"id": None}], pa.struct([("id", pa.int64())]))
        )


def test_contradictions_are_refused(directory: SchemaDirectory) -> None:
    with pytest.raises(SchemaError, match="needs schema"):
        Avro().spark_type()
    with pytest.raises(SchemaError, match="drop one"):
        Avro(NEW, lookup=directory, writer_schema=OLD)
    with pytest.raises(SchemaError, match="without lookup"):
        Avro(NEW, schema_id=1)
    with pytest.raises(SchemaError, match="schema_id="):
        Avro(NEW, lookup=directory).encoder(t.StringType())


def test_more_than_one_member_of_a_union_is_refused() -> None:
    avro = Avro(["string", "long"])
    rows = pa.array([{"member0": "x", "member1": 1}], arrow_type(avro.spark_type()))
    with pytest.raises(EncodeError, match="more than one member"):
        avro.encoder(avro.spark_type()).encode(rows)
