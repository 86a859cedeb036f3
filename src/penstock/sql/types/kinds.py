"""ksqlDB's types as frozen values. `str` writes one as ksqlDB does in a schema.

The type of the literal NULL is None: it fits wherever a value is expected.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parameters."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalOf:
    """Exact numbers of so many digits, of which `scale` follow the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """A list of values of one type."""

    item: "DataType | None"

    def __str__(self) -> str:
        return f"ARRAY<{shown(self.item)}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    """Values by keys."""

    key: "DataType | None"
    value: "DataType | None"

    def __str__(self) -> str:
        return f"MAP<{shown(self.key)}, {shown(self.value)}>"


@dataclass(frozen=True, slots=True)
class StructOf:
    """Named fields, in order."""

    fields: tuple[tuple[str, "DataType | None"], ...]

    def field(self, name: str) -> "DataType | None":
        """The type of a field; raises KeyError."""
        return dict(self.fields)[name]

    def __str__(self) -> str:
        if not self.fields:
            return "STRUCT< >"
        return f"STRUCT<{', '.join(f'`{name}` {shown(kind)}' for name, kind in self.fields)}>"


DataType: TypeAlias = Primitive | DecimalOf | ArrayOf | MapOf | StructOf

BOOLEAN: Final = Primitive("BOOLEAN")
INTEGER: Final = Primitive("INTEGER")
BIGINT: Final = Primitive("BIGINT")
DOUBLE: Final = Primitive("DOUBLE")
STRING: Final = Primitive("STRING")
BYTES: Final = Primitive("BYTES")
DATE: Final = Primitive("DATE")
TIME: Final = Primitive("TIME")
TIMESTAMP: Final = Primitive("TIMESTAMP")
# No type of a column: DAYS as the first argument of DATEADD.
INTERVAL_UNIT: Final = Primitive("INTERVALUNIT")

PRIMITIVES: Final = {
    kind.name: kind
    for kind in (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DATE, TIME, TIMESTAMP)
}
WHOLE: Final = frozenset({INTEGER, BIGINT})
TEMPORAL: Final = frozenset({DATE, TIME, TIMESTAMP})
NUMBER_ORDER: Final = ("INTEGER", "BIGINT", "DECIMAL", "DOUBLE")  # Each takes those before it.


def kind_name(kind: DataType | None) -> str:
    """The name without parameters: DECIMAL, ARRAY, INTEGER."""
    match kind:
        case None:
            return "NULL"
        case Primitive():
            return kind.name
        case DecimalOf():
            return "DECIMAL"
        case ArrayOf():
            return "ARRAY"
        case MapOf():
            return "MAP"
    return "STRUCT"


def is_number(kind: DataType | None) -> bool:
    return kind_name(kind) in NUMBER_ORDER


def shown(kind: DataType | None) -> str:
    """The type as errors and schemas show it."""
    return "NULL" if kind is None else str(kind)


def described(kind: DataType | None) -> str:
    """The type as DESCRIBE shows it: a string is VARCHAR(STRING)."""
    match kind:
        case Primitive("STRING"):
            return "VARCHAR(STRING)"
        case ArrayOf():
            return f"ARRAY<{described(kind.item)}>"
        case MapOf():
            return f"MAP<{described(kind.key)}, {described(kind.value)}>"
        case StructOf():
            return f"STRUCT<{', '.join(f'{name} {described(one)}' for name, one in kind.fields)}>"
    return shown(kind)


def parts(kind: DataType | None) -> "Iterator[DataType | None]":
    """A type and all types in it."""
    yield kind
    match kind:
        case ArrayOf():
            yield from parts(kind.item)
        case MapOf():
            yield from parts(kind.key)
            yield from parts(kind.value)
        case StructOf():
            for _, one in kind.fields:
                yield from parts(one)
