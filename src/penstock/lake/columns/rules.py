"""What a table's format and layout allow: which names, and which wider types.

Names are compared without regard to case, as Spark and most engines do.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.lake.errors import IncompatibleSchema, UnfitName
from penstock.lake.spec import TableSpec

Path = tuple[str, ...]  # A column's name, then those of the fields inside it.

RECORD_COLUMNS = ("key", "topic", "partition", "offset", "timestamp", "headers")
UNDECODED = "value_undecoded"  # The bytes of a value that is not what its format says.
KEY_UNDECODED = "key_undecoded"
ELEMENT = "element"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedColumns:
    """The columns of rows as far as they are agreed."""

    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    exact: frozenset[Path] = frozenset()  # Where whole numbers beyond 2^53 were seen.

    def by_name(self) -> dict[str, pa.Field]:
        """By the names in small letters."""
        return {one.name.lower(): one for one in self.schema}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a table's format and layout allow."""

    lake_format: str
    table: pa.Schema  # What the table itself has; the other columns have no rows yet.
    folders: frozenset[str] = frozenset()  # Columns whose values name folders.
    reserved: frozenset[str] = frozenset()  # In small letters: names that rows have of their own.

    def column(self, name: str) -> str:
        """The column of a field of the value."""
        small = name.lower()
        if small in self.reserved:
            return f"value_{name}"
        return next((one for one in self.folders if one.lower() == small), name)

    def may_widen(self, path: Path, old: pa.DataType, new: pa.DataType) -> bool:
        """Whether a column of the old type can become one of the new, which holds all its values.

        Delta and Parquet tables are rewritten for it. Iceberg knows by itself how to read old files
        in a wider type, but only for whole numbers, floats, and decimals of the same scale.
        """
        if len(path) == 1 and path[0] in self.folders and not _names_folder(new):
            return False
        if self.lake_format != "iceberg" or not _is_in(self.table, path):
            return True
        if pa.types.is_decimal(old) and pa.types.is_decimal(new):
            return bool(old.scale == new.scale)
        both = (pa.types.is_integer, pa.types.is_floating)
        return any(is_kind(old) and is_kind(new) for is_kind in both)


def rules_of(spec: TableSpec, table: pa.Schema) -> Rules:
    """The rules of a table that lands records."""
    dates = {column.name.lower() for column in spec.partition_by if column.is_date}
    return Rules(
        lake_format=spec.format,
        table=table,
        folders=frozenset(c.source for c in spec.partition_by if not c.is_date),
        reserved=frozenset({*RECORD_COLUMNS, UNDECODED, KEY_UNDECODED, *dates}),
    )


def check_folder(column: str, kind: pa.DataType) -> None:
    if not _names_folder(kind):
        raise IncompatibleSchema(
            column, "a column of folders: whole numbers, strings or dates", str(kind)
        )


def _names_folder(kind: pa.DataType) -> bool:
    is_kind = (pa.types.is_integer, pa.types.is_string, pa.types.is_date)
    return any(is_one(kind) for is_one in is_kind)


def check_name(name: str) -> None:
    wrong = wrong_name(name)
    if wrong is not None:
        raise wrong


def wrong_name(name: str) -> UnfitName | None:
    """Names that no engine could ask for, or that are cut short on their way into a file."""
    if not name:
        return UnfitName(name, "a column needs a name")
    if "\0" in name or not is_text(name):
        return UnfitName(json.dumps(name), "it is not text that a file can hold")
    return None


def is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def ambiguous_path(schema: pa.Schema) -> str | None:
    """A path that two columns share, one by dots in its name; Iceberg finds columns by paths."""
    if not any("." in one.name for one in schema):
        return None
    seen: set[str] = set()
    for path in (path for one in schema for path in _dotted(one, "")):
        if path in seen:
            return path
        seen.add(path)
    return None


def _dotted(one: pa.Field, prefix: str) -> Iterator[str]:
    path = f"{prefix}{one.name}"
    yield path
    if pa.types.is_struct(one.type):
        for inner in one.type:
            yield from _dotted(inner, f"{path}.")
    elif pa.types.is_list(one.type):
        yield from _dotted(pa.field(ELEMENT, one.type.value_type), f"{path}.")


def type_at(schema: pa.Schema, path: Path) -> pa.DataType | None:
    at = schema.get_field_index(path[0])
    kind = None if at < 0 else schema.field(at).type
    for name in path[1:]:
        if kind is None:
            return None
        kind = _inside(kind, name)
    return kind


def _inside(kind: pa.DataType, name: str) -> pa.DataType | None:
    if pa.types.is_struct(kind):
        at = kind.get_field_index(name)
        return None if at < 0 else kind.field(at).type
    if pa.types.is_list(kind):
        return kind.value_type
    return kind.item_type if pa.types.is_map(kind) else None


def _is_in(schema: pa.Schema, path: Path) -> bool:
    return type_at(schema, path) is not None
