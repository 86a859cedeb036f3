"""Values of dead letters as documents of their schema, where a registry has it."""

from dataclasses import dataclass
from typing import Any

from penstock.errors import PenstockError
from penstock.schemas.documents.codec import document_codec
from penstock.schemas.registry_client import RegistryClient
from penstock.schemas.wire_header import read_header


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterDocuments:
    """Reads and writes values under the schemas of a registry."""

    registry: RegistryClient

    @classmethod
    def of(cls, url: str) -> "LetterDocuments":
        """From the registry's address."""
        return cls(registry=RegistryClient(url))

    def told(self, data: bytes | None) -> dict[str, Any]:
        """The document in a value, or why there is none: a letter is often not what it says."""
        if data is None:
            return {}
        try:
            return {"document": document_codec(self.registry.by_id(read_header(data))).decode(data)}
        except PenstockError as error:
            return {"no document": str(error)}

    def encode(self, document: Any, schema_id: int | None, before: bytes | None) -> bytes:
        """A value under a schema; None: the one that the value before it names."""
        chosen = schema_id if schema_id is not None else read_header(before or b"")
        return document_codec(self.registry.by_id(chosen)).encode(document)
