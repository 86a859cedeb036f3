"""Schemas as the JSON that JsonConverter puts beside a value, and back."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.schema import Schema, SchemaField, SchemaType

_NAMES = {
    SchemaType.BOOLEAN: "boolean",
    SchemaType.INT8: "int8",
    SchemaType.INT16: "int16",
    SchemaType.INT32: "int32",
    SchemaType.INT64: "int64",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BYTES: "bytes",
    SchemaType.STRING: "string",
    SchemaType.ARRAY: "array",
    SchemaType.MAP: "map",
    SchemaType.STRUCT: "struct",
}
_TYPES = {name: kind for kind, name in _NAMES.items()}
_DEPTH_MAX = 200


def schema_document(schema: Schema, node: Callable[[Schema, Any], Any]) -> dict[str, Any]:
    """A schema as JSON; `node` writes defaults."""
    made: dict[str, Any] = {"type": _NAMES[schema.type]}
    if schema.type is SchemaType.STRUCT:
        made["fields"] = [
            {**schema_document(one.schema, node), "field": one.name} for one in schema.fields
        ]
    if schema.type is SchemaType.ARRAY:
        made["items"] = _inner(schema.value_schema, node)
    if schema.type is SchemaType.MAP:
        made["keys"] = _inner(schema.key_schema, node)
        made["values"] = _inner(schema.value_schema, node)
    made["optional"] = schema.optional
    told = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    made.update({name: one for name, one in told.items() if one is not None})
    if schema.parameters:
        made["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        made["default"] = node(schema, schema.default)
    return made


def _inner(schema: Schema | None, node: Callable[[Schema, Any], Any]) -> dict[str, Any] | None:
    return None if schema is None else schema_document(schema, node)


def schema_of_document(
    document: Any, value: Callable[[Schema, Any], Any], depth: int = 0
) -> Schema | None:
    """The schema of some JSON; `value` reads defaults. Null is no schema."""
    if document is None:
        return None
    if depth > _DEPTH_MAX:
        raise DataError("a schema has too many others around it")
    word = document.get("type") if isinstance(document, dict) else None
    if not isinstance(word, str):
        raise DataError("Schema must contain 'type' field")
    if word not in _TYPES:
        raise DataError(f"Unknown schema type: {word}")
    made = _shaped(_TYPES[word], document, value, depth + 1)
    made = _described(made, document)
    if document.get("default") is None:
        return made
    default = value(made, document["default"])
    if default is None and not made.optional:  # A number where a text or bytes should be.
        raise DataError("Invalid default value")
    return replace(made, default=default)


def _shaped(
    kind: SchemaType, document: dict[str, Any], value: Callable[[Schema, Any], Any], depth: int
) -> Schema:
    if kind is SchemaType.ARRAY:
        items = schema_of_document(document.get("items"), value, depth)
        if items is None:
            raise DataError("Array schema did not specify the element type")
        return Schema(type=kind, value_schema=items)
    if kind is SchemaType.MAP:
        for name in ("keys", "values"):
            if document.get(name) is None:
                raise DataError(f"Map schema did not specify the {name[:-1]} type")
        keys = schema_of_document(document["keys"], value, depth)
        return Schema(
            type=kind,
            key_schema=keys,
            value_schema=schema_of_document(document["values"], value, depth),
        )
    if kind is SchemaType.STRUCT:
        return Schema(type=kind, fields=tuple(_fields(document.get("fields"), value, depth)))
    return Schema(type=kind)


def _fields(listed: Any, value: Callable[[Schema, Any], Any], depth: int) -> list[SchemaField]:
    if not isinstance(listed, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields: dict[str, SchemaField] = {}
    for one in listed:
        name = one.get("field") if isinstance(one, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        schema = schema_of_document(one, value, depth)
        if name in fields or schema is None:
            raise DataError(f"Cannot create field because of field name duplication {name}")
        fields[name] = SchemaField(name, schema)
    return list(fields.values())


def _described(schema: Schema, document: dict[str, Any]) -> Schema:
    name, version, doc = (document.get(word) for word in ("name", "version", "doc"))
    parameters = document.get("parameters")
    listed = parameters if isinstance(parameters, dict) else {}
    if not all(isinstance(one, str) for one in listed.values()):
        raise DataError("Schema parameters must have string values.")
    is_version = isinstance(version, int) and not isinstance(version, bool)
    return replace(
        schema,
        optional=document.get("optional") is True,
        name=name if isinstance(name, str) else None,
        version=version if is_version else None,
        doc=doc if isinstance(doc, str) else None,
        parameters=listed,
    )
