"""Streams and tables: their columns, and how these lie in a topic."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from typing import Literal as OneOf

from penstock.sql.language.names import quoted
from penstock.sql.language.statements import Kind
from penstock.sql.types.kinds import DataType

ROWTIME: Final = "ROWTIME"
ROWPARTITION: Final = "ROWPARTITION"
ROWOFFSET: Final = "ROWOFFSET"
WINDOWSTART: Final = "WINDOWSTART"
WINDOWEND: Final = "WINDOWEND"
WINDOW_BOUNDS: Final = (WINDOWSTART, WINDOWEND)
PSEUDO_COLUMNS: Final = (ROWTIME, ROWPARTITION, ROWOFFSET)
SYSTEM_COLUMNS: Final = frozenset({*PSEUDO_COLUMNS, *WINDOW_BOUNDS})

Role = OneOf["KEY", "VALUE", "HEADERS", "HEADER"]


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column, and whether it lies in the key, in the value or in the headers of a record."""

    name: str
    type: DataType
    role: Role = "VALUE"
    header: str | None = None  # The key of the one header, for the role HEADER.

    def __str__(self) -> str:
        role = {"KEY": " KEY", "HEADERS": " HEADERS", "HEADER": f" HEADER('{self.header}')"}
        return f"{quoted(self.name)} {self.type}{role.get(self.role, '')}"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a stream or table; those of the key come first."""

    all: tuple[RelationColumn, ...]

    @classmethod
    def of(cls, columns: Iterable[RelationColumn]) -> "Columns":
        """The columns with those of the key in front."""
        given = tuple(columns)
        keys = tuple(column for column in given if column.role == "KEY")
        return cls(keys + tuple(column for column in given if column.role != "KEY"))

    @property
    def keys(self) -> tuple[RelationColumn, ...]:
        """Those of the key."""
        return tuple(column for column in self.all if column.role == "KEY")

    @property
    def values(self) -> tuple[RelationColumn, ...]:
        """Those of the value."""
        return tuple(column for column in self.all if column.role == "VALUE")

    @property
    def headers(self) -> tuple[RelationColumn, ...]:
        """Those that are made of headers."""
        return tuple(column for column in self.all if column.role in ("HEADERS", "HEADER"))

    def find(self, name: str) -> RelationColumn | None:
        """The column of that name."""
        return next((column for column in self.all if column.name == name), None)

    def __str__(self) -> str:
        return ", ".join(str(column) for column in self.all)


@dataclass(frozen=True, slots=True)
class DataFormat:
    """The format of a key or a value, with what its properties say."""

    name: str
    delimiter: str = ","
    is_wrapped: bool = True  # Of one column: a record with one field, and not the bare value.
    schema_id: int | None = None
    schema_name: str | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class KeyWindow:
    """The windows that a key carries; the size is None for sessions."""

    kind: OneOf["TUMBLING", "HOPPING", "SESSION"]
    size_ms: int | None = None

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """The column that a record's time is read from; texts by a format."""

    name: str
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A stream or a table."""

    kind: Kind
    name: str
    columns: Columns
    topic: str
    key_format: DataFormat
    value_format: DataFormat
    key_window: KeyWindow | None = None
    time: TimeColumn | None = None
    partitions: int | None = None  # None: as many as the topic has.
    replicas: int | None = None
    retention_ms: int | None = None
    is_read_only: bool = False  # CREATE SOURCE
    statement: str = ""
    query: str | None = None  # The id of the query that CREATE ... AS made.

    @property
    def is_source_table(self) -> bool:
        """A table that can be asked though no query keeps it."""
        return self.is_read_only and self.kind == "TABLE"
