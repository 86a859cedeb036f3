"""Expressions as Spark SQL text, which a plan shows as it is and Spark computes without Python."""

from collections.abc import Mapping
from typing import Any

from penstock.streams.columns.operations import (
    ABS_SQL,
    CASTS_SQL,
    NEGATE_SQL,
    SQL,
)
from penstock.streams.columns.resolve import TypedColumn
from penstock.streams.values.column_types import ColumnType

_TYPES = {
    "boolean": "BOOLEAN",
    "long": "BIGINT",
    "double": "DOUBLE",
    "string": "STRING",
    "bytes": "BINARY",
}


def sql_type(kind: ColumnType) -> str:
    """The type in Spark's words."""
    if kind.element is not None:
        return f"ARRAY<{sql_type(kind.element)}>"
    if kind.name == "struct":
        fields = ", ".join(f"{quoted(name)}: {sql_type(one)}" for name, one in kind.fields)
        return f"STRUCT<{fields}>"
    return _TYPES[kind.name]


def quoted(name: str) -> str:
    """A name that may be any."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A text; what Spark's lexer might take for more than itself is written as its number."""
    plain = "".join(
        one if one.isascii() and one.isprintable() and one not in "'\\" else _escaped(one)
        for one in text
    )
    return f"'{plain}'"


def _escaped(one: str) -> str:
    return f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}"


def sql_text(column: TypedColumn, record: Mapping[str, str]) -> str:
    """The text of an expression; `record` has the text of key, value and timestamp."""
    if column.operation == "record":
        return record[column.detail]
    if column.operation == "literal":
        return literal(column.detail, column.type)
    operands = [sql_text(one, record) for one in column.operands]
    return _combined(column, operands)


def literal(value: Any, kind: ColumnType) -> str:
    """A literal of a type."""
    if value is None:
        return f"cast(NULL AS {sql_type(kind)})"
    match kind.name:
        case "boolean":
            return "true" if value else "false"
        case "long":
            return f"{value}L" if value > -(2**63) else f"(-{2**63 - 1}L - 1L)"
        case "double":
            return f"double('{value!r}')"
        case "bytes":
            return f"X'{value.hex()}'"
    return text_literal(value)


def _combined(column: TypedColumn, operands: list[str]) -> str:
    detail, first = column.detail, operands[0]
    match column.operation:
        case "negate":
            return NEGATE_SQL[column.type.name].format(first)
        case "abs":
            return ABS_SQL[column.type.name].format(first)
        case "cast":
            return CASTS_SQL[column.operands[0].type.name, column.type.name].format(first)
        case "field":
            return f"{first}.{quoted(detail)}"
        case "substring":
            return f"substring({first}, {detail[0]}, {detail[1]})"
        case "replace":
            return f"replace({first}, {text_literal(detail[0])}, {text_literal(detail[1])})"
        case "coalesce" | "concat":
            return f"{column.operation}({', '.join(operands)})"
        case "case":
            return _case(operands)
        case "struct":
            pairs = zip(map(text_literal, detail), operands, strict=True)
            return f"named_struct({', '.join(f'{name}, {one}' for name, one in pairs)})"
    return SQL[column.operation].format(*operands)


def _case(operands: list[str]) -> str:
    whens = [
        f"WHEN {operands[at]} THEN {operands[at + 1]}" for at in range(0, len(operands) - 1, 2)
    ]
    rest = f" ELSE {operands[-1]}" if len(operands) % 2 else ""
    return f"(CASE {' '.join(whens)}{rest} END)"
