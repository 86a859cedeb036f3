"""Expressions with their types: what a column is for a stream whose key and value are known.

Every conversion becomes a cast of its own, so those who compute need not know any rules of types.
"""

from dataclasses import dataclass
from typing import Any

from penstock.streams.columns.expression import Column
from penstock.streams.columns.operations import CASTS, LONG_MAX, LONG_MIN
from penstock.streams.values.column_types import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    LONG,
    STRING,
    ColumnType,
    ColumnTypeError,
    struct_of,
)

NULL = ColumnType("boolean")  # Of a literal null, until something else says what it is.
_LITERALS = {bool: BOOLEAN, int: LONG, float: DOUBLE, str: STRING, bytes: BYTES}
_TEXT = ("upper", "lower", "trim", "contains", "starts with", "ends with", "concat")


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """An expression whose operands have the types it wants."""

    operation: str
    operands: "tuple[TypedColumn, ...]"
    detail: Any
    type: ColumnType

    @property
    def is_null(self) -> bool:
        """Whether it is the literal null."""
        return self.operation == "literal" and self.detail is None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordType:
    """What a stream's records are; None: their serde does not say."""

    key: ColumnType | None
    value: ColumnType | None
    has_timestamp: bool = True

    def of(self, part: str) -> ColumnType:
        """The type of a part of the record; ColumnTypeError where it is not known."""
        found = {"key": self.key, "value": self.value, "timestamp": LONG}[part]
        if part == "timestamp" and not self.has_timestamp:
            raise ColumnTypeError("a table's row is looked at without its time")
        if found is None:
            raise ColumnTypeError(
                f"the type of the {part} is not known here: give the stream a serde that says it, "
                f'such as {part}=STRING or {part}=json_of(name="string", cents="long")'
            )
        return found


def resolved(column: Column, record: RecordType) -> TypedColumn:
    """The expression with its types; ColumnTypeError tells what does not fit."""
    if column.operation == "record":
        return TypedColumn("record", (), column.detail, record.of(column.detail))
    if column.operation == "literal":
        return _literal(column.detail)
    return _combined(column, tuple(resolved(one, record) for one in column.operands))


def expecting(column: Column, record: RecordType, wanted: ColumnType, what: str) -> TypedColumn:
    """The expression, which must be of a type."""
    found = resolved(column, record)
    if found.is_null:
        return TypedColumn("literal", (), None, wanted)
    if found.type != wanted:
        raise ColumnTypeError(f"{what} must be a {wanted}, and is a {found.type}")
    return found


def _literal(value: Any) -> TypedColumn:
    if value is None:
        return TypedColumn("literal", (), None, NULL)
    if type(value) is int and not LONG_MIN <= value <= LONG_MAX:
        raise ColumnTypeError(f"{value} is too large for a long")
    return TypedColumn("literal", (), value, _LITERALS[type(value)])


def _combined(column: Column, operands: tuple[TypedColumn, ...]) -> TypedColumn:
    operation, detail = column.operation, column.detail
    match operation:
        case "+" | "-" | "*" | "%":
            operands = _numbers(operation, operands)
            return TypedColumn(operation, operands, None, operands[0].type)
        case "/":
            divided = tuple(converted(one, DOUBLE) for one in _numbers(operation, operands))
            return TypedColumn(operation, divided, None, DOUBLE)
        case "negate" | "abs":
            operands = _numbers(operation, operands)
            return TypedColumn(operation, operands, None, operands[0].type)
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            return TypedColumn(operation, _comparable(operation, operands), None, BOOLEAN)
        case "and" | "or" | "not":
            return TypedColumn(operation, _all_of(operation, operands, BOOLEAN), None, BOOLEAN)
        case "is null":
            return TypedColumn(operation, operands, None, BOOLEAN)
        case "length":
            if operands[0].type not in (STRING, BYTES):
                operands = _all_of(operation, operands, STRING)
            return TypedColumn(operation, operands, None, LONG)
        case "substring" | "replace":
            return TypedColumn(operation, _all_of(operation, operands, STRING), detail, STRING)
        case "upper" | "lower" | "trim" | "concat":
            return TypedColumn(operation, _all_of(operation, operands, STRING), None, STRING)
        case "contains" | "starts with" | "ends with":
            return TypedColumn(operation, _all_of(operation, operands, STRING), None, BOOLEAN)
        case "cast":
            return _cast(operands[0], detail)
        case "field":
            return _field(operands[0], detail)
        case "coalesce":
            return _same(operation, operands, operands)
        case "case":
            return _case(operands)
        case "struct":
            fields = dict(zip(detail, (one.type for one in operands), strict=True))
            return TypedColumn(operation, operands, detail, struct_of(fields))
    raise ColumnTypeError(f"{operation!r} is no operation of columns")


def converted(column: TypedColumn, wanted: ColumnType) -> TypedColumn:
    """The column as a type it can always become: null as any, a long as a double."""
    if column.is_null:
        return TypedColumn("literal", (), None, wanted)
    if column.type == wanted:
        return column
    if (column.type, wanted) == (LONG, DOUBLE):
        return TypedColumn("cast", (column,), None, DOUBLE)
    raise ColumnTypeError(f"a {column.type} is no {wanted}: write .cast")


def _widest(columns: tuple[TypedColumn, ...]) -> ColumnType:
    kinds = {one.type for one in columns if not one.is_null}
    if kinds == {LONG, DOUBLE}:
        return DOUBLE
    return next((one.type for one in columns if not one.is_null), NULL)


def _numbers(operation: str, operands: tuple[TypedColumn, ...]) -> tuple[TypedColumn, ...]:
    kind = _widest(operands)
    if all(one.is_null for one in operands):
        kind = LONG
    if kind not in (LONG, DOUBLE):
        raise ColumnTypeError(f"{operation} is for numbers, and here is a {kind}")
    return _all_of(operation, operands, kind)


def _comparable(operation: str, operands: tuple[TypedColumn, ...]) -> tuple[TypedColumn, ...]:
    kind = _widest(operands)
    if kind.name in ("list", "struct"):
        raise ColumnTypeError(f"{operation} compares no {kind}")
    return _all_of(operation, operands, kind)


def _all_of(
    operation: str, operands: tuple[TypedColumn, ...], kind: ColumnType
) -> tuple[TypedColumn, ...]:
    try:
        return tuple(converted(one, kind) for one in operands)
    except ColumnTypeError as error:
        raise ColumnTypeError(f"in {operation}: {error}") from None


def _same(
    operation: str, operands: tuple[TypedColumn, ...], values: tuple[TypedColumn, ...]
) -> TypedColumn:
    kind = _widest(values)
    return TypedColumn(operation, _all_of(operation, values, kind), None, kind)


def _case(operands: tuple[TypedColumn, ...]) -> TypedColumn:
    pairs, rest = operands[: len(operands) // 2 * 2], operands[len(operands) // 2 * 2 :]
    conditions = _all_of("when", pairs[::2], BOOLEAN)
    values = (*pairs[1::2], *rest)
    kind = _widest(values)
    values = _all_of("when", values, kind)
    branches = [one for pair in zip(conditions, values, strict=False) for one in pair]
    return TypedColumn("case", (*branches, *values[len(conditions) :]), None, kind)


def _cast(column: TypedColumn, name: str) -> TypedColumn:
    plain = {str(kind): kind for kind in (BOOLEAN, LONG, DOUBLE, STRING)}
    wanted = plain.get(name)
    if wanted is None:
        raise ColumnTypeError(f"cast to {name!r}: it is one of {', '.join(plain)}")
    if column.is_null or column.type == wanted:
        return converted(column, wanted)
    if (column.type.name, name) not in CASTS:
        raise ColumnTypeError(f"a {column.type} cannot be cast to a {name}")
    return TypedColumn("cast", (column,), None, wanted)


def _field(column: TypedColumn, name: str) -> TypedColumn:
    kind = column.type.field(name)
    if kind is None:
        known = ", ".join(one for one, _ in column.type.fields)
        raise ColumnTypeError(
            f"there is no field {name!r}: "
            + (f"the fields are {known}" if known else f"it would be one of a {column.type}")
        )
    return TypedColumn("field", (column,), name, kind)
