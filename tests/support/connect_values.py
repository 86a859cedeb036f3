"""Connect's schemas, values and records as the JSON that the judge reads and writes.

A value is null, or a pair of a tag and its content. Java's three kinds of dates are one there, so
dates, times and timestamps all become milliseconds.
"""

import base64
import decimal
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

from penstock.connect.records import ConnectRecord, Header, SinkRecord, SourceRecord
from penstock.connect.values.java_numbers import decimal_text
from penstock.connect.values.logical import (
    DATE,
    TIME,
    date_of,
    days_of,
    time_ms_of,
    time_of,
    timestamp_ms_of,
    timestamp_of,
)
from penstock.connect.values.schema import Schema, SchemaField, SchemaType
from penstock.connect.values.struct import StructValue

DAY_MS = 86_400_000


def schema_node(schema: Schema | None) -> Any:
    """A schema as JSON."""
    if schema is None:
        return None
    node: dict[str, Any] = {"type": schema.type.value}
    if schema.optional:
        node["optional"] = True
    told = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    node.update({name: one for name, one in told.items() if one is not None})
    if schema.parameters:
        node["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        node["default"] = value_node(schema.default)
    if schema.type is SchemaType.STRUCT:
        node["fields"] = [
            {"name": one.name, "schema": schema_node(one.schema)} for one in schema.fields
        ]
    if schema.type is SchemaType.MAP:
        node["keys"] = schema_node(schema.key_schema)
    if schema.type in (SchemaType.MAP, SchemaType.ARRAY):
        node["values"] = schema_node(schema.value_schema)
    return node


def schema_of(node: Any) -> Schema | None:
    """A schema of JSON."""
    if node is None:
        return None
    fields = []
    for one in node.get("fields", ()):
        inner = schema_of(one["schema"])
        assert inner is not None
        fields.append(SchemaField(one["name"], inner))
    made = Schema(
        type=SchemaType(node["type"]),
        optional=node.get("optional", False),
        name=node.get("name"),
        version=node.get("version"),
        doc=node.get("doc"),
        parameters=node.get("parameters", {}),
        fields=tuple(fields),
        key_schema=schema_of(node.get("keys")),
        value_schema=schema_of(node.get("values")),
    )
    if node.get("default") is None:
        return made
    return Schema(
        **{
            name: getattr(made, name)
            for name in ("type", "optional", "name", "version", "doc", "parameters", "fields")
        },
        key_schema=made.key_schema,
        value_schema=made.value_schema,
        default=value_of(node["default"], made),
    )


def value_node(value: Any) -> Any:
    """A value as JSON."""
    if value is None:
        return None
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", repr(value)]
    if isinstance(value, str):
        return ["string", value]
    if isinstance(value, bytes):
        return ["bytes", base64.b64encode(value).decode()]
    if isinstance(value, decimal.Decimal):
        return ["decimal", decimal_text(value)]
    if isinstance(value, date | time):
        return ["date", _ms_of(value)]
    if isinstance(value, list):
        return ["array", [value_node(one) for one in value]]
    if isinstance(value, dict):
        return ["map", [[value_node(k), value_node(v)] for k, v in value.items()]]
    assert isinstance(value, StructValue), value
    names = [one.name for one in value.schema.fields]
    return ["struct", [[n, value_node(v)] for n, v in zip(names, value.values, strict=True)]]


def _ms_of(value: date | time) -> int:
    if isinstance(value, datetime):
        return timestamp_ms_of(value)
    return time_ms_of(value) if isinstance(value, time) else days_of(value) * DAY_MS


def value_of(node: Any, schema: Schema | None) -> Any:
    """A value of JSON."""
    if node is None:
        return None
    tag, content = node
    inner = None if schema is None else schema.value_schema
    match tag:
        case "bool" | "string":
            return content
        case "int":
            return int(content)
        case "float":
            return float(content.replace("Infinity", "inf"))
        case "bytes":
            return base64.b64decode(content)
        case "decimal":
            return decimal.Decimal(content)
        case "date":
            return _date_of(content, None if schema is None else schema.name)
        case "array":
            return [value_of(one, inner) for one in content]
        case "map":
            keys = None if schema is None else schema.key_schema
            return {value_of(k, keys): value_of(v, inner) for k, v in content}
    assert schema is not None
    found = {}
    for name, one in content:
        field = schema.field(name)
        assert field is not None
        found[name] = value_of(one, field.schema)
    return StructValue(schema, tuple(found.get(one.name) for one in schema.fields))


def _date_of(ms: int, name: str | None) -> date | time:
    if name == DATE:
        return date_of(ms // DAY_MS)
    return time_of(ms) if name == TIME else timestamp_of(ms)


def record_node(record: ConnectRecord | None) -> Any:
    """A record as JSON; what is its kind's own is left out."""
    if record is None:
        return None
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key_schema": schema_node(record.key_schema),
        "key": value_node(record.key),
        "value_schema": schema_node(record.value_schema),
        "value": value_node(record.value),
        "headers": [
            {"name": one.name, "schema": schema_node(one.schema), "value": value_node(one.value)}
            for one in record.headers
        ],
    }


def record_of(node: Mapping[str, Any]) -> ConnectRecord:
    """A record of JSON: a sink's if it has an offset."""
    keys, values = schema_of(node["key_schema"]), schema_of(node["value_schema"])
    headers = []
    for one in node["headers"]:
        schema = schema_of(one["schema"])
        headers.append(Header(one["name"], schema, value_of(one["value"], schema)))
    told: dict[str, Any] = {
        "topic": node["topic"],
        "partition": node["partition"],
        "timestamp": node["timestamp"],
        "key_schema": keys,
        "key": value_of(node["key"], keys),
        "value_schema": values,
        "value": value_of(node["value"], values),
        "headers": tuple(headers),
    }
    if node.get("offset") is not None:
        return SinkRecord(**told, offset=node["offset"])
    return SourceRecord(**told, source_partition={"p": 1}, source_offset={"o": 2})
