"""A schema registry as SQL's formats need it; it travels to Spark's workers."""

import base64
from collections.abc import Mapping

from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.protobuf import files_of
from penstock.schemas.registry_client import NewSchema, RegistryClient, RegistryRefused

_LATEST_S = 1.0


class RegistrySchemas:
    """Schemas by id and subject, and a place for new ones."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    @classmethod
    def of(cls, urls: str, settings: Mapping[str, str]) -> "RegistrySchemas":
        """From the settings below `ksql.schema.registry.`."""
        return cls(
            RegistryClient(
                urls,
                basic_auth=settings.get("basic.auth.user.info"),
                bearer_token=settings.get("bearer.auth.token"),
                ca_location=settings.get("ssl.ca.location"),
                latest_ttl_s=_LATEST_S,
            )
        )

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of this id."""
        return self._client.by_id(schema_id)

    def latest(self, subject: str) -> StoredSchema:
        """The latest schema of a subject; SchemaError if there is none."""
        return self._client.latest(subject)

    def register(self, subject: str, schema: StoredSchema) -> int:
        """The id of a schema under a subject; registered if need be."""
        text = schema.text
        if schema.kind is SchemaKind.PROTOBUF:
            *_, own = files_of(schema.descriptor_set)
            text = base64.b64encode(own.SerializeToString()).decode()
        new = NewSchema(kind=schema.kind, text=text)
        try:
            return self._client.register(subject, new)
        except RegistryRefused as error:
            raise SchemaError(f"the registry refused the schema of {subject}: {error}") from error
