"""The embedded formats of the proxy, under the names that requests and media types use."""

from enum import StrEnum

from penstock.schemas.lookup import SchemaKind


class EmbeddedFormat(StrEnum):
    """How keys and values stand in a request or an answer."""

    BINARY = "BINARY"
    JSON = "JSON"
    STRING = "STRING"
    AVRO = "AVRO"
    JSONSCHEMA = "JSONSCHEMA"
    PROTOBUF = "PROTOBUF"

    @property
    def kind(self) -> SchemaKind | None:
        """The language of its schemas; None: it has none."""
        return _KINDS.get(self)


_KINDS = {
    EmbeddedFormat.AVRO: SchemaKind.AVRO,
    EmbeddedFormat.JSONSCHEMA: SchemaKind.JSON,
    EmbeddedFormat.PROTOBUF: SchemaKind.PROTOBUF,
}


def format_of(kind: SchemaKind) -> EmbeddedFormat:
    """The format whose schemas are of this language."""
    return next(one for one, its in _KINDS.items() if its is kind)
