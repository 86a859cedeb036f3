"""What a format is to SQL: the values of some columns, in order, to bytes and back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.schemas.lookup import SchemaLookup, StoredSchema
from penstock.sql.catalog.relations import RelationColumn

Values = Sequence[Any]


class FormatMisfit(ValueError):
    """Bytes that are not of the format and columns, or values that the format cannot hold."""


@dataclass(frozen=True, slots=True)
class FormatCodec:
    """Both directions. What is written of NULL alone is None: no bytes."""

    write: Callable[[Values], bytes | None]
    read: Callable[[bytes], list[Any]]  # FormatMisfit where the bytes are something else.


class SchemaPort(SchemaLookup, Protocol):
    """A schema registry, as SQL needs it."""

    def latest(self, subject: str) -> StoredSchema:
        """The latest schema of a subject; raises SchemaError if there is none."""

    def register(self, subject: str, schema: StoredSchema) -> int:
        """The id of a schema under a subject, whatever id it has here; registered if need be."""


MakeCodec = Callable[[Sequence[RelationColumn]], FormatCodec]
