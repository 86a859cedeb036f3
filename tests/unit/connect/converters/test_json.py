"""JsonConverter: documents that begin alike, one schema for all, and what is no JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.converters.json import JsonConverter
from penstock.connect.errors.kinds import DataError
from penstock.connect.values.schema import (
    INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

SCHEMA = struct_schema({"id": INT32_SCHEMA, "payload": OPTIONAL_STRING_SCHEMA}, name="S")


@given(st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.none() | st.text()), max_size=5))
def test_documents_with_one_schema_come_back(rows: list[tuple[int, str | None]]) -> None:
    converter, other = (JsonConverter({}, is_key=False) for _ in range(2))
    for row in rows:
        struct = StructValue(SCHEMA, row)
        try:
            data = converter.from_connect("t", SCHEMA, struct)
        except DataError:  # Half a character cannot be written.
            continue
        assert other.to_connect("t", data) == (SCHEMA, struct)


def test_a_struct_that_is_written_again_is_the_same_and_another_is_not() -> None:
    outer = struct_schema({"source": SCHEMA, "n": INT32_SCHEMA})
    converter = JsonConverter({"schemas.enable": "false"}, is_key=False)
    one, other = (StructValue(SCHEMA, (n, None)) for n in (1, 2))
    written = [
        converter.from_connect("t", outer, StructValue(outer, (source, n)))
        for n, source in enumerate((one, one, other, one))
    ]
    assert [json.loads(data or b"") for data in written] == [
        {"source": {"id": source, "payload": None}, "n": n} for n, source in enumerate((1, 1, 2, 1))
    ]


@pytest.mark.parametrize("value", ["1", 1.0, True, [1], StructValue(SCHEMA, (1, "a"))])
def test_a_field_of_another_type_is_refused(value: object) -> None:
    schema = struct_schema({"id": INT32_SCHEMA})
    with pytest.raises(DataError, match="Invalid type for INT32"):
        JsonConverter({}, is_key=False).from_connect("t", schema, StructValue(schema, (value,)))


def test_a_document_that_only_begins_alike_is_read_as_a_whole() -> None:
    converter = JsonConverter({}, is_key=False)
    first = b'{"schema":{"type":"int32"},"payload":1}'
    assert converter.to_connect("t", first) == (INT32_SCHEMA, 1)
    assert converter.to_connect("t", first.replace(b"1}", b"2}"))[1] == 2
    for wrong in (b'{"schema":{"type":"int32"},"payload":1,"x":2}', b'{"schema":{"type":"int32"}'):
        with pytest.raises(DataError):
            converter.to_connect("t", wrong)
    twice = b'{"schema":{"type":"int32"},"payload":1,"payload":3}'
    assert converter.to_connect("t", twice)[1] == 3


def test_one_schema_for_all_values_stands_in_the_settings() -> None:
    content = json.dumps({"type": "struct", "fields": [{"type": "int32", "field": "id"}]})
    converter = JsonConverter({"schema.content": content}, is_key=False)
    schema, value = converter.to_connect("t", b'{"id": 7}')
    assert schema is not None
    assert value["id"] == 7


@pytest.mark.parametrize(
    "data", [b"{", b"\xff", b"NaN", b"[" * 100_000, b"1" * 5_000, b'{"a":1} x', b"'a'"]
)
def test_what_is_no_json_is_a_data_error(data: bytes) -> None:
    with pytest.raises(DataError):
        JsonConverter({"schemas.enable": "false"}, is_key=False).to_connect("t", data)


def test_plain_json_where_a_schema_should_be_is_explained() -> None:
    with pytest.raises(DataError, match=r"set schemas\.enable=false"):
        JsonConverter({}, is_key=False).to_connect("t", b'{"a": 1}')


@pytest.mark.parametrize("kind", ["bytes", "string"])
def test_a_default_of_another_type_is_none_and_only_what_is_optional_may_have_that(
    kind: str,
) -> None:
    converter = JsonConverter({"schemas.enable": "true"}, is_key=False)

    def read(optional: bool) -> tuple[Schema | None, object]:
        schema = {"type": kind, "optional": optional, "default": 1}
        return converter.to_connect("topic", json.dumps({"schema": schema, "payload": ""}).encode())

    schema, _ = read(optional=True)
    assert schema is not None and schema.default is None
    with pytest.raises(DataError, match="Invalid default value"):
        read(optional=False)
