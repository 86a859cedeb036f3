"""Plain values as columns: bytes, text and the numbers of Kafka's serializers."""

import struct
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from penstock.schemas.errors import SchemaError
from penstock.spark.formats import Csv, Raw


def decoded(format: Csv | Raw, *values: bytes | None) -> tuple[list[Any], dict[int, str]]:  # noqa: A002
    array, failures = format.decoder().decode(pa.array(values, pa.binary()))
    return array.to_pylist(), {failure.row: failure.reason for failure in failures}


def test_raw_bytes_stay_what_they_are() -> None:
    assert decoded(Raw(), b"\xff", None, b"") == ([b"\xff", None, b""], {})


def test_text_must_be_utf_8() -> None:
    rows, failures = decoded(Raw("string"), "ä".encode(), b"a\xffb", None)
    assert rows == ["ä", None, None]
    assert failures == {1: "this is not UTF-8: invalid start byte at byte 1"}


@pytest.mark.parametrize(
    ("kind", "layout", "value"),
    [("short", ">h", -5), ("integer", ">i", 7), ("long", ">q", -(2**60)), ("double", ">d", 0.1)],
)
def test_numbers_are_those_of_kafkas_serializers(kind: str, layout: str, value: Any) -> None:
    data = struct.pack(layout, value)
    rows, failures = decoded(Raw(kind), data, data + b"x", None)
    assert rows == [value, None, None]
    assert list(failures) == [1] and f"has {len(data)} bytes" in failures[1]
    raw = Raw(kind)
    array = raw.decoder().decode(pa.array([data, None], pa.binary())).array
    assert raw.encoder(raw.spark_type()).encode(array).to_pylist() == [data, None]


def test_an_unknown_kind_is_answered_with_the_known() -> None:
    with pytest.raises(SchemaError, match="none of binary, string, short"):
        Raw("text")
    with pytest.raises(SchemaError, match="takes a column of type bigint, not string"):
        Raw("long").encoder(t.StringType())
