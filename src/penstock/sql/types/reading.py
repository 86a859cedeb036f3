"""From types as they are written to types as they are; names of CREATE TYPE are looked up."""

from collections.abc import Mapping
from typing import Final

from penstock.sql.language import types as written
from penstock.sql.types.kinds import (
    INTEGER,
    PRIMITIVES,
    STRING,
    ArrayOf,
    DataType,
    DecimalOf,
    MapOf,
    StructOf,
)

_OTHER_NAMES: Final = {"INT": INTEGER, "VARCHAR": STRING}
_NO_TYPES: Final[Mapping[str, DataType]] = {}


class UnknownType(ValueError):
    """A type that is neither built in nor made by CREATE TYPE, or has parameters it cannot have."""


def data_type(node: written.SqlType, user_types: Mapping[str, DataType] = _NO_TYPES) -> DataType:
    """The type that a node of the language means; raises UnknownType."""
    match node:
        case written.ArrayType():
            return ArrayOf(data_type(node.item, user_types))
        case written.MapType():
            return MapOf(data_type(node.key, user_types), data_type(node.value, user_types))
        case written.StructType():
            return StructOf(tuple((n, data_type(kind, user_types)) for n, kind in node.fields))
    return _named(node, user_types)


def _named(node: written.NamedType, user_types: Mapping[str, DataType]) -> DataType:
    if node.name == "DECIMAL":
        return _decimal(node)
    built_in = PRIMITIVES.get(node.name) or _OTHER_NAMES.get(node.name)
    found = built_in or user_types.get(node.name)
    if found is None:
        raise UnknownType(f"Cannot resolve unknown type: {node.name}")
    if node.parameters and found != STRING:
        raise UnknownType(f"{node.name} takes no parameters: {node}")
    return found


def _decimal(node: written.NamedType) -> DecimalOf:
    match node.parameters:
        case (int(precision), int(scale)):
            return decimal_of(precision, scale)
    raise UnknownType(f"DECIMAL takes a precision and a scale, as in DECIMAL(10, 2): {node}")


def decimal_of(precision: int, scale: int) -> DecimalOf:
    """A DECIMAL whose parameters make sense; raises UnknownType."""
    if precision < 1:
        raise UnknownType(f"DECIMAL precision must be >= 1: DECIMAL({precision}, {scale})")
    if scale < 0:
        raise UnknownType(f"DECIMAL scale must be >= 0: DECIMAL({precision}, {scale})")
    if scale > precision:
        raise UnknownType(f"DECIMAL precision must be >= scale: DECIMAL({precision}, {scale})")
    return DecimalOf(precision, scale)
