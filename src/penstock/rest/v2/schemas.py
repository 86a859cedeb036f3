"""Schemas for requests of version 2: known ones at once, others asked for in a thread."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.rest.errors import InvalidSchema, RestError
from penstock.rest.payloads.schema_choice import SchemaChoice
from penstock.schemas.errors import DecodeError, SchemaError, UnknownSchema
from penstock.schemas.registry_http import RegistryRefused, RegistryUnreachable
from penstock.schemas.wire_header import read_header

if TYPE_CHECKING:  # What knows the languages of schemas is loaded where there is a registry.
    from penstock.rest.payloads.schema_finder import FoundSchema, SchemaFinder


_INVALID = 422  # The registry's status for a schema that makes no sense.


class SchemaLookupFailed(RestError):
    """The registry has no such schema, refused it, or did not answer."""

    status, error_code = 408, 40801


class Schemas:
    """The schemas of one proxy; None for a finder: it was told of no registry."""

    def __init__(self, finder: "SchemaFinder | None") -> None:
        self._finder = finder

    async def find(self, choice: SchemaChoice) -> "FoundSchema":
        """The schema that a request means, for writing."""
        finder = self._known_finder()
        try:
            known = finder.known(choice)
            return known if known is not None else await asyncio.to_thread(finder.find, choice)
        except (UnknownSchema, RegistryUnreachable) as error:
            raise SchemaLookupFailed(f"Schema registration or lookup failed: {error}") from None
        except RegistryRefused as error:
            if error.status == _INVALID:
                raise InvalidSchema(f"Invalid schema: {error.message}") from None
            raise SchemaLookupFailed(f"Schema registration or lookup failed: {error}") from None
        except SchemaError as error:
            raise InvalidSchema(f"Invalid schema: {error}") from None

    def decoder(self) -> Callable[[bytes | None], Any]:
        """What reads keys and values by the schema that each names; it may wait."""
        finder = self._known_finder()

        def decode(data: bytes | None) -> Any:
            if data is None:
                return None
            try:
                return finder.codec(read_header(data)).decode(data)
            except SchemaError as error:
                raise DecodeError(str(error)) from None

        return decode

    def _known_finder(self) -> "SchemaFinder":
        if self._finder is None:
            raise InvalidSchema(
                "Invalid schema: this proxy has no schema registry; set schema.registry.url"
            )
        return self._finder
