"""Bytes become the columns of what the converter reads, or are left to it."""

import json
from typing import Any

import pyarrow as pa
import pytest

from penstock.connect.columnar.arrow_schemas import connect_value_of
from penstock.connect.columnar.decoding import ColumnDecoder
from penstock.connect.converters.json import JsonConverter
from penstock.connect.converters.numbers import ByteArrayConverter
from penstock.connect.converters.text import StringConverter
from penstock.connect.errors.kinds import DataError

_FIELDS = [
    {"field": "n", "type": "int32", "optional": False},
    {"field": "s", "type": "string", "optional": True},
    {"field": "x", "type": "double", "optional": True},
    {"field": "b", "type": "boolean", "optional": True},
]
_SCHEMA = {"type": "struct", "fields": _FIELDS, "optional": False}
_HEAD = '{"schema":' + json.dumps(_SCHEMA) + ',"payload":'


def documents(*payloads: str) -> Any:
    return pa.array([f"{_HEAD}{one}}}".encode() for one in payloads], pa.binary())


def decoded(values: Any) -> Any:
    return ColumnDecoder(JsonConverter({}, is_key=False)).decode("t", values)


@pytest.mark.parametrize(
    "payload",
    [
        '{"n":1,"s":"é \\" \\u00e9","x":0.1,"b":true}',
        '{"n":-2147483648,"s":null,"x":1e300,"b":false}',
        '{"b":null,"n": 5 }',
        '{"n":1,"x":3,"other":{"deep":[1,2]}}',
        '{"n":1,"x":-0.0,"s":""}',
        '{"n":1,"x":0.30000000000000004,"s":"\\n"}',
    ],
)
def test_structs_are_read_as_the_converter_reads_them(payload: str) -> None:
    values = documents('{"n":0}', payload)
    found = decoded(values)
    converter = JsonConverter({}, is_key=False)
    expected = [converter.to_connect("t", one) for one in values.to_pylist()]
    assert found is not None
    assert found.schema == expected[0][0]
    read = [connect_value_of(found.schema, one) for one in found.values.to_pylist()]
    assert read == [value for _, value in expected]


@pytest.mark.parametrize(
    "payload",
    [
        '{"n":"1"}',  # Java's converter reads 0.
        '{"n":1.5}',
        '{"n":4294967297}',
        '{"n":1e2}',
        '{"n":null}',
        "{}",
        "null",
        "[1]",
        '{"n":1,"n":2}',
        '{"n":1,"s":5}',
        '{"n":1,"b":"true"}',
        '{"n":1,"x":1e999}',
        '{"n":1}{"n":2}',
        '{"n":1},"more":{}',
        '{"n":1,"s":"\\ud800"}',
        '{"n":',
    ],
)
def test_what_only_the_converter_knows_is_left_to_it(payload: str) -> None:
    assert decoded(documents('{"n":0}', payload)) is None


def test_two_payloads_that_hide_a_third_are_left_to_the_converter() -> None:
    assert decoded(documents('{"n":1}{"n":2}', "{}")) is None
    assert decoded(documents('{"n":1,"s":"a}', '{b"}')) is None


def test_other_schemas_and_other_converters_are_left_to_the_converter() -> None:
    other = b'{"schema":{"type":"int32","optional":false},"payload":1}'
    assert decoded(pa.array([other])) is None
    assert decoded(pa.concat_arrays([documents('{"n":1}'), pa.array([other])])) is None
    plain = ColumnDecoder(JsonConverter({"schemas.enable": "false"}, is_key=False))
    assert plain.decode("t", pa.array([b'{"n":1}'])) is None


def test_a_document_that_cannot_be_read_is_left_to_the_converter_which_refuses_it() -> None:
    values = pa.array([b"{"])
    assert decoded(values) is None
    with pytest.raises(DataError):
        JsonConverter({}, is_key=False).to_connect("t", values[0].as_py())


def test_texts_and_bytes_are_columns_unless_one_is_null_or_not_utf8() -> None:
    texts = ColumnDecoder(StringConverter({}, is_key=False))
    found = texts.decode("t", pa.array(["é".encode(), b""]))
    assert found is not None and found.values.to_pylist() == ["é", ""]
    assert texts.decode("t", pa.array([b"\xff"])) is None
    assert texts.decode("t", pa.array([b"a", None])) is None
    raw = ColumnDecoder(ByteArrayConverter({}, is_key=False)).decode("t", pa.array([b"\xff"]))
    assert raw is not None and raw.values.to_pylist() == [b"\xff"]
