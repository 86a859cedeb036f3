"""Which schema a value is written under: its own, registered or found, or one of the registry."""

from collections.abc import Container
from dataclasses import dataclass

from penstock.errors import ConfigError
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import StoredSchema
from penstock.schemas.registry_client import NewSchema
from penstock.schemas.serializers.settings import SerializerSettings

WRITING = frozenset({"WRITE", "WRITEREAD"})
READING = frozenset({"READ", "WRITEREAD"})
MIGRATING = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSchema:
    """What goes into the header, and what the bytes follow."""

    schema_id: int
    stored: StoredSchema | None  # None: the serializer's own schema.


def choose_schema(
    settings: SerializerSettings, topic: str, own: NewSchema | None, record: str | None
) -> ChosenSchema:
    """For values of a topic; `own` is the serializer's schema and `record` its name."""
    if settings.schema_id is not None:
        return _by_registry(settings.registry.by_id(settings.schema_id))
    subject = settings.subject(topic, record)
    if settings.wants_latest:
        return _by_registry(settings.registry.latest(subject, settings.latest_metadata))
    if own is None:
        raise ConfigError(
            "the serializer has no schema: give it one, or set use.latest.version=true or "
            "use.schema.id to write under one of the registry"
        )
    if settings.auto_register:
        schema_id = settings.registry.register(subject, own, normalize=settings.normalize)
    else:
        schema_id = settings.registry.find(subject, own, normalize=settings.normalize).schema_id
    return ChosenSchema(schema_id=schema_id, stored=None)


def refuse_rules(stored: StoredSchema, modes: Container[str]) -> StoredSchema:
    """A schema with rules that must be executed is not written or read past them."""
    for rule in stored.rules:
        if rule.mode in modes:
            raise SchemaError(
                f"schema {stored.schema_id} has the rule {rule.name} ({rule.kind}, {rule.mode}), "
                "which is not executed here"
            )
    return stored


def _by_registry(stored: StoredSchema) -> ChosenSchema:
    return ChosenSchema(schema_id=stored.schema_id, stored=refuse_rules(stored, WRITING))
