"""Records as documents: each side under the format that was asked for, or that fits.

AUTO looks at the bytes: a header that names a schema of the registry, else JSON, else text, else
base64. The document says which it was.
"""

import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from penstock.client.errors import ClientError
from penstock.records.record import Record
from penstock.rest.errors import BadRequest
from penstock.rest.payloads.formats import EmbeddedFormat
from penstock.rest.payloads.plain import (
    DECODERS,
    decode_binary,
    decode_json,
    decode_string,
    dump_json,
)
from penstock.rest.v3.sent_records import timestamp_text
from penstock.schemas.errors import FormatError
from penstock.schemas.wire_header import HEADER_BYTES, MAGIC, read_header

if TYPE_CHECKING:
    from penstock.rest.payloads.schema_finder import SchemaFinder

AUTO = "AUTO"
_FORGET_S = 5.0  # How long an id that the registry does not know is not asked for again.
_UNKNOWN_MAX = 1_000

Document: TypeAlias = dict[str, Any]
Decoder: TypeAlias = Callable[[bytes], Document]


class ShownFormats(NamedTuple):
    """How keys and values are to be shown."""

    key: str = AUTO
    value: str = AUTO

    @classmethod
    def of(cls, key: str | None, value: str | None) -> "ShownFormats":
        """As parameters write them."""
        return cls(_format(key), _format(value))


class RecordView:
    """Turns records into documents; may ask the registry, and is then for a thread."""

    def __init__(self, formats: ShownFormats, schemas: "SchemaFinder | None") -> None:
        self._key = self._decoder(formats.key)
        self._value = self._decoder(formats.value)
        self._schemas = schemas
        self._unknown: dict[int, float] = {}  # Ids that the registry does not have, until when.

    def may_wait(self, records: Sequence[Record]) -> bool:
        """Whether a registry may have to be asked."""
        if self._schemas is None:
            return False
        return any(_names_schema(one.key) or _names_schema(one.value) for one in records)

    def text(self, partition: int, record: Record) -> bytes:
        """A record as JSON on one line."""
        return dump_json(self.document(partition, record))

    def document(self, partition: int, record: Record) -> Document:
        """A record."""
        return {
            "partition_id": partition,
            "offset": record.offset,
            "timestamp": timestamp_text(record.timestamp) if record.timestamp >= 0 else None,
            "headers": [
                {"name": name, "value": decode_binary(value)} for name, value in record.headers
            ],
            "key": _side(self._key, record.key),
            "value": _side(self._value, record.value),
        }

    def _decoder(self, format_: str) -> Decoder:
        if format_ == AUTO:
            return self._fitting
        known = DECODERS.get(EmbeddedFormat(format_))
        if known is None:
            return lambda data: self._by_schema(data) or _binary(data)
        decode = known
        return lambda data: _attempt(format_, decode, data) or _binary(data)

    def _fitting(self, data: bytes) -> Document:
        return (
            self._by_schema(data)
            or _attempt(EmbeddedFormat.JSON.value, decode_json, data)
            or _attempt(EmbeddedFormat.STRING.value, decode_string, data)
            or _binary(data)
        )

    def _by_schema(self, data: bytes) -> Document | None:
        """None: the bytes name no schema, or one that cannot be had."""
        if self._schemas is None or not _names_schema(data):
            return None
        try:
            schema_id = read_header(data)
            if self._unknown.get(schema_id, 0.0) > time.monotonic():
                return None
            codec = self._schemas.codec(schema_id)
            return {"type": _language(codec), "schema_id": schema_id, "data": codec.decode(data)}
        except (FormatError, ClientError):
            self._note_unknown(data)
            return None

    def _note_unknown(self, data: bytes) -> None:
        if len(self._unknown) >= _UNKNOWN_MAX:
            self._unknown.clear()
        self._unknown[int.from_bytes(data[1:HEADER_BYTES])] = time.monotonic() + _FORGET_S


def _side(decode: Decoder, data: bytes | None) -> Document | None:
    if data is None:
        return None
    return decode(data)


def _language(codec: object) -> str:
    """The format of a schema at hand; whoever has one has loaded its language."""
    from penstock.schemas.documents.avro import AvroDocuments
    from penstock.schemas.documents.protobuf import ProtobufDocuments

    if isinstance(codec, AvroDocuments):
        return EmbeddedFormat.AVRO.value
    is_protobuf = isinstance(codec, ProtobufDocuments)
    return (EmbeddedFormat.PROTOBUF if is_protobuf else EmbeddedFormat.JSONSCHEMA).value


def _attempt(word: str, decode: Callable[[bytes], Any], data: bytes) -> Document | None:
    try:
        return {"type": word, "data": decode(data)}
    except FormatError:
        return None


def _binary(data: bytes) -> Document:
    return {"type": EmbeddedFormat.BINARY.value, "data": b64encode(data).decode("ascii")}


def _names_schema(data: bytes | None) -> bool:
    return data is not None and len(data) >= HEADER_BYTES and data[0] == MAGIC


def _format(text: str | None) -> str:
    word = (text or AUTO).upper()
    if word != AUTO and word not in EmbeddedFormat.__members__:
        raise BadRequest(f"format {text} is not one of {AUTO}, {', '.join(EmbeddedFormat)}.")
    return word
