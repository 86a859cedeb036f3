"""The types of columns: what a serde or a declaration says that a key, a value or a field is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

TypeName = Literal["boolean", "long", "double", "string", "bytes", "list", "struct"]
Declared = str | Mapping[str, Any] | Sequence[Any]
_PLAIN = ("boolean", "long", "double", "string")


class ColumnTypeError(TypeError):
    """A declaration or an expression that has no type; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A plain type, a list of one type, or a struct of named fields."""

    name: TypeName
    fields: tuple[tuple[str, "ColumnType"], ...] = ()
    element: "ColumnType | None" = None

    def field(self, name: str) -> "ColumnType | None":
        """The type of a field; None: there is no such field."""
        return dict(self.fields).get(name)

    def __str__(self) -> str:
        if self.element is not None:
            return f"list of {self.element}"
        if self.name != "struct":
            return self.name
        return "{" + ", ".join(f"{name}: {one}" for name, one in self.fields) + "}"


BOOLEAN = ColumnType("boolean")
LONG = ColumnType("long")
DOUBLE = ColumnType("double")
STRING = ColumnType("string")
BYTES = ColumnType("bytes")


def list_of(element: ColumnType) -> ColumnType:
    """A list of one type."""
    return ColumnType("list", element=element)


def struct_of(fields: Mapping[str, ColumnType]) -> ColumnType:
    """A struct; names that differ in case alone are refused, for Spark takes them for one."""
    if len({name.lower() for name in fields}) < len(fields):
        raise ColumnTypeError(f"fields that differ in case alone: {', '.join(fields)}")
    return ColumnType("struct", tuple(fields.items()))


def declared_type(declared: Declared) -> ColumnType:
    """The type of a declaration: `"long"`, `{"city": "string"}` or `["double"]`."""
    if isinstance(declared, str) and declared in _PLAIN:
        return ColumnType(declared)  # type: ignore[arg-type]
    if isinstance(declared, Mapping):
        return struct_of({str(name): declared_type(one) for name, one in declared.items()})
    if isinstance(declared, list | tuple) and len(declared) == 1:
        return list_of(declared_type(declared[0]))
    raise ColumnTypeError(
        f"{declared!r} is no type of a field: it is one of {', '.join(_PLAIN)}, a dict of fields, "
        "or a list with the one type of its elements"
    )
