"""JsonConverter: values as JSON, with their schema around them or without.

With `schemas.enable` a value is `{"schema": ..., "payload": ...}`. What a schema becomes is made
once; of a document that begins with the schema read last, the payload alone is parsed.
"""

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn, TypeAlias

from penstock.connect.converters.document_settings import JSON_SETTINGS
from penstock.connect.converters.json_schemas import schema_document, schema_of_document
from penstock.connect.converters.settings import converter_type
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import Converter, SchemaAndValue
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.java_numbers import BITS, decimal_text, low_bits, real_text, single
from penstock.connect.values.logical import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    date_of,
    decimal_of,
    is_logical,
    plain_of,
    scale_of,
    time_of,
    timestamp_of,
)
from penstock.connect.values.schema import Schema, SchemaType
from penstock.connect.values.struct import StructValue

_PAYLOAD = ',"payload":'
_NO_SCHEMA = b'{"schema":null,"payload":'
_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain '
    "additional fields. If you are trying to deserialize plain JSON data, set "
    "schemas.enable=false in your converter configuration."
)
NodeOf: TypeAlias = Callable[[Any], Any]
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class DocumentHead(NamedTuple):
    """What stands before a payload, and the schema that is in it."""

    text: str
    schema: Schema | None


class JsonConverter(Converter):
    """Kafka's JsonConverter."""

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        parsed = self.config_def().parse({**config, **converter_type(is_key)})
        self._with_schemas = parsed["schemas.enable"]
        self._writer = JsonWriter(
            numeric=parsed["decimal.format"].upper() == "NUMERIC",
            replaces_null=parsed["replace.null.with.default"],
        )
        self._reader = JsonReader(replaces_null=parsed["replace.null.with.default"])
        self._heads = SchemaCache(self._head)
        content = parsed["schema.content"]
        self._content = None if not content else self._schema(_loaded(content))
        self._last: tuple[str, Schema | None] | None = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Its settings."""
        return JSON_SETTINGS

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """JSON of a value."""
        if schema is None and value is None:
            return None
        payload = self._writer.text(self._writer.node(schema, value))
        head, tail = self.around(schema)
        return b"".join((head, _encoded(payload), tail))

    @property
    def writer(self) -> "JsonWriter":
        """What makes payloads."""
        return self._writer

    def around(self, schema: Schema | None) -> tuple[bytes, bytes]:
        """What stands before and behind the payload of a value with this schema."""
        if not self._with_schemas or self._content is not None:
            return b"", b""
        return _NO_SCHEMA if schema is None else self._heads.get(schema), b"}"

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The value of some JSON."""
        if data is None:
            return None, None
        text = _decoded(data)
        if not self._with_schemas:
            return None, self._reader.value(None, _loaded(text) if text.strip() else None)
        if self._content is not None:
            return self._content, self._reader.value(self._content, _loaded(text))
        known = self._known(text)
        schema, payload = self._enveloped(text) if known is None else known
        return schema, self._reader.value(schema, payload)

    def head_of(self, topic: str, data: bytes) -> "DocumentHead | None":
        """How a document begins, up to its payload, and its schema.

        None: it is not written as converters write it, or values come without their schemas.
        """
        if not self._with_schemas or self._content is not None:
            return None
        self.to_connect(topic, data)
        last = self._last
        if last is None or not _decoded(data).startswith(last[0]):
            return None
        return DocumentHead(*last)

    def _known(self, text: str) -> tuple[Schema | None, Any] | None:
        """Schema and payload of a document that begins as the last one did; None: it does not."""
        if self._last is None or not text.startswith(self._last[0]) or text[-1:] != "}":
            return None
        try:
            return self._last[1], _loaded(text[len(self._last[0]) : -1])
        except DataError:
            return None  # More follows the payload, so the whole is looked at.

    def _enveloped(self, text: str) -> tuple[Schema | None, Any]:
        found = _loaded(text)
        if not isinstance(found, dict) or found.keys() != {"schema", "payload"}:
            raise DataError(_ENVELOPE)
        schema = self._schema(found["schema"])
        self._remember(text, schema)
        return schema, found["payload"]

    def _remember(self, text: str, schema: Schema | None) -> None:
        """Keep how the document begins, if it is written as converters write it."""
        start = '{"schema":'
        if not text.startswith(start):
            return
        try:
            _, end = _DECODER.raw_decode(text, len(start))
        except ValueError:
            return  # A blank stands before the schema.
        if text.startswith(_PAYLOAD, end):
            self._last = (text[: end + len(_PAYLOAD)], schema)

    def _schema(self, document: Any) -> Schema | None:
        return schema_of_document(document, self._reader.value)

    def _head(self, schema: Schema) -> bytes:
        document = schema_document(schema, self._writer.node)
        return _encoded('{"schema":' + self._writer.text(document) + _PAYLOAD)


class JsonWriter:
    """Values as the nodes of JSON, and nodes as text.

    What a schema asks for is worked out once: for each schema there is a function from values to
    nodes, and in a struct whole numbers, texts and booleans need no call at all.
    """

    def __init__(self, *, numeric: bool, replaces_null: bool) -> None:
        self._numeric = numeric
        self._replaces_null = replaces_null
        self._made = SchemaCache(self._maker)

    def node(self, schema: Schema | None, value: Any) -> Any:
        """What JSON has for a value."""
        if schema is None:
            return self._without_schema(value)
        return self._made.get(schema)(value)

    def text(self, node: Any) -> str:
        """A node in words."""
        try:
            return _exact_text(node) if self._numeric else _encode(node)
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError(
                f"Converting Kafka Connect data to byte[] failed due to serialization error: "
                f"{error}"
            ) from error

    def _maker(self, schema: Schema) -> NodeOf:
        """The function for a schema."""
        make = self._plain_maker(schema) if is_logical(schema) else self._typed_maker(schema)

        def node(value: Any) -> Any:
            if value is None:
                return self._null(schema)
            try:
                return make(value)
            except (AttributeError, TypeError, ValueError) as error:
                raise DataError(
                    f"Invalid type for {schema.type}: {type(value).__name__}"
                ) from error

        return node

    def _null(self, schema: Schema) -> Any:
        if schema.default is not None and self._replaces_null:
            return self.node(schema, schema.default)
        if schema.optional:
            return None
        raise DataError(
            "Conversion error: null value for field that is required and has no default value"
        )

    def _plain_maker(self, schema: Schema) -> NodeOf:
        """Dates, times and decimals, by the plain values they travel as."""
        as_it_is = schema.name == DECIMAL and self._numeric
        typed = self._typed_maker(schema)

        def node(value: Any) -> Any:
            if as_it_is:
                return value if isinstance(value, Decimal) else typed(value)
            try:
                plain = plain_of(schema, value)
            except (AttributeError, TypeError) as error:
                raise DataError(
                    f"Invalid type for {schema.name}: {type(value).__name__}"
                ) from error
            return typed(plain)

        return node

    def _typed_maker(self, schema: Schema) -> NodeOf:
        match schema.type:
            case SchemaType.STRUCT:
                return self._struct_maker(schema)
            case SchemaType.MAP:
                return self._map_maker(schema)
            case SchemaType.ARRAY:
                part = self._part(schema.value_schema)
                return lambda value: [part(one) for one in value]
            case SchemaType.FLOAT32:
                return _single_node
        return _SCALARS[schema.type]

    def _part(self, schema: Schema | None) -> NodeOf:
        return self._without_schema if schema is None else self._maker(schema)

    def _struct_maker(self, schema: Schema) -> NodeOf:
        fields = [
            (one.name, _kept_type(one.schema), self._maker(one.schema)) for one in schema.fields
        ]

        def node(value: Any) -> dict[str, Any]:
            if value.schema is not schema and value.schema != schema:
                raise DataError("Mismatching schema.")
            return {
                name: part if type(part) is kept else make(part)
                for (name, kept, make), part in zip(fields, value.values, strict=True)
            }

        has_plain_parts = all(kept is not None for _, kept, _ in fields)
        return _remembered(node) if has_plain_parts else node

    def _map_maker(self, schema: Schema) -> NodeOf:
        keys, parts = self._part(schema.key_schema), self._part(schema.value_schema)
        if schema.key_schema is not None and schema.key_schema.type is SchemaType.STRING:
            return lambda value: {str(key): parts(one) for key, one in value.items()}
        return lambda value: [[keys(key), parts(one)] for key, one in value.items()]

    def _without_schema(self, value: Any) -> Any:
        if isinstance(value, bool | int | str) or value is None:
            return value
        if isinstance(value, float):
            return _real_node(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return base64.b64encode(value).decode()
        if isinstance(value, StructValue):
            return self.node(value.schema, value)
        if isinstance(value, list | tuple):
            return [self._without_schema(one) for one in value]
        if isinstance(value, dict):
            return self._map_without_schema(value)
        raise DataError(f"Class {type(value).__name__} does not have corresponding schema type.")

    def _map_without_schema(self, value: dict[Any, Any]) -> Any:
        node = self._without_schema
        if all(isinstance(key, str) for key in value):
            return {key: node(one) for key, one in value.items()}
        return [[node(key), node(one)] for key, one in value.items()]


def _remembered(make: NodeOf) -> NodeOf:
    """The same node for the same value: all changes of a transaction share their source block."""
    last: tuple[Any, Any] = (None, None)

    def node(value: Any) -> Any:
        nonlocal last
        if value is not last[0]:
            last = (value, make(value))
        return last[1]

    return node


def _kept_type(schema: Schema) -> type | None:
    """The type whose values are their own nodes; None: there is none."""
    return None if is_logical(schema) else _KEPT.get(schema.type)


_KEPT: dict[SchemaType, type] = {
    **dict.fromkeys(BITS, int),
    SchemaType.STRING: str,
    SchemaType.BOOLEAN: bool,
}


def _whole_node(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    return value


def _boolean_node(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _text_node(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _double_node(value: Any) -> Any:
    if not isinstance(value, float):
        raise TypeError(value)
    return _real_node(value)


def _single_node(value: Any) -> Any:
    if isinstance(value, float) and math.isfinite(value):
        return float(real_text(single(value), is_single=True))
    return _double_node(value)


def _real_node(value: float) -> float | str:
    return value if math.isfinite(value) else real_text(value)


_SCALARS: dict[SchemaType, NodeOf] = {
    **dict.fromkeys(BITS, _whole_node),
    SchemaType.FLOAT64: _double_node,
    SchemaType.BOOLEAN: _boolean_node,
    SchemaType.STRING: _text_node,
    SchemaType.BYTES: lambda value: base64.b64encode(value).decode(),
}


class JsonReader:
    """Nodes of JSON as values."""

    def __init__(self, *, replaces_null: bool) -> None:
        self._replaces_null = replaces_null

    def value(self, schema: Schema | None, node: Any) -> Any:
        """The value of a node, as lenient as Java's: a text where a number should be is 0."""
        if schema is None:
            return self._without_schema(node)
        if node is None:
            return self._null(schema)
        if schema.name in _LOGICAL:
            return _LOGICAL[schema.name](schema, node)
        return _FROM_NODE[schema.type](self, schema, node)

    def _null(self, schema: Schema) -> Any:
        if schema.default is not None and self._replaces_null:
            return schema.default
        if schema.optional:
            return None
        raise DataError(f"Invalid null value for required {schema.type} field")

    def _without_schema(self, node: Any) -> Any:
        if isinstance(node, bool | str) or node is None:
            return node
        if isinstance(node, int | Decimal):
            return low_bits(Decimal(node), 64) if isinstance(node, int) else _double(node)
        if isinstance(node, list):
            return [self._without_schema(one) for one in node]
        return {key: self._without_schema(one) for key, one in node.items()}

    def _array(self, schema: Schema, node: Any) -> list[Any]:
        parts = list(node.values()) if isinstance(node, dict) else node
        listed = parts if isinstance(parts, list) else []
        return [self.value(schema.value_schema, one) for one in listed]

    def _map(self, schema: Schema, node: Any) -> dict[Any, Any]:
        keys, parts = schema.key_schema, schema.value_schema
        if keys is not None and keys.type is SchemaType.STRING:
            if not isinstance(node, dict):
                raise DataError("Maps with string fields should be encoded as JSON objects")
            return {key: self.value(parts, one) for key, one in node.items()}
        if not isinstance(node, list) or not all(
            isinstance(one, list) and len(one) == 2 for one in node
        ):
            raise DataError("Maps with non-string fields should be encoded as JSON array of tuples")
        try:
            return {self.value(keys, one[0]): self.value(parts, one[1]) for one in node}
        except TypeError:
            raise DataError("a list or a map cannot be the key of a map here") from None

    def _struct(self, schema: Schema, node: Any) -> StructValue:
        if not isinstance(node, dict):
            raise DataError("Structs should be encoded as JSON objects")
        values = []
        for one in schema.fields:
            found = self.value(one.schema, node.get(one.name))
            if found is None and not one.schema.optional:
                raise DataError(
                    f'Invalid value: null used for required field: "{one.name}", '
                    f"schema type: {one.schema.type}"
                )
            values.append(found)
        return StructValue(schema, tuple(values))


def _whole(reader: JsonReader, schema: Schema, node: Any) -> int:
    if isinstance(node, bool) or not isinstance(node, int | Decimal):
        return 0
    bits = BITS[schema.type]
    return low_bits(Decimal(low_bits(Decimal(node), 64 if bits == 64 else 32)), bits)


def _real(reader: JsonReader, schema: Schema, node: Any) -> float:
    if isinstance(node, bool) or not isinstance(node, int | Decimal):
        return 0.0
    real = _double(node)
    return single(real) if schema.type is SchemaType.FLOAT32 else real


def _double(node: int | Decimal) -> float:
    try:
        return float(node)
    except OverflowError:
        return math.copysign(math.inf, node)


def _bytes(node: Any) -> bytes | None:
    if not isinstance(node, str):
        return None
    try:
        return base64.b64decode(node, validate=True)
    except (binascii.Error, ValueError):
        raise DataError("Invalid bytes field") from None


_FROM_NODE: dict[SchemaType, Callable[[JsonReader, Schema, Any], Any]] = {
    **dict.fromkeys(BITS, _whole),
    SchemaType.FLOAT32: _real,
    SchemaType.FLOAT64: _real,
    SchemaType.BOOLEAN: lambda reader, schema, node: node is True,
    SchemaType.STRING: lambda reader, schema, node: node if isinstance(node, str) else None,
    SchemaType.BYTES: lambda reader, schema, node: _bytes(node),
    SchemaType.ARRAY: JsonReader._array,
    SchemaType.MAP: JsonReader._map,
    SchemaType.STRUCT: JsonReader._struct,
}


def _decimal(schema: Schema, node: Any) -> Decimal:
    if isinstance(node, int | Decimal) and not isinstance(node, bool):
        return Decimal(node)
    data = _bytes(node)
    if data is None:
        raise DataError(
            "Invalid type for Decimal, underlying representation should be numeric or bytes"
        )
    return decimal_of(data, scale_of(schema))


def _integer(schema: Schema, node: Any, bits: int) -> int:
    if (
        isinstance(node, bool)
        or not isinstance(node, int)
        or (bits == 32 and not -(2**31) <= node < 2**31)
    ):
        raise DataError(
            f"Invalid type for {schema.name}, underlying representation should be integer"
        )
    return low_bits(Decimal(node), bits)


_LOGICAL: dict[str | None, Callable[[Schema, Any], Any]] = {
    DECIMAL: _decimal,
    DATE: lambda schema, node: date_of(_integer(schema, node, 32)),
    TIME: lambda schema, node: time_of(_integer(schema, node, 32)),
    TIMESTAMP: lambda schema, node: timestamp_of(_integer(schema, node, 64)),
}


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse)


def _loaded(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}"
        ) from error


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the JSON is not UTF-8: {error}") from error


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"a text has half a character: {error}") from error


def _exact_text(node: Any) -> str:
    """A node in words, with decimals as they are."""
    if isinstance(node, Decimal):
        return decimal_text(node)
    if isinstance(node, dict):
        return (
            "{"
            + ",".join(
                f"{json.dumps(k, ensure_ascii=False)}:{_exact_text(v)}" for k, v in node.items()
            )
            + "}"
        )
    if isinstance(node, list):
        return "[" + ",".join(map(_exact_text, node)) + "]"
    return json.dumps(node, ensure_ascii=False)
