"""Schemas in the form that a client asks for with `format`.

`serialized` is a Protobuf schema's compiled file in base64, which clients without a compiler of
their own take. A form that a language does not have leaves the schema as it is.
"""

from typing import Any

from penstock.http.handlers import Request
from penstock.registry.errors import invalid_schema
from penstock.registry.registering import resolve_references
from penstock.registry.schema import SchemaContent
from penstock.registry.service.store import SchemaStore
from penstock.registry.state import RegistryState
from penstock.schemas.definitions.protobuf import ProtobufDefinition
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind

SERIALIZED = "serialized"


async def in_form(
    store: SchemaStore,
    request: Request,
    document: dict[str, Any],
    *,
    subject: str,  # Says in which context the references are.
    content: SchemaContent,
) -> dict[str, Any]:
    """The document of a schema, its text in the form that the request asks for."""
    form = request.query_params.get("format")
    if form != SERIALIZED or content.kind is not SchemaKind.PROTOBUF:
        return document
    text = await store.ask(lambda state: _serialized(state, subject, content))
    return document | {"schema": text}


def _serialized(state: RegistryState, subject: str, content: SchemaContent) -> str:
    """A Protobuf schema, compiled."""
    references = resolve_references(state, subject, content.references)
    try:
        return ProtobufDefinition.parse(content.text, references).serialized()
    except SchemaError as error:
        raise invalid_schema(f"The schema cannot be compiled: {error}") from error
