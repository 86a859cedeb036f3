"""Connect's schemas as Avro's and back, in the form that Confluent's converter gives them.

What Avro has no word for stands in properties: `connect.type` for narrow integers, `connect.name`,
`connect.version`, `connect.doc`, `connect.parameters` and `connect.default`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import (
    DATE,
    DATE_SCHEMA,
    DECIMAL,
    SCALE,
    TIME,
    TIME_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_SCHEMA,
    decimal_schema,
    logical_of,
    plain_of,
    scale_of,
)
from penstock.connect.values.schema import Schema, SchemaField, SchemaType

NAMESPACE = "io.confluent.connect.avro"
_DEFAULT_NAME = f"{NAMESPACE}.ConnectDefault"
_ENTRY_NAME = f"{NAMESPACE}.MapEntry"
_ENUM = f"{NAMESPACE}.Enum"
_FIXED = "connect.fixed.size"
_PRECISION = 64
_DEPTH_MAX = 100
_WORDS = {
    SchemaType.INT8: "int",
    SchemaType.INT16: "int",
    SchemaType.INT32: "int",
    SchemaType.INT64: "long",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BOOLEAN: "boolean",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "bytes",
}
_TYPES = {
    "int": SchemaType.INT32,
    "long": SchemaType.INT64,
    "float": SchemaType.FLOAT32,
    "double": SchemaType.FLOAT64,
    "boolean": SchemaType.BOOLEAN,
    "string": SchemaType.STRING,
    "bytes": SchemaType.BYTES,
}
_LOGICAL = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}
_BY_LOGICAL = {
    "date": DATE_SCHEMA,
    "time-millis": TIME_SCHEMA,
    "timestamp-millis": TIMESTAMP_SCHEMA,
}


def avro_of(schema: Schema) -> Any:
    """The Avro schema of a Connect schema; a name is spelled out where it stands first."""
    return _optional(schema, _Writing().shape(schema))


def _optional(schema: Schema, made: Any) -> Any:
    if not schema.optional:
        return made
    return [made, "null"] if schema.default is not None else ["null", made]


class _Writing:
    """One schema on its way to Avro, with the records that were spelled out already."""

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}

    def shape(self, schema: Schema) -> Any:
        if schema.type is SchemaType.STRUCT:
            return self._record(schema)
        if schema.type is SchemaType.ARRAY:
            made: dict[str, Any] = {"type": "array", "items": self._part(schema.value_schema)}
        elif schema.type is SchemaType.MAP:
            made = self._map(schema)
        else:
            made = {"type": _WORDS[schema.type], **_narrow(schema), **_logical(schema)}
        made.update(_described(schema))
        return made["type"] if made.keys() == {"type"} else made

    def _part(self, schema: Schema | None) -> Any:
        if schema is None:
            raise DataError("a list or a map without a schema for its parts cannot be Avro")
        return _optional(schema, self.shape(schema))

    def _map(self, schema: Schema) -> dict[str, Any]:
        keys = schema.key_schema
        if keys is not None and keys.type is SchemaType.STRING and not keys.optional:
            return {"type": "map", "values": self._part(schema.value_schema)}
        entry = {
            "type": "record",
            "name": _ENTRY_NAME if schema.name is None else schema.name,
            "fields": [
                {"name": "key", "type": self._part(keys)},
                {"name": "value", "type": self._part(schema.value_schema)},
            ],
            "connect.internal.type": "MapEntry",
        }
        return {"type": "array", "items": entry}

    def _record(self, schema: Schema) -> Any:
        name = schema.name or _DEFAULT_NAME
        known = self.named.get(name)
        if known is not None:
            if replace(known, optional=False) != replace(schema, optional=False):
                raise DataError(f"two different structs are named {name}, which Avro cannot have")
            return name
        self.named[name] = schema
        fields = [self._field(one) for one in schema.fields]
        made: dict[str, Any] = {"type": "record", "name": name, "fields": fields}
        if schema.doc is not None:
            made["doc"] = schema.doc
        told = _described(schema)
        told.pop("connect.doc", None)
        return {**made, **told}

    def _field(self, field: SchemaField) -> dict[str, Any]:
        made: dict[str, Any] = {"name": field.name, "type": self._part(field.schema)}
        if field.schema.default is not None:
            made["default"] = _default_of(field.schema)
        elif field.schema.optional:
            made["default"] = None
        return made


def _narrow(schema: Schema) -> dict[str, str]:
    if schema.type not in (SchemaType.INT8, SchemaType.INT16):
        return {}
    return {"connect.type": schema.type.value.lower()}


def _logical(schema: Schema) -> dict[str, Any]:
    if schema.name == DECIMAL:
        return {"logicalType": "decimal", "precision": _PRECISION, "scale": scale_of(schema)}
    word = _LOGICAL.get(schema.name or "")
    return {} if word is None else {"logicalType": word}


def _described(schema: Schema) -> dict[str, Any]:
    told: dict[str, Any] = {
        "connect.version": schema.version,
        "connect.doc": schema.doc,
        "connect.parameters": dict(schema.parameters) or None,
        "connect.default": None if schema.default is None else _default_of(schema),
        "connect.name": schema.name,
    }
    return {name: one for name, one in told.items() if one is not None}


def _default_of(schema: Schema) -> Any:
    """A default as Avro's JSON has it: bytes are text of one letter each."""
    plain = plain_of(schema, schema.default)
    if isinstance(plain, bytes):
        return plain.decode("latin-1")
    if not schema.type.is_primitive:
        raise DataError(f"the default of a {schema.type} cannot be written to Avro")
    return plain


def connect_of(avro: Any) -> Schema:
    """The Connect schema of an Avro schema."""
    return _Reading().schema(avro, 0)


class _Reading:
    """One Avro schema on its way to Connect, with the named types met so far."""

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}

    def schema(self, avro: Any, depth: int) -> Schema:
        if depth > _DEPTH_MAX:
            raise DataError("an Avro schema has too many others around it")
        if isinstance(avro, list):
            return self._union(avro, depth)
        if isinstance(avro, str):
            if avro in self.named:
                return self.named[avro]
            if avro not in _TYPES:
                raise DataError(f"an Avro schema of type {avro} has no Connect schema")
            return Schema(type=_TYPES[avro])
        if isinstance(avro.get("type"), dict | list):
            return self.schema(avro["type"], depth + 1)
        return _with_described(self._shape(avro, depth), avro)

    def _union(self, branches: list[Any], depth: int) -> Schema:
        filled = [one for one in branches if one != "null" and one != {"type": "null"}]
        if len(filled) != 1:
            raise DataError(
                f"an Avro union of {len(filled)} types has no Connect schema here: "
                "one type and null is what can be read"
            )
        found = self.schema(filled[0], depth + 1)
        return found if len(filled) == len(branches) else found.as_optional()

    def _shape(self, avro: Mapping[str, Any], depth: int) -> Schema:
        word = avro["type"]
        if word in ("record", "error"):
            return self._record(avro, depth)
        if word == "array":
            return self._array(avro, depth)
        if word == "map":
            values = self.schema(avro["values"], depth + 1)
            keys = Schema(type=SchemaType.STRING)
            return Schema(type=SchemaType.MAP, key_schema=keys, value_schema=values)
        if word == "enum":
            symbols = {f"{_ENUM}.{one}": one for one in avro["symbols"]}
            named = {_ENUM: str(avro["name"]), **symbols}
            return self._name(avro, Schema(type=SchemaType.STRING, parameters=named))
        if word == "fixed":
            size = {_FIXED: str(avro["size"])}
            plain = Schema(type=SchemaType.BYTES, parameters=size)
            return self._name(avro, plain if avro.get("logicalType") != "decimal" else _plain(avro))
        return _plain(avro) if word in _TYPES else self.schema(word, depth + 1)

    def _record(self, avro: Mapping[str, Any], depth: int) -> Schema:
        name = str(avro["name"])
        shown = None if name == _DEFAULT_NAME else name
        fields = tuple(self._field(one, depth) for one in avro["fields"])
        doc = avro.get("doc")
        return self._name(avro, Schema(type=SchemaType.STRUCT, name=shown, fields=fields, doc=doc))

    def _name(self, avro: Mapping[str, Any], schema: Schema) -> Schema:
        self.named[str(avro["name"])] = schema
        return schema

    def _field(self, field: Mapping[str, Any], depth: int) -> SchemaField:
        found = self.schema(field["type"], depth + 1)
        default = field.get("default")
        if default is None or not found.type.is_primitive:
            return SchemaField(str(field["name"]), found)
        return SchemaField(str(field["name"]), replace(found, default=_value_of(found, default)))

    def _array(self, avro: Mapping[str, Any], depth: int) -> Schema:
        items = avro["items"]
        if isinstance(items, dict) and items.get("connect.internal.type") == "MapEntry":
            entry = self.schema({**items, "connect.internal.type": None}, depth + 1)
            keys, values = (one.schema for one in entry.fields)
            return Schema(type=SchemaType.MAP, key_schema=keys, value_schema=values)
        return Schema(type=SchemaType.ARRAY, value_schema=self.schema(items, depth + 1))


def _plain(avro: Mapping[str, Any]) -> Schema:
    logical = avro.get("logicalType")
    if logical == "decimal":
        return decimal_schema(int(avro.get(SCALE, 0)))
    if logical in _BY_LOGICAL:
        return _BY_LOGICAL[logical]
    narrow = avro.get("connect.type")
    if narrow in ("int8", "int16"):
        return Schema(type=SchemaType(narrow.upper()))
    return Schema(type=_TYPES[avro["type"]])


def _with_described(schema: Schema, avro: Mapping[str, Any]) -> Schema:
    parameters = {**schema.parameters, **(avro.get("connect.parameters") or {})}
    made = replace(
        schema,
        name=avro.get("connect.name") or schema.name,
        version=avro.get("connect.version", schema.version),
        doc=avro.get("connect.doc", schema.doc),
        parameters=parameters,
    )
    default = avro.get("connect.default")
    if default is None or not made.type.is_primitive:
        return made
    return replace(made, default=_value_of(made, default))


def _value_of(schema: Schema, default: Any) -> Any:
    from_json = default.encode("latin-1") if schema.type is SchemaType.BYTES else default
    if schema.type in (SchemaType.FLOAT32, SchemaType.FLOAT64):
        from_json = float(default)
    return logical_of(schema, from_json)
