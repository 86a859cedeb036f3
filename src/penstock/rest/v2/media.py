"""Media types of version 2: each embedded format has one, and one is for all that has no records.

Pure. `application/vnd.kafka.avro.v2+json` is a body with Avro in it. Types without a format are
taken where no format is needed, and `application/json` with them.
"""

from penstock.http.negotiation import is_taken, media_name, negotiated
from penstock.rest.payloads.formats import EmbeddedFormat

PLAIN = ("application/vnd.kafka.v2+json", "application/vnd.kafka+json", "application/json")
_BY_FORMAT = {
    EmbeddedFormat.BINARY: "application/vnd.kafka.binary.v2+json",
    EmbeddedFormat.JSON: "application/vnd.kafka.json.v2+json",
    EmbeddedFormat.AVRO: "application/vnd.kafka.avro.v2+json",
    EmbeddedFormat.JSONSCHEMA: "application/vnd.kafka.jsonschema.v2+json",
    EmbeddedFormat.PROTOBUF: "application/vnd.kafka.protobuf.v2+json",
}
_BY_MEDIA = {media: format_ for format_, media in _BY_FORMAT.items()}
# With a format or without: clients send one header with everything.
OFFERED = (*PLAIN, *_BY_MEDIA)


def sent_format(content_type: str | None) -> EmbeddedFormat | None:
    """The format of the records in a body; None: it is no body with records."""
    if content_type is None:
        return None
    name = media_name(content_type)
    return EmbeddedFormat.BINARY if name == PLAIN[0] else _BY_MEDIA.get(name)


def is_plain(content_type: str | None) -> bool:
    """Whether a body without records may be of this type."""
    return is_taken(content_type, OFFERED)


def answer_media(accept: str | None, kept: EmbeddedFormat) -> str | None:
    """The type for records that a consumer of a format has; None: the client wants another.

    All formats with a schema are one here: which of them a record has, its schema says.
    """
    own = _BY_FORMAT[kept]
    fitting = [own, *PLAIN]
    if kept.kind is not None:
        fitting += [media for media, other in _BY_MEDIA.items() if other.kind is not None]
    media = negotiated(accept, fitting)
    return own if media == "application/json" else media
