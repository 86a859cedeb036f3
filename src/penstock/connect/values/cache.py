"""What was derived from a schema, kept while the schema lives on in records.

Schemas are compared by identity: a connector or a converter that keeps its schemas hits always, and
one that makes a new schema for each record only misses.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.connect.values.schema import Schema

T = TypeVar("T")
ENTRIES_MAX = 1_000  # A capture of a whole database has a few schemas for each table.


class SchemaCache(Generic[T]):
    """Makes something of a schema once; it forgets the oldest of more than ENTRIES_MAX."""

    __slots__ = ("_kept", "_make")

    def __init__(self, make: Callable[[Schema], T]) -> None:
        self._make = make
        # The schema is kept beside what was made, so its id cannot become another's.
        self._kept: dict[int, tuple[Schema, T]] = {}

    def get(self, schema: Schema) -> T:
        """What was made of this schema, or is made now."""
        found = self._kept.get(id(schema))
        if found is not None:
            return found[1]
        made = self._make(schema)
        if len(self._kept) >= ENTRIES_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[id(schema)] = (schema, made)
        return made
