"""Protobuf's JSON mapping: field names in camel case, 64-bit numbers as texts, bytes in base64.

Google's library does the mapping. A document is written as the first message of the file unless
another is asked for; bytes say themselves which message they are.
"""

from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]

from penstock.schemas.errors import DecodeError, EncodeError
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.protobuf import ProtobufSchema
from penstock.schemas.wire_header import (
    read_header,
    read_message_indexes,
    write_header,
    write_message_indexes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufDocuments:
    """Documents of one Protobuf file."""

    schema_id: int
    written: ProtobufSchema
    header: bytes
    by_path: dict[tuple[int, ...], ProtobufSchema] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: StoredSchema, message: str | None = None) -> "ProtobufDocuments":
        """From a schema that a lookup found."""
        stored.expect(SchemaKind.PROTOBUF)
        written = ProtobufSchema.of(stored.descriptor_set, message)
        header = write_header(stored.schema_id) + write_message_indexes(written.index_path)
        return cls(schema_id=stored.schema_id, written=written, header=header)

    def encode(self, document: Any) -> bytes:
        """The bytes of a document with their header."""
        message = self.written.message_class()
        if not isinstance(document, dict) and not self.written.message.startswith("google."):
            raise EncodeError(f"a document of {self.written.message} is an object")
        try:
            json_format.ParseDict(document, message, descriptor_pool=self.written.pool)
            return self.header + bytes(message.SerializeToString())
        except (json_format.Error, ValueError, TypeError, AttributeError) as error:
            raise EncodeError(f"the document is no {self.written.message}: {error}") from error
        except RecursionError:
            raise EncodeError("the document is nested too deeply") from None

    def decode(self, data: bytes) -> Any:
        """The document in bytes with a header."""
        read_header(data)
        path, at = read_message_indexes(data)
        schema = self._at(path)
        try:
            return json_format.MessageToDict(
                schema.decode(data[at:]),
                always_print_fields_with_no_presence=True,
                descriptor_pool=schema.pool,
            )
        except (json_format.Error, ValueError, TypeError) as error:
            raise DecodeError(f"the message {schema.message} has no JSON form: {error}") from error
        except RecursionError:
            raise DecodeError("the value is nested too deeply") from None

    def _at(self, path: tuple[int, ...]) -> ProtobufSchema:
        """There are as many as the file has messages, so all are kept."""
        if path == self.written.index_path:
            return self.written
        if path not in self.by_path:
            self.by_path[path] = ProtobufSchema.at(self.written.descriptor_set, path)
        return self.by_path[path]
