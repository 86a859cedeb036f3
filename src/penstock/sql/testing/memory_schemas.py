"""A schema registry for tests: schemas in memory, numbered as they come."""

from dataclasses import dataclass, field, replace

from penstock.schemas.errors import SchemaError, UnknownSchema
from penstock.schemas.lookup import StoredSchema


@dataclass(slots=True)
class MemorySchemas:
    """Schemas by id and by subject."""

    _schemas: list[StoredSchema] = field(default_factory=list)
    _subjects: dict[str, int] = field(default_factory=dict)

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of this id."""
        if not 0 < schema_id <= len(self._schemas):
            raise UnknownSchema(schema_id, "the test")
        return self._schemas[schema_id - 1]

    def latest(self, subject: str) -> StoredSchema:
        """The latest schema of a subject."""
        if subject not in self._subjects:
            raise SchemaError(f"the subject {subject} has no schema")
        return self.by_id(self._subjects[subject])

    def register(self, subject: str, schema: StoredSchema) -> int:
        """The id of the schema; the same schema has one id."""
        known = next((s for s in self._schemas if replace(s, schema_id=0) == schema), None)
        if known is None:
            known = replace(schema, schema_id=len(self._schemas) + 1)
            self._schemas.append(known)
        self._subjects[subject] = known.schema_id
        return known.schema_id
