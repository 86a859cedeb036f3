"""The formats and the languages of their schemas."""

from penstock.rest.payloads.formats import EmbeddedFormat, format_of
from penstock.schemas.lookup import SchemaKind


def test_each_language_has_its_format() -> None:
    assert {format_of(kind).kind for kind in SchemaKind} == set(SchemaKind)
    plain = {one for one in EmbeddedFormat if one.kind is None}
    assert plain == {EmbeddedFormat.BINARY, EmbeddedFormat.JSON, EmbeddedFormat.STRING}
