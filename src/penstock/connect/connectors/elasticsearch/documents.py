"""Records as lines of a bulk call, schemas as mappings, and what an answer says of each line.

Pure: values in, values out. Versions make a replay harmless: a document that is as new or newer is
a conflict, and a conflict means that the record is there already.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.connect.converters.json import JsonConverter
from penstock.connect.errors.kinds import DataError
from penstock.connect.records import SinkRecord
from penstock.connect.values.logical import DATE, DECIMAL, TIME, TIMESTAMP
from penstock.connect.values.schema import Schema, SchemaType

ID_BYTES_MAX = 512
_JSON = JsonConverter({"schemas.enable": "false", "decimal.format": "NUMERIC"}, is_key=False)
_MALFORMED = frozenset(
    {
        "mapper_parsing_exception",
        "document_parsing_exception",
        "strict_dynamic_mapping_exception",
        "illegal_argument_exception",
        "action_request_validation_exception",
        "array_index_out_of_bounds_exception",
        "invalid_index_name_exception",
    }
)
_TYPES = {
    SchemaType.INT8: "byte",
    SchemaType.INT16: "short",
    SchemaType.INT32: "integer",
    SchemaType.INT64: "long",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BOOLEAN: "boolean",
    SchemaType.BYTES: "binary",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRules:
    """What the settings say of documents."""

    ignores_key: bool
    is_upsert: bool
    on_null: str  # FAIL, IGNORE or DELETE.
    version_header: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkLine:
    """One action of a bulk call, as the bytes it is sent as."""

    record: SinkRecord
    index: str
    content: bytes


def index_name(topic: str) -> str:
    """The index of a topic: names are in small letters, and not too long."""
    name = re.sub(r'[\\/*?"<>| ,#:]', "_", topic.lower()).lstrip("-_+")
    if name in ("", ".", ".."):
        raise DataError(f"the topic {topic} has no name that an index could have")
    return name.encode()[:255].decode(errors="ignore")


def bulk_line(record: SinkRecord, rules: DocumentRules) -> BulkLine | None:
    """The action of a record; None: it is passed. DataError for one that is no document."""
    index = index_name(record.topic)
    if record.value is None:
        return _without_value(record, index, rules)
    body = _JSON.from_connect(record.topic, record.value_schema, record.value) or b""
    if not body.startswith(b"{"):
        raise DataError("a document has fields, and the value has none: use HoistField")
    target = {"_index": index, "_id": document_id(record, rules)}
    if rules.is_upsert:
        action = {"update": {**target, "retry_on_conflict": 3}}
        content = _line(action) + b'{"doc":' + body + b',"doc_as_upsert":true}\n'
    else:
        action = {"index": {**target, **_version(record, rules)}}
        content = _line(action) + body + b"\n"
    return BulkLine(record=record, index=index, content=content)


def _without_value(record: SinkRecord, index: str, rules: DocumentRules) -> BulkLine | None:
    if rules.on_null == "IGNORE" or (rules.on_null == "DELETE" and record.key is None):
        return None
    if rules.on_null == "FAIL":
        raise DataError("the record has no value (behavior.on.null.values decides of such)")
    target = {"_index": index, "_id": document_id(record, rules)}
    version = {} if rules.is_upsert else _version(record, rules)
    return BulkLine(record=record, index=index, content=_line({"delete": {**target, **version}}))


def document_id(record: SinkRecord, rules: DocumentRules) -> str:
    """What a document is known by."""
    if rules.ignores_key:
        topic = record.original_topic or record.topic
        return f"{topic}+{_source_partition(record)}+{_source_offset(record)}"
    key = record.key
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise DataError(
            f"the key is {'null' if key is None else f'a {type(key).__name__}'}, and an id is a "
            "text or a whole number (key.ignore=true uses topic, partition and offset)"
        )
    if not str(key) or len(str(key).encode(errors="replace")) > ID_BYTES_MAX:
        raise DataError(f"an id has 1 to {ID_BYTES_MAX} bytes")
    return str(key)


def _version(record: SinkRecord, rules: DocumentRules) -> dict[str, Any]:
    kind = "external_gte" if rules.ignores_key else "external"
    if not rules.version_header:
        return {"version": _source_offset(record), "version_type": kind}
    for header in reversed(record.headers):
        if header.name == rules.version_header:
            return {"version": _whole(header.value, rules.version_header), "version_type": kind}
    raise DataError(f"the record has no header {rules.version_header} for its version")


def _whole(value: Any, name: str) -> int:
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    try:
        return int(text)
    except (TypeError, ValueError):
        raise DataError(f"the header {name} is {value!r}, which is no version") from None


def _source_partition(record: SinkRecord) -> int:
    found = record.partition if record.original_partition is None else record.original_partition
    return found or 0


def _source_offset(record: SinkRecord) -> int:
    return record.offset if record.original_offset is None else record.original_offset


def _line(action: Mapping[str, Any]) -> bytes:
    return json.dumps(action, separators=(",", ":")).encode() + b"\n"


class LineOutcome(Enum):
    """What became of one line."""

    DONE = "DONE"
    AGAIN = "AGAIN"  # The server was too busy for it.
    MALFORMED = "MALFORMED"  # The server will never take it.
    REFUSED = "REFUSED"  # Something else than the document is wrong.


def outcome_of(item: Mapping[str, Any]) -> tuple[LineOutcome, str]:
    """What an item of the answer says, and why."""
    found = next(iter(item.values()))
    status, error = int(found.get("status", 0)), found.get("error") or {}
    kind = error.get("type", "") if isinstance(error, dict) else ""
    reason = f"{kind}: {error.get('reason', '')}" if isinstance(error, dict) else str(error)
    if status < 300 or (status == 404 and "delete" in item and not error):
        return LineOutcome.DONE, ""
    if status == 409 and kind == "version_conflict_engine_exception" and "update" not in item:
        return LineOutcome.DONE, ""  # It is there already, or a newer one.
    if status in (409, 429) or status >= 500:
        return LineOutcome.AGAIN, reason
    is_malformed = status == 400 and (kind in _MALFORMED or kind.endswith("parsing_exception"))
    return (LineOutcome.MALFORMED if is_malformed else LineOutcome.REFUSED), reason


def mapping_of(schema: Schema) -> dict[str, Any]:
    """The mapping of a schema's documents; DataError for one that has no fields."""
    if schema.type is not SchemaType.STRUCT:
        raise DataError(f"a mapping is made of fields, and a {schema.type} has none")
    return {"properties": {one.name: _property(one.schema) for one in schema.fields}}


def _property(schema: Schema) -> dict[str, Any]:
    if schema.name == TIMESTAMP:
        return {"type": "date", "format": "epoch_millis"}
    if schema.name in (DATE, TIME):
        return {"type": "integer"}  # Days and milliseconds, as JSON has them.
    if schema.name == DECIMAL:
        return {"type": "double"}
    if schema.type is SchemaType.STRUCT:
        return mapping_of(schema)
    if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        return _property(schema.value_schema)  # A field may have many values.
    if schema.type is SchemaType.MAP:
        return {"type": "object"}
    if schema.type is SchemaType.STRING:
        return {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    return {"type": _TYPES[schema.type]}
