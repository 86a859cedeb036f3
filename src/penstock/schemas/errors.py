"""What goes wrong between bytes, values and schemas.

    PenstockError
    └── FormatError
        ├── SchemaError          a schema that cannot be parsed, found or mapped to columns
        │   └── UnknownSchema    nothing is known under this id
        ├── DecodeError          bytes that are not of the format or the schema
        └── EncodeError          a value that the schema does not allow

A decode error says why; which record it was is added by whoever knows it.
"""

from penstock.errors import PenstockError


class FormatError(PenstockError):
    """Bytes, value and schema do not go together."""


class SchemaError(FormatError):
    """A schema that cannot be used."""


class UnknownSchema(SchemaError):
    """No schema has this id."""

    def __init__(self, schema_id: int, where: str) -> None:
        super().__init__(f"no schema with id {schema_id} is known to {where}")
        self.schema_id = schema_id
        self.where = where

    def __reduce__(self) -> tuple[type["UnknownSchema"], tuple[int, str]]:
        return type(self), (self.schema_id, self.where)  # Errors travel between processes.


class DecodeError(FormatError):
    """Bytes that cannot be read as what they should be."""


class EncodeError(FormatError):
    """A value that cannot be written as what it should be."""
