"""Schemas in the form that a client asks for with `format`.

`serialized` is a Protobuf schema's compiled file in base64, which clients without a compiler of
their own take; `resolved` is an Avro schema with what it refers to written out in it. A form that a
language does not have leaves the schema as it is.
"""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.http.handlers import Request
from penstock.registry.errors import invalid_schema
from penstock.registry.registering import resolve_references
from penstock.registry.schema import SchemaContent
from penstock.registry.service.store import SchemaStore
from penstock.registry.state import RegistryState
from penstock.schemas.definitions.avro import AvroDefinition
from penstock.schemas.definitions.definition import NamedText
from penstock.schemas.definitions.protobuf import ProtobufDefinition
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind


async def in_form(
    store: SchemaStore,
    request: Request,
    document: dict[str, Any],
    *,
    subject: str,  # Says in which context the references are.
    content: SchemaContent,
) -> dict[str, Any]:
    """The document of a schema, its text in the form that the request asks for."""
    make = _FORMS.get((request.query_params.get("format", ""), content.kind))
    if make is None:
        return document
    text = await store.ask(lambda state: _made(state, subject, content, make))
    return document | {"schema": text}


def _serialized(text: str, references: Sequence[NamedText]) -> str:
    return ProtobufDefinition.parse(text, references).serialized()


def _resolved(text: str, references: Sequence[NamedText]) -> str:
    return AvroDefinition.parse(text, references).inlined()


_FORMS = {
    ("serialized", SchemaKind.PROTOBUF): _serialized,
    ("resolved", SchemaKind.AVRO): _resolved,
}


def _made(
    state: RegistryState,
    subject: str,
    content: SchemaContent,
    make: Callable[[str, Sequence[NamedText]], str],
) -> str:
    references = resolve_references(state, subject, content.references)
    try:
        return make(content.text, references)
    except SchemaError as error:
        raise invalid_schema(f"The schema cannot be compiled: {error}") from error
