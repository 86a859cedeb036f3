"""The name of the outermost type, whatever the language."""

import pytest

from penstock.rest.payloads.record_names import name_in_text, name_of
from penstock.schemas.lookup import SchemaKind, StoredSchema

PROTO = """
// message Commented { }
syntax = "proto3"; /* package wrong; */
option java_package = "package no;";
package shop.v1;
message Order { message Line {} }
message Other {}
"""


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        (SchemaKind.AVRO, '{"type":"record","name":"R","namespace":"a.b","fields":[]}', "a.b.R"),
        (SchemaKind.AVRO, '{"type":"record","name":"c.R","namespace":"a","fields":[]}', "c.R"),
        (SchemaKind.AVRO, '{"type":"record","name":"R","fields":[]}', "R"),
        (SchemaKind.AVRO, '"string"', None),
        (SchemaKind.AVRO, "string", None),
        (SchemaKind.AVRO, '{"type":"array","items":"int"}', None),
        (SchemaKind.JSON, '{"title":"Order"}', "Order"),
        (SchemaKind.JSON, '{"title":7}', None),
        (SchemaKind.JSON, "true", None),
        (SchemaKind.PROTOBUF, PROTO, "shop.v1.Order"),
        (SchemaKind.PROTOBUF, "message Bare {}", "Bare"),
        (SchemaKind.PROTOBUF, "enum E { A = 0; }", None),
    ],
)
def test_names(kind: SchemaKind, text: str, name: str | None) -> None:
    assert name_in_text(kind, text) == name
    if kind is not SchemaKind.PROTOBUF:
        assert name_of(StoredSchema(schema_id=1, kind=kind, text=text)) == name
