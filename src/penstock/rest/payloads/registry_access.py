"""The registry as the proxy asks it: an id, a version, the latest, or a place for a text."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from penstock.rest.payloads.schema_finder import RegisteredAt
from penstock.schemas.lookup import StoredSchema
from penstock.schemas.registry_client import NewSchema, RegistryClient
from penstock.schemas.registry_http import RegistryHttp, RegistryRefused

_NOT_FOUND = 404


class RegistryAccess:
    """A `SchemaRegistry` over HTTP; its calls wait."""

    def __init__(self, client: RegistryClient, http: RegistryHttp) -> None:
        self._client = client
        self._http = http

    @classmethod
    def of(cls, urls: str, settings: Mapping[str, str]) -> "RegistryAccess":
        """From the proxy's settings below `schema.registry.`."""
        given: dict[str, Any] = {
            "basic_auth": settings.get("basic.auth.user.info"),
            "bearer_token": settings.get("bearer.auth.token"),
            "ca_location": settings.get("ssl.ca.location"),
        }
        return cls(RegistryClient(urls, **given), RegistryHttp.of(urls, **given))

    def by_id(self, schema_id: int) -> StoredSchema:
        return self._client.by_id(schema_id)

    def at_version(self, subject: str, version: int | None) -> RegisteredAt:
        which = "latest" if version is None else version
        found = self._http.get(f"/subjects/{quote(subject, safe='')}/versions/{which}")
        return RegisteredAt(int(found["id"]), subject, int(found["version"]))

    def register(self, subject: str, schema: NewSchema) -> RegisteredAt:
        """A schema that is there already is only looked up: that also works where nobody writes."""
        try:
            found = self._client.find(subject, schema)
        except RegistryRefused as refused:
            if refused.status != _NOT_FOUND:
                raise
            self._client.register(subject, schema)
            found = self._client.find(subject, schema)
        return RegisteredAt(found.schema_id, subject, found.version)
