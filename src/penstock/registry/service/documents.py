"""Answers as Confluent's registry writes them."""

from typing import Any

from penstock.registry.registering import SchemaRequest
from penstock.registry.schema import JsonObject, SchemaContent, SchemaVersion


def version_document(one: SchemaVersion) -> dict[str, Any]:
    """A version of a subject, with all that it is made of."""
    told: dict[str, Any] = {
        "subject": one.subject,
        "version": one.version,
        "id": one.schema_id,
        "guid": one.content.guid,
        **one.content.json(),
    }
    return told | ({"deleted": True} if one.deleted else {})


def registered_document(one: SchemaVersion, asked: SchemaRequest) -> dict[str, Any]:
    """The answer to a registration; its id is what clients look for.

    The schema is told only where settings have added to it. Clients take what comes for what they
    sent, and a Protobuf schema that was sent compiled comes back as text.
    """
    told = {"id": one.schema_id, "version": one.version, "guid": one.content.guid}
    kept = one.content
    is_as_sent = (kept.metadata, kept.rule_set) == (asked.metadata, asked.rule_set)
    return told if is_as_sent else {**told, **kept.json()}


def schema_document(content: SchemaContent) -> dict[str, Any]:
    """A schema without the places it has."""
    return content.json() | {"guid": content.guid}


def updated_config(config: JsonObject) -> dict[str, Any]:
    """The answer to a change of settings, where the level has the name that requests give it."""
    told = {"compatibility" if k == "compatibilityLevel" else k: v for k, v in config.items()}
    return {name: value for name, value in told.items() if value is not None}
