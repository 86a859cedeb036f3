"""Values in the schema of their column: one that may be null is another schema than one that may
not, also of the structs that stand in it.
"""

from collections.abc import Callable
from typing import Any

from penstock.connect.values.schema import Schema, SchemaType
from penstock.connect.values.struct import StructValue


def reader_for(schema: Schema, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`read`, with this very schema in the structs that it makes."""
    if schema.type is not SchemaType.STRUCT:
        return read

    def read_struct(sent: Any) -> StructValue | None:
        made = read(sent)
        return None if made is None else StructValue(schema, made.values)

    return read_struct
