"""Serdes as Spark SQL: what their bytes are, whether they can be read, and how they are written.

They mean what the serdes mean in Python, with three exceptions that Spark's JSON reader makes: text
behind an object is not noticed, what stands where a string is declared is taken as its text, and
half a surrogate pair becomes a question mark.
"""

from typing import Any

from penstock.streams.columns.sql_text import quoted, sql_type, text_literal
from penstock.streams.values.column_types import ColumnType, struct_of
from penstock.streams.values.json_fields import JSON_FIELDS
from penstock.streams.values.serdes import Serde

_MISFIT = "_misfit"  # Spark puts the text of a JSON that does not fit here.
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _MISFIT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
_READABLE = ("string", "long", "integer", "bytes", JSON_FIELDS)
_WRITABLE = ("string", "long", "bytes", JSON_FIELDS)


def is_readable(serde: Serde[Any] | None) -> bool:
    """Whether Spark can read what the serde writes."""
    return serde is not None and serde.name in _READABLE and not _has_misfit(serde.type)


def is_writable(serde: Serde[Any] | None, kind: ColumnType) -> bool:
    """Whether Spark can write values of a type as the serde does."""
    return serde is not None and serde.name in _WRITABLE and serde.type == kind


def _has_misfit(kind: ColumnType | None) -> bool:
    return kind is not None and kind.field(_MISFIT) is not None


def reading(serde: Serde[Any], data: str) -> str:
    """The value of the bytes, or the bytes themselves where Spark does not know the serde.

    It is null for bytes that cannot be read.
    """
    if not is_readable(serde):
        return data
    match serde.name:
        case "string":
            return f"cast({data} AS STRING)"
        case "long":
            return f"CASE WHEN length({data}) = 8 THEN {_number(data)} END"
        case "integer":
            sign = f"CASE WHEN {_number(data)} > 2147483647L THEN 4294967296L ELSE 0L END"
            return f"CASE WHEN length({data}) = 4 THEN {_number(data)} - {sign} END"
        case "bytes":
            return data
    assert serde.type is not None
    names = ", ".join(
        f"{quoted(name)} {sql_type(kind)}" for name, kind in (*serde.type.fields, _misfit())
    )
    options = ", ".join(f"'{name}', '{value}'" for name, value in _OPTIONS.items())
    return f"from_json(cast({data} AS STRING), {text_literal(names)}, map({options}))"


def _misfit() -> tuple[str, ColumnType]:
    return _MISFIT, ColumnType("string")


def _number(data: str) -> str:
    return f"cast(conv(hex({data}), 16, -10) AS BIGINT)"


def unreadable(serde: Serde[Any], data: str, value: str) -> str:
    """Whether there are bytes but they cannot be read; `value` is where `reading` was put."""
    match serde.name:
        case "string":
            return f"({data} IS NOT NULL AND NOT is_valid_utf8({data}))"
        case "bytes":
            return "false"
        case "long" | "integer":
            return f"({data} IS NOT NULL AND {value} IS NULL)"
    misfit = f"{value} IS NULL OR {value}.{_MISFIT} IS NOT NULL OR NOT is_valid_utf8({data})"
    return f"({data} IS NOT NULL AND ({misfit}))"


def writing(serde: Serde[Any], value: str) -> str:
    """The bytes of a value."""
    match serde.name:
        case "string":
            return f"cast({value} AS BINARY)"
        case "long":
            return f"unhex(lpad(hex({value}), 16, '0'))"
        case "bytes":
            return value
    assert serde.type is not None
    as_json = f"to_json({_finite(value, serde.type)}, map('ignoreNullFields', 'false'))"
    return f"cast({as_json} AS BINARY)"


def _finite(value: str, kind: ColumnType) -> str:
    """The declared fields alone, and null for numbers that JSON has not."""
    if kind.name == "double":
        return f"CASE WHEN abs({value}) <= 1.7976931348623157E308D THEN {value} END"
    if kind.element is not None:
        return f"transform({value}, one -> {_finite('one', kind.element)})"
    if kind.name != "struct":
        return value
    parts = ", ".join(
        f"{text_literal(name)}, {_finite(f'{value}.{quoted(name)}', one)}"
        for name, one in kind.fields
    )
    empty = f"cast(NULL AS {sql_type(struct_of(dict(kind.fields)))})"
    return f"CASE WHEN {value} IS NULL THEN {empty} ELSE named_struct({parts}) END"
