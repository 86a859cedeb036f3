"""Avro: schemas parsed once, one value decoded or encoded at a time, by fastavro.

What a reader wants may differ from what the writer wrote; Avro's rules of resolution decide then.
Dates, times and UUIDs can be left as the numbers and strings they are stored as (`plain`), which
is faster where Arrow gives them their type anyway, and has room for years beyond 9999.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, TypeAlias

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from penstock.schemas.errors import DecodeError, EncodeError, SchemaError
from penstock.schemas.lookup import SchemaKind, StoredSchema

Schema: TypeAlias = Any  # A name, a list (union) or a mapping, as Avro's JSON has it.

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_WITH_BYTES = PRIMITIVES - {"null"}
NAMED = frozenset({"record", "error", "enum", "fixed"})
_KEPT_LOGICAL = "decimal"  # Its digits are bytes, and the library turns them into numbers.


def parse(schema: str | Schema, references: Sequence[str] = ()) -> Schema:
    """A checked schema with full names, and every named type written out wherever it is used."""
    try:
        named: dict[str, Any] = {}
        for reference in dict.fromkeys(references):
            fastavro.parse_schema(json.loads(reference), named_schemas=named)
        parsed = fastavro.parse_schema(_loaded(schema), named_schemas=named, expand=True)
    except UnknownType as error:
        raise SchemaError(f"the Avro schema uses {error.name}, which it does not declare") from None
    except (SchemaParseException, ValueError, TypeError, KeyError, AttributeError) as error:
        raise SchemaError(f"this is not an Avro schema: {_reason(error)}") from error
    return _without_marks(parsed)


def parse_stored(stored: StoredSchema) -> Schema:
    """The parsed form of a schema that a lookup found."""
    stored.expect(SchemaKind.AVRO)
    try:
        return parse(stored.text, [reference.text for reference in stored.references])
    except SchemaError as error:
        raise SchemaError(f"schema {stored.schema_id}: {error}") from error


def parse_compact(stored: StoredSchema) -> tuple[Schema, dict[str, Schema]]:
    """A stored schema with full names, and its named types by name, each written out once."""
    stored.expect(SchemaKind.AVRO)
    named: dict[str, Schema] = {}
    try:
        for text in dict.fromkeys(reference.text for reference in stored.references):
            fastavro.parse_schema(json.loads(text), named_schemas=named)
        root = fastavro.parse_schema(_loaded(stored.text), named_schemas=named)
    except UnknownType as error:
        raise SchemaError(f"the Avro schema uses {error.name}, which it does not declare") from None
    except (SchemaParseException, ValueError, TypeError, KeyError, AttributeError) as error:
        raise SchemaError(f"this is not an Avro schema: {_reason(error)}") from error
    return _without_marks(root), named


def is_bytes(root: Schema) -> bool:
    """Whether a value is nothing but bytes: serializers then write them without their length."""
    return root == "bytes" or (isinstance(root, dict) and root["type"] == "bytes")


def self_contained(root: Schema, named: Mapping[str, Schema]) -> Schema:
    """A schema of `parse_compact` as one text: each named type written out where it comes first."""
    seen: set[str] = set()

    def written(schema: Schema) -> Schema:
        if isinstance(schema, list):
            return [written(branch) for branch in schema]
        if isinstance(schema, str):
            return schema if schema not in named or schema in seen else written(named[schema])
        out = {key: value for key, value in schema.items() if not key.startswith("__")}
        if schema["type"] in NAMED:
            if schema["name"] in seen:
                return schema["name"]
            seen.add(schema["name"])
        for key in ("items", "values"):
            if key in out:
                out[key] = written(out[key])
        if "fields" in out:
            out["fields"] = [{**one, "type": written(one["type"])} for one in out["fields"]]
        return out

    return written(root)


def may_grow_without_bytes(root: Schema, named: Mapping[str, Schema]) -> bool:
    """Whether few bytes can mean very much: types that contain themselves, items without bytes.

    fastavro follows both without a limit, the first until the process has no stack left.
    """
    return _Growth(named).of(root)


@dataclass(slots=True)
class _Growth:
    """Looks at every type once."""

    named: Mapping[str, Schema]
    above: set[str] = field(default_factory=set)
    judged: dict[str, bool] = field(default_factory=dict)

    def of(self, schema: Schema) -> bool:
        if isinstance(schema, list):
            return any(self.of(branch) for branch in schema)
        if isinstance(schema, str):
            return schema in self.named and self._of_named(schema)
        if schema["type"] in NAMED:
            return self._of_named(schema["name"])
        if schema["type"] == "array" and not self._takes_bytes(schema["items"]):
            return True
        return any(self.of(part) for part in _parts(schema))

    def _of_named(self, name: str) -> bool:
        if name in self.above:
            return True
        if name not in self.judged:
            self.above.add(name)
            self.judged[name] = any(self.of(part) for part in _parts(self.named[name]))
            self.above.discard(name)
        return self.judged[name]

    def _takes_bytes(self, schema: Schema) -> bool:
        """Whether a value takes a byte at least, as far as one look tells."""
        if isinstance(schema, str):
            schema = self.named.get(schema, schema)
        if isinstance(schema, dict) and schema["type"] in ("record", "error"):
            fields = (one["type"] for one in schema["fields"])
            return any(isinstance(one, str) and one in _WITH_BYTES for one in fields)
        if isinstance(schema, dict) and schema["type"] == "fixed":
            return bool(schema["size"])
        return schema != "null" and not (isinstance(schema, dict) and schema["type"] == "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroReader:
    """Reads values that one schema wrote, as another wants them."""

    writer: Schema  # As fastavro takes it, like the reader.
    reader: Schema | None  # None: as they were written.
    names_types: bool  # A record, enum or fixed inside a union comes as (name, value).

    @classmethod
    def of(
        cls,
        writer: Schema,
        reader: Schema | None = None,
        *,
        plain: bool = False,
        names_types: bool = False,
    ) -> "AvroReader":
        """From schemas as `parse` gives them."""
        same = reader is None or reader == writer
        return cls(
            writer=_ready(writer, plain=plain),
            reader=None if same else _ready(reader, plain=plain),
            names_types=names_types,
        )

    def decode(self, data: bytes, at: int = 0) -> Any:
        """The value that fills the bytes from `at` to the end."""
        stream = BytesIO(data)
        stream.seek(at)
        try:
            value = fastavro.schemaless_reader(
                stream, self.writer, self.reader, return_named_type=self.names_types
            )
        except Exception as error:
            raise DecodeError(f"the bytes are not of the Avro schema: {_reason(error)}") from error
        left = len(data) - stream.tell()
        if left:
            raise DecodeError(f"{left} bytes are left over behind the Avro value")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroWriter:
    """Writes values by one schema."""

    schema: Schema
    fills_defaults: bool = False  # A field that is not given gets its default.
    strict: bool = True  # A field that the schema does not have is refused.

    @classmethod
    def of(cls, schema: Schema, *, plain: bool = False) -> "AvroWriter":
        """From a schema as `parse` gives it."""
        return cls(schema=_ready(schema, plain=plain))

    def encode(self, value: Any, header: bytes = b"") -> bytes:
        """The bytes of a value, behind a header."""
        stream = BytesIO()
        stream.write(header)
        try:
            fastavro.schemaless_writer(
                stream,
                self.schema,
                value,
                strict=self.strict and not self.fills_defaults,
                strict_allow_default=self.strict and self.fills_defaults,
            )
        except Exception as error:
            raise EncodeError(f"the value is not of the Avro schema: {_reason(error)}") from error
        return stream.getvalue()


def recursive_name(schema: Schema) -> str | None:
    """The name of a type that contains itself: only such names are left where a type could be."""
    if isinstance(schema, str):
        return None if schema in PRIMITIVES else schema
    found = (recursive_name(part) for part in _parts(schema))
    return next((name for name in found if name is not None), None)


def has_choice(schema: Schema) -> bool:
    """Whether a union somewhere leaves a choice besides null."""
    if isinstance(schema, list) and len([b for b in schema if b != "null"]) > 1:
        return True
    return not isinstance(schema, str) and any(has_choice(part) for part in _parts(schema))


def _parts(schema: Schema) -> list[Schema]:
    """What a schema is made of, one level down."""
    if isinstance(schema, list):
        return schema
    parts = [schema[key] for key in ("items", "values") if key in schema]
    return parts + [field["type"] for field in schema.get("fields", ())]


def _loaded(schema: str | Schema) -> Schema:
    if not isinstance(schema, str) or schema in PRIMITIVES:
        return schema
    return json.loads(schema)


def _without_marks(schema: Schema) -> Schema:
    """The schema without the notes that fastavro leaves in it for itself."""
    if isinstance(schema, list):
        return [_without_marks(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_marks(value) if key in ("type", "items", "values", "fields") else value
        for key, value in schema.items()
        if not key.startswith("__")
    }


def _ready(schema: Schema, *, plain: bool) -> Schema:
    return fastavro.parse_schema(_compact(schema, set(), plain=plain))


def _compact(schema: Schema, seen: set[str], *, plain: bool) -> Schema:
    """A type that comes again is only named, as Avro wants it; its logical types may be dropped."""
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return [_compact(branch, seen, plain=plain) for branch in schema]
    if schema["type"] in NAMED:
        if schema["name"] in seen:
            return schema["name"]
        seen.add(schema["name"])
    out = dict(schema)
    if plain and out.get("logicalType") not in (None, _KEPT_LOGICAL):
        del out["logicalType"]
    for key in ("items", "values"):
        if key in out:
            out[key] = _compact(out[key], seen, plain=plain)
    if "fields" in out:
        out["fields"] = [
            {**field, "type": _compact(field["type"], seen, plain=plain)} for field in out["fields"]
        ]
    return out


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "they end too early"
    return f"{type(error).__name__}: {error}"
