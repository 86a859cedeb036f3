"""A stored schema to what turns documents into its bytes, header and all, and back.

    codec = document_codec(registry.by_id(7))
    data = codec.encode({"id": 1, "note": {"string": "late"}})
    codec.decode(data)

Making a codec costs a parse, so whoever serves many requests keeps it; a codec has no state and
can be used by several threads.
"""

from typing import Any, Protocol

from penstock.schemas.documents.avro import AvroDocuments
from penstock.schemas.documents.json_schema import JsonDocuments
from penstock.schemas.documents.protobuf import ProtobufDocuments
from penstock.schemas.lookup import SchemaKind, StoredSchema


class DocumentCodec(Protocol):
    """Documents, as `json.loads` gives them, under one schema."""

    @property
    def schema_id(self) -> int:
        """What the header of the bytes says."""

    def encode(self, document: Any) -> bytes:
        """The bytes of a document with their header; EncodeError says what does not fit."""

    def decode(self, data: bytes) -> Any:
        """The document in bytes with a header; DecodeError says what is wrong with them."""


def document_codec(stored: StoredSchema, *, message: str | None = None) -> DocumentCodec:
    """The codec of a schema; `message` picks one of a Protobuf file to write, else the first."""
    match stored.kind:
        case SchemaKind.AVRO:
            return AvroDocuments.of(stored)
        case SchemaKind.JSON:
            return JsonDocuments.of(stored)
        case SchemaKind.PROTOBUF:
            return ProtobufDocuments.of(stored, message)
