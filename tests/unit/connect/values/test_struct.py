"""Structs, and values held against their schemas."""

import pytest

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.schema import (
    INT8_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaType,
    array_schema,
    map_schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue, check_value

SIZE = Schema(type=SchemaType.INT32, default=5)
SCHEMA = struct_schema({"id": INT8_SCHEMA, "note": OPTIONAL_STRING_SCHEMA, "size": SIZE})


def test_a_field_that_is_null_reads_as_its_default() -> None:
    struct = StructValue.of(SCHEMA, {"id": 1})
    assert (struct["id"], struct["note"], struct["size"]) == (1, None, 5)
    assert struct.get_without_default("size") is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "required field: 'id'"),
        ({"id": 300}, "for field: 'id'"),
        ({"id": True}, "for field: 'id'"),
        ({"id": 1, "more": 2}, "more is not a valid field name"),
        ({"id": 1, "note": 2}, "for field: 'note'"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        StructValue.of(SCHEMA, given)


def test_parts_of_lists_and_maps_are_checked() -> None:
    check_value(array_schema(STRING_SCHEMA), ["a"])
    check_value(map_schema(STRING_SCHEMA, INT8_SCHEMA), {"a": 1})
    for schema, value in (
        (array_schema(STRING_SCHEMA), [None]),
        (map_schema(STRING_SCHEMA, INT8_SCHEMA), {1: 1}),
        (map_schema(STRING_SCHEMA, INT8_SCHEMA), {"a": "b"}),
    ):
        with pytest.raises(DataError):
            check_value(schema, value)
