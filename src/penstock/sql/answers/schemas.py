"""Types and columns as ksqlDB's documents have them."""

from collections.abc import Iterable
from typing import Any

from penstock.sql.catalog.relations import Relation, RelationColumn
from penstock.sql.types.kinds import ArrayOf, DataType, DecimalOf, MapOf, StructOf, kind_name

Document = dict[str, Any]


def type_document(kind: DataType | None) -> Document:
    """A type with its parts."""
    made: Document = {"type": kind_name(kind), "fields": None, "memberSchema": None}
    match kind:
        case ArrayOf():
            made["memberSchema"] = type_document(kind.item)
        case MapOf():
            made["memberSchema"] = type_document(kind.value)
        case StructOf():
            made["fields"] = [
                {"name": name, "schema": type_document(one)} for name, one in kind.fields
            ]
        case DecimalOf():
            made["parameters"] = {"precision": kind.precision, "scale": kind.scale}
    return made


def field_documents(relation: Relation) -> list[Document]:
    """The columns of a stream or table."""
    return [_field(column) for column in relation.columns.all]


def column_documents(columns: Iterable[RelationColumn]) -> list[Document]:
    """The columns of a result."""
    return [_field(column) for column in columns]


def _field(column: RelationColumn) -> Document:
    made: Document = {"name": column.name, "schema": type_document(column.type)}
    match column.role:
        case "KEY":
            made["type"] = "KEY"
        case "HEADER" | "HEADERS":
            made["type"] = "HEADER"
            if column.header is not None:
                made["headerKey"] = column.header
    return made


def schema_text(columns: Iterable[RelationColumn]) -> str:
    """The columns of a result in one line; every name in quotes, as ksqlDB's clients expect."""
    return ", ".join(
        f"`{column.name}` {column.type}" + (" KEY" if column.role == "KEY" else "")
        for column in columns
    )
