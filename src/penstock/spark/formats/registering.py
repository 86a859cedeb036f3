"""What a format registers before it writes: on the driver, once for a query or a batch frame.

A registration that is there already changes nothing, so a query that starts again gets the same id.
"""

from penstock.schemas.errors import SchemaError
from penstock.schemas.registry_client import NewSchema, RegistryClient
from penstock.schemas.subject_names import topic_name


def subject_of(given: str | None, topic: str | None, *, is_key: bool) -> str:
    """The subject to register under: what was said, or the topic's own."""
    if given is not None:
        return given
    if topic is None:
        raise SchemaError(
            "what is written is registered under its topic, which is not known here: give "
            "encode(..., topic=...), encode(..., schema_topic=...), or subject=... to the format"
        )
    return topic_name(topic, is_key)


def registered_id(
    registry: RegistryClient, schema: NewSchema, subject: str, *, register: bool
) -> int:
    """The id to write; without `register` the schema must be there."""
    if register:
        return registry.register(subject, schema)
    return registry.find(subject, schema).schema_id
