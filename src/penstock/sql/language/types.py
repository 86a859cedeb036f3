"""Types as they are written: `ARRAY<STRUCT<`a` INTEGER>>`. What they mean is decided elsewhere."""

from dataclasses import dataclass
from typing import TypeAlias

from penstock.sql.language.names import quoted


@dataclass(frozen=True, slots=True)
class NamedType:
    """A built-in type or one of CREATE TYPE, in upper case; with its parameters, if it has any."""

    name: str
    parameters: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(str(p) for p in self.parameters)})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Many of one type."""

    item: "SqlType"

    def __str__(self) -> str:
        return f"ARRAY<{self.item}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """Values by keys."""

    key: "SqlType"
    value: "SqlType"

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class StructType:
    """Named fields, in order."""

    fields: tuple[tuple[str, "SqlType"], ...]

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(f'{quoted(name)} {kind}' for name, kind in self.fields)}>"


SqlType: TypeAlias = NamedType | ArrayType | MapType | StructType
