"""JSON_SR: JSON behind the id of a JSON schema."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.schemas.errors import FormatError
from penstock.schemas.lookup import SchemaKind, SchemaLookup, StoredSchema
from penstock.schemas.wire_header import HEADER_BYTES, read_header, write_header
from penstock.sql.catalog.relations import RelationColumn
from penstock.sql.formats.codec import FormatCodec, FormatMisfit, Values
from penstock.sql.formats.json_format import json_codec
from penstock.sql.types.kinds import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayOf,
    DataType,
    DecimalOf,
    MapOf,
    StructOf,
)

_PRIMITIVES: Final[Mapping[str, dict[str, Any]]] = {
    "BOOLEAN": {"type": "boolean"},
    "INTEGER": {"type": "integer", "connect.type": "int32"},
    "BIGINT": {"type": "integer", "connect.type": "int64"},
    "DOUBLE": {"type": "number", "connect.type": "float64"},
    "STRING": {"type": "string"},
    "BYTES": {"type": "string", "connect.type": "bytes"},
    "TIMESTAMP": {"type": "integer", "title": "org.apache.kafka.connect.data.Timestamp",
                  "connect.type": "int64"},
    "DATE": {"type": "integer", "title": "org.apache.kafka.connect.data.Date",
             "connect.type": "int32"},
    "TIME": {"type": "integer", "title": "org.apache.kafka.connect.data.Time",
             "connect.type": "int32"},
}  # fmt: skip
_TITLES: Final = {
    "org.apache.kafka.connect.data.Timestamp": TIMESTAMP,
    "org.apache.kafka.connect.data.Date": DATE,
    "org.apache.kafka.connect.data.Time": TIME,
}
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_BY_CONNECT: Final = {"int8": INTEGER, "int16": INTEGER, "int32": INTEGER, "bytes": BYTES}


def json_schema(columns: Sequence[RelationColumn], *, is_wrapped: bool) -> StoredSchema:
    """The schema of the columns."""
    if is_wrapped or len(columns) != 1:
        made = _object([(column.name, column.type) for column in columns])
    else:
        made = _type(columns[0].type)
    return StoredSchema(schema_id=0, kind=SchemaKind.JSON, text=json.dumps(made))


def _object(fields: Sequence[tuple[str, DataType | None]]) -> dict[str, Any]:
    properties = {
        name: {"connect.index": at, "oneOf": [{"type": "null"}, _type(kind)]}
        for at, (name, kind) in enumerate(fields)
    }
    return {"type": "object", "properties": properties}


def _type(kind: DataType | None) -> dict[str, Any]:
    match kind:
        case DecimalOf():
            parameters = {
                "scale": str(kind.scale),
                "connect.decimal.precision": str(kind.precision),
            }
            return {"type": "number", "title": _DECIMAL, "connect.type": "bytes",
                    "connect.parameters": parameters}  # fmt: skip
        case ArrayOf():
            return {"type": "array", "items": {"oneOf": [{"type": "null"}, _type(kind.item)]}}
        case MapOf():
            if kind.key != STRING:
                raise FormatMisfit(f"JSON_SR only supports MAPs with STRING keys, not {kind}")
            value = {"oneOf": [{"type": "null"}, _type(kind.value)]}
            return {"type": "object", "connect.type": "map", "additionalProperties": value}
        case StructOf():
            return _object(kind.fields)
    return dict(_PRIMITIVES[str(kind)])


def json_schema_columns(stored: StoredSchema) -> list[tuple[str, DataType]]:
    """The columns that a schema says; of a bare value one without a name."""
    kind = _data_type(json.loads(stored.expect(SchemaKind.JSON).text))
    if isinstance(kind, StructOf):
        return [(name.upper(), one) for name, one in kind.fields if one is not None]
    return [] if kind is None else [("", kind)]


def _data_type(schema: Any) -> DataType | None:
    if not isinstance(schema, dict):
        return None
    choices = [one for one in schema.get("oneOf", ()) if one.get("type") != "null"]
    if choices:
        return _data_type(choices[0]) if len(choices) == 1 else None
    name, title = schema.get("type"), schema.get("title")
    if isinstance(name, list):
        left = [one for one in name if one != "null"]
        name = left[0] if len(left) == 1 else None
    if title == _DECIMAL:
        given = schema.get("connect.parameters", {})
        return DecimalOf(
            int(given.get("connect.decimal.precision", 64)), int(given.get("scale", 0))
        )
    if title in _TITLES:
        return _TITLES[title]
    if name == "object":
        return _object_type(schema)
    if name == "array":
        return ArrayOf(_data_type(schema.get("items")))
    found = _BY_CONNECT.get(schema.get("connect.type", ""))
    plain = {"boolean": BOOLEAN, "integer": BIGINT, "number": DOUBLE, "string": STRING}
    return found or plain.get(str(name))


def _object_type(schema: Mapping[str, Any]) -> DataType | None:
    if "properties" not in schema:
        return MapOf(STRING, _data_type(schema.get("additionalProperties")))
    given = schema["properties"].items()
    ordered = sorted(given, key=lambda entry: entry[1].get("connect.index", len(given)))
    found = [(name.upper(), _data_type(one)) for name, one in ordered]
    return StructOf(tuple((name, kind) for name, kind in found if kind is not None))


def json_schema_codec(
    columns: Sequence[RelationColumn], lookup: SchemaLookup, schema_id: int, *, is_wrapped: bool
) -> FormatCodec:
    """The codec of the columns under a registered schema."""
    lookup.by_id(schema_id).expect(SchemaKind.JSON)
    header, inner = write_header(schema_id), json_codec(columns, is_wrapped=is_wrapped)

    def write(values: Values) -> bytes | None:
        data = inner.write(values)
        return None if data is None else header + data

    def read(data: bytes) -> list[Any]:
        try:
            read_header(data)
        except FormatError as error:
            raise FormatMisfit(str(error)) from None
        return inner.read(bytes(data[HEADER_BYTES:]))

    return FormatCodec(write, read)
