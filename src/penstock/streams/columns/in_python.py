"""Expressions computed in Python: for the test driver, and for stages with functions in them."""

from collections.abc import Callable
from typing import Any

from penstock.streams.columns.operations import CASTS, STRICT, conjunction, disjunction
from penstock.streams.columns.resolve import TypedColumn
from penstock.streams.values.records import StreamRecord

Compute = Callable[[StreamRecord], Any]


def computing(column: TypedColumn) -> Compute:
    """A function of a record."""
    if column.operation == "record":
        return _of_record(column.detail)
    if column.operation == "literal":
        value = column.detail
        return lambda record: value
    operands = [computing(one) for one in column.operands]
    return _combining(column, operands)


def _of_record(part: str) -> Compute:
    if part == "key":
        return lambda record: record.key
    if part == "value":
        return lambda record: record.value
    return lambda record: record.timestamp_ms


def _combining(column: TypedColumn, operands: list[Compute]) -> Compute:
    match column.operation:
        case "and":
            one, other = operands
            return lambda record: conjunction(one(record), other(record))
        case "or":
            one, other = operands
            return lambda record: disjunction(one(record), other(record))
        case "is null":
            tested = operands[0]
            return lambda record: tested(record) is None
        case "coalesce":
            return lambda record: _first(operands, record)
        case "case":
            return lambda record: _chosen(operands, record)
        case "struct":
            names = column.detail
            return lambda record: {
                name: one(record) for name, one in zip(names, operands, strict=True)
            }
    return _strict(_function(column), operands)


def _function(column: TypedColumn) -> Callable[..., Any]:
    """What is computed of operands that are not null."""
    detail: Any = column.detail
    match column.operation:
        case "cast":
            return CASTS[column.operands[0].type.name, column.type.name]
        case "field":
            return lambda value: value.get(detail)
        case "substring":
            start, length = detail
            return lambda text: text[start - 1 : start - 1 + length]
        case "replace":
            old, new = detail
            return lambda text: text.replace(old, new)
    return STRICT[column.operation]


def _strict(function: Callable[..., Any], operands: list[Compute]) -> Compute:
    if len(operands) == 1:
        only = operands[0]

        def of_one(record: StreamRecord) -> Any:
            value = only(record)
            return None if value is None else function(value)

        return of_one

    def of_all(record: StreamRecord) -> Any:
        values = [one(record) for one in operands]
        return None if any(value is None for value in values) else function(*values)

    return of_all


def _first(operands: list[Compute], record: StreamRecord) -> Any:
    for one in operands:
        value = one(record)
        if value is not None:
            return value
    return None


def _chosen(operands: list[Compute], record: StreamRecord) -> Any:
    for at in range(0, len(operands) - 1, 2):
        if operands[at](record) is True:
            return operands[at + 1](record)
    return operands[-1](record) if len(operands) % 2 else None
