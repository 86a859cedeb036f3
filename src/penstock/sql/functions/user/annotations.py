"""Python's annotations as types of the language.

`int` is BIGINT, `float` DOUBLE, `list[str]` ARRAY<STRING>, a dataclass or TypedDict a STRUCT, a
TypeVar any type. `Annotated[int, "INTEGER"]` names a type of the language itself. `X | None` says
that the function wants to see NULL.
"""

import dataclasses
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from penstock.sql.functions.patterns import (
    AnyDecimal,
    ArrayPattern,
    Blank,
    Exact,
    Filled,
    MapPattern,
    Pattern,
)
from penstock.sql.language.parse import parse_one
from penstock.sql.language.place import SqlSyntaxError
from penstock.sql.language.statements import CreateType
from penstock.sql.types.kinds import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    DataType,
    StructOf,
)
from penstock.sql.types.reading import UnknownType, data_type

_PLAIN: Final[dict[Any, DataType]] = {
    bool: BOOLEAN,
    int: BIGINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    date: DATE,
    time: TIME,
    datetime: TIMESTAMP,
}
_LISTS: Final = (list, Sequence, Iterable, Iterator)


class AnnotationRefused(ValueError):
    """An annotation that stands for no type."""


def type_of_text(text: str) -> DataType:
    """A type as the language writes it; raises AnnotationRefused."""
    try:
        statement = parse_one(f"CREATE TYPE t AS {text}")
        assert isinstance(statement, CreateType)
        return data_type(statement.type)
    except (SqlSyntaxError, UnknownType, AssertionError) as error:
        raise AnnotationRefused(f"{text!r} is no type: {error}") from None


def takes_null(annotation: Any) -> bool:
    """Whether `X | None` was written."""
    return typing.get_origin(annotation) in (typing.Union, types.UnionType) and type(
        None
    ) in typing.get_args(annotation)


def pattern_of(annotation: Any) -> Pattern:
    """The pattern that an annotation stands for; raises AnnotationRefused."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if takes_null(annotation):
        return _optional(annotation, inner)
    if origin is typing.Annotated:
        texts = [one for one in inner[1:] if isinstance(one, str)]
        return Exact(type_of_text(texts[0])) if texts else pattern_of(inner[0])
    if origin in _LISTS and inner:
        return ArrayPattern(pattern_of(inner[0]))
    if origin is dict and inner:
        return MapPattern(pattern_of(inner[0]), pattern_of(inner[1]))
    return _plain(annotation)


def _optional(annotation: Any, inner: tuple[Any, ...]) -> Pattern:
    others = [one for one in inner if one is not type(None)]
    if len(others) != 1:
        raise AnnotationRefused(f"{annotation} is more than one type")
    return pattern_of(others[0])


def _plain(annotation: Any) -> Pattern:
    if annotation in _PLAIN:
        return Exact(_PLAIN[annotation])
    if annotation is Decimal:
        return AnyDecimal()
    if isinstance(annotation, typing.TypeVar):
        return Blank(annotation.__name__)
    if dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation):
        return Exact(_struct(annotation))
    raise AnnotationRefused(f"the annotation {_shown(annotation)} stands for no type")


def _struct(annotation: Any) -> StructOf:
    fields = typing.get_type_hints(annotation, include_extras=True)
    return StructOf(tuple((name, exact_type(one)) for name, one in fields.items()))


def exact_type(annotation: Any) -> DataType:
    """The one type that an annotation stands for; raises AnnotationRefused."""
    pattern = pattern_of(annotation)
    if isinstance(pattern, Blank | AnyDecimal):
        wanted = 'Annotated[Decimal, "DECIMAL(10, 2)"]'
        raise AnnotationRefused(f"{_shown(annotation)} is not one type here: write {wanted}")
    found = Filled().type_of(pattern)
    assert found is not None
    return found


def _shown(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation)
