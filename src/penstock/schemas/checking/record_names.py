"""The names that a schema gives its records, after which a subject may be named."""

import json
from collections.abc import Iterator

from penstock.schemas import avro
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.protobuf import Descriptor, load


def record_names(stored: StoredSchema) -> frozenset[str]:
    """The full names of the records a schema describes; a Protobuf file may have several."""
    if stored.kind is SchemaKind.PROTOBUF:
        pool, files = load(stored.descriptor_set)
        messages = pool.FindFileByName(files[-1]).message_types_by_name.values()
        return frozenset(name for message in messages for name in _all_names(message))
    if stored.kind is SchemaKind.JSON:
        document = json.loads(stored.text)
        title = document.get("title") if isinstance(document, dict) else None
        return frozenset({title} if isinstance(title, str) else ())
    schema = avro.parse_stored(stored)
    return frozenset({schema["name"]} if isinstance(schema, dict) and "name" in schema else ())


def _all_names(message: Descriptor) -> Iterator[str]:
    yield message.full_name
    for inner in message.nested_types:
        yield from _all_names(inner)
