"""The name of a schema's outermost type, after which some strategies name the subject.

Only the opening of the schema is looked at; whether the rest makes sense is the registry's word.
"""

import json
import re

from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.protobuf import ProtobufSchema

_COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', re.DOTALL)
_PACKAGE = re.compile(r"\bpackage\s+([\w.]+)\s*;")
_MESSAGE = re.compile(r"\bmessage\s+(\w+)\s*\{")


def name_in_text(kind: SchemaKind, text: str) -> str | None:
    """The full name of the outermost type; None: it has none."""
    if kind is SchemaKind.PROTOBUF:
        return _first_message(_COMMENT_OR_TEXT.sub(" ", text))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    return _title(document) if kind is SchemaKind.JSON else _full_name(document)


def name_of(stored: StoredSchema) -> str | None:
    """The same of a schema that the registry has."""
    if stored.kind is SchemaKind.PROTOBUF:
        return ProtobufSchema.at(stored.descriptor_set, (0,)).message
    return name_in_text(stored.kind, stored.text)


def _first_message(text: str) -> str | None:
    message, package = _MESSAGE.search(text), _PACKAGE.search(text)
    if message is None:
        return None
    return f"{package[1]}.{message[1]}" if package is not None else message[1]


def _title(document: dict[str, object]) -> str | None:
    title = document.get("title")
    return title if isinstance(title, str) else None


def _full_name(document: dict[str, object]) -> str | None:
    name, space = document.get("name"), document.get("namespace")
    if not isinstance(name, str):
        return None
    return f"{space}.{name}" if isinstance(space, str) and space and "." not in name else name
