"""AVRO: a record with a nullable field for each column, behind the id of its schema."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from penstock.schemas import avro
from penstock.schemas.errors import FormatError
from penstock.schemas.lookup import SchemaKind, SchemaLookup, StoredSchema
from penstock.schemas.wire_header import HEADER_BYTES, read_header, write_header
from penstock.sql.catalog.relations import RelationColumn
from penstock.sql.formats.codec import FormatCodec, FormatMisfit, Values
from penstock.sql.formats.fitting import fields_by_name, fit
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

_SPACE: Final = "io.confluent.ksql.avro_schemas"
_NAME: Final = "KsqlDataSourceSchema"
_PRIMITIVES: Final[Mapping[str, Any]] = {
    "BOOLEAN": "boolean",
    "INTEGER": "int",
    "BIGINT": "long",
    "DOUBLE": "double",
    "STRING": "string",
    "BYTES": "bytes",
    "TIMESTAMP": {"type": "long", "logicalType": "timestamp-millis"},
    "DATE": {"type": "int", "logicalType": "date"},
    "TIME": {"type": "int", "logicalType": "time-millis"},
}
_TYPES: Final = {
    "boolean": BOOLEAN, "int": INTEGER, "long": BIGINT, "float": DOUBLE, "double": DOUBLE,
    "string": STRING, "bytes": BYTES, "enum": STRING, "fixed": BYTES,
}  # fmt: skip
_LOGICAL: Final = {
    "timestamp-millis": TIMESTAMP, "timestamp-micros": TIMESTAMP, "date": DATE,
    "time-millis": TIME, "time-micros": TIME,
}  # fmt: skip


def avro_schema(
    columns: Sequence[RelationColumn], *, is_wrapped: bool, name: str | None
) -> StoredSchema:
    """The schema of the columns."""
    space, _, short = (name or f"{_SPACE}.{_NAME}").rpartition(".")
    if is_wrapped or len(columns) != 1:
        made = _record(short, [(c.name, c.type) for c in columns])
        made = {**made, "namespace": space} if space else made
    else:
        made = _type(columns[0].type, short)
    return StoredSchema(schema_id=0, kind=SchemaKind.AVRO, text=json.dumps(made))


def _record(name: str, fields: Sequence[tuple[str, DataType | None]]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field, "type": ["null", _type(kind, f"{name}_{field}")], "default": None}
            for field, kind in fields
        ],
    }


def _type(kind: DataType | None, name: str) -> Any:
    match kind:
        case DecimalOf():
            return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision,
                    "scale": kind.scale}  # fmt: skip
        case ArrayOf():
            return {"type": "array", "items": ["null", _type(kind.item, name)]}
        case MapOf():
            if kind.key != STRING:
                raise FormatMisfit(f"Avro only supports MAPs with STRING keys, not {kind}")
            return {"type": "map", "values": ["null", _type(kind.value, name)]}
        case StructOf():
            return _record(name, kind.fields)
    return _PRIMITIVES[str(kind)]


def avro_columns(stored: StoredSchema) -> list[tuple[str, DataType]]:
    """The columns that a schema says; of a bare value one without a name."""
    schema = avro.parse_stored(stored)
    kind = _data_type(schema)
    if isinstance(kind, StructOf):
        return [(name.upper(), one) for name, one in kind.fields if one is not None]
    return [] if kind is None else [("", kind)]


def _data_type(schema: Any) -> DataType | None:
    if isinstance(schema, list):
        kinds = [_data_type(branch) for branch in schema if branch != "null"]
        return kinds[0] if len(kinds) == 1 else None
    if isinstance(schema, str):
        return _TYPES.get(schema)
    name = schema["type"]
    if schema.get("logicalType") == "decimal":
        return DecimalOf(schema["precision"], schema.get("scale", 0))
    if schema.get("logicalType") in _LOGICAL:
        return _LOGICAL[schema["logicalType"]]
    if name == "array":
        return ArrayOf(_data_type(schema["items"]))
    if name == "map":
        return MapOf(STRING, _data_type(schema["values"]))
    if name in ("record", "error"):
        found = [(one["name"].upper(), _data_type(one["type"])) for one in schema["fields"]]
        return StructOf(tuple((field, kind) for field, kind in found if kind is not None))
    return _TYPES.get(name) if isinstance(name, str) else _data_type(name)


def avro_codec(
    columns: Sequence[RelationColumn], lookup: SchemaLookup, schema_id: int, *, is_wrapped: bool
) -> FormatCodec:
    """The codec of the columns under a registered schema."""
    schema = avro.parse_stored(lookup.by_id(schema_id))
    writer, header = avro.AvroWriter.of(schema), write_header(schema_id)
    names = [column.name for column in columns]
    kinds = [column.type for column in columns]
    is_record = is_wrapped or len(columns) != 1
    fields = _field_names(schema, names) if is_record else names
    readers: dict[int, avro.AvroReader] = {}

    def write(values: Values) -> bytes | None:
        if not is_record:
            return None if values[0] is None else writer.encode(values[0], header)
        row = dict(zip(fields, values, strict=True))
        with _guarded():
            return writer.encode(row, header)

    def read(data: bytes) -> list[Any]:
        with _guarded():
            found_id = read_header(data)
            if found_id not in readers:
                readers[found_id] = avro.AvroReader.of(avro.parse_stored(lookup.by_id(found_id)))
            found = readers[found_id].decode(data, HEADER_BYTES)
        if not is_record:
            return [fit(found, kinds[0], names[0])]
        return fields_by_name(found, names, kinds)

    return FormatCodec(write, read)


def _field_names(schema: Any, names: Sequence[str]) -> list[str]:
    """How the schema writes the columns' names: a schema of others may have them in lower case."""
    known = [one["name"] for one in schema.get("fields", ())] if isinstance(schema, dict) else []
    lower = {name.lower(): name for name in known}
    return [name if name in known else lower.get(name.lower(), name) for name in names]


@contextmanager
def _guarded() -> Iterator[None]:
    try:
        yield
    except FormatError as error:
        raise FormatMisfit(str(error)) from None
