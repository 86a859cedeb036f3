"""Schemas and a registry in memory for the tests of this folder."""

import json
import struct

from tests.unit.schemas.protos import shop_file

from penstock.schemas.errors import UnknownSchema
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.protobuf import joined
from penstock.schemas.registry_client import RegistryUnreachable

AVRO, JSON, PROTOBUF, REFERRING = 1, 2, 3, 4
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "gaps", "type": {"type": "array", "items": "null"}},
    ],
}
PERSON = {
    "title": "Person",
    "type": "object",
    "properties": {"age": {"type": "integer"}, "name": {"pattern": "^(a+)+$"}},
    "required": ["age"],
}
AGED = {"type": "object", "properties": {"age": {"$ref": "age.json"}}}
STORED = {
    AVRO: StoredSchema(schema_id=AVRO, kind=SchemaKind.AVRO, text=json.dumps(ORDER)),
    JSON: StoredSchema(schema_id=JSON, kind=SchemaKind.JSON, text=json.dumps(PERSON)),
    PROTOBUF: StoredSchema(
        schema_id=PROTOBUF, kind=SchemaKind.PROTOBUF, descriptor_set=joined([shop_file()])
    ),
    REFERRING: StoredSchema(
        schema_id=REFERRING,
        kind=SchemaKind.JSON,
        text=json.dumps(AGED),
        references=(
            StoredSchema(
                schema_id=9, kind=SchemaKind.JSON, text='{"type": "integer"}', name="age.json"
            ),
        ),
    ),
}


def framed(schema_id: int, data: bytes) -> bytes:
    return struct.pack(">bi", 0, schema_id) + data


class MemoryRegistry:
    """Answers from dictionaries, and counts what it is asked."""

    def __init__(self, subjects: dict[int, list[str]] | None = None) -> None:
        self.subjects = subjects or {}
        self.asked: list[int] = []
        self.is_away = False

    def subjects_of(self, schema_id: int) -> list[str] | None:
        self.asked.append(schema_id)
        if self.is_away:
            raise RegistryUnreachable("no schema registry answers")
        return self.subjects.get(schema_id)

    def by_id(self, schema_id: int) -> StoredSchema:
        if self.is_away:
            raise RegistryUnreachable("no schema registry answers")
        if schema_id not in STORED:
            raise UnknownSchema(schema_id, "memory")
        return STORED[schema_id]
