"""ARRAY[...], MAP(...) and STRUCT(...): their parts get one type where they need one."""

from collections.abc import Sequence

from penstock.sql.expressions.compiled import CompiledExpression, Evaluate, Row, literal
from penstock.sql.expressions.errors import SqlTypeError
from penstock.sql.language.place import Place
from penstock.sql.types.casts import cast_to
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import BOOLEAN, ArrayOf, DataType, MapOf, StructOf
from penstock.sql.types.shared_type import NoSharedType, shared_type, truth_of


def array_of(items: Sequence[CompiledExpression], at: Place | None) -> CompiledExpression:
    """`ARRAY[a, b]`."""
    if not items:
        reason = "Array constructor cannot be empty. Please supply at least one element"
        raise SqlTypeError(f"{reason}.", at)
    kind = _shared(items, "an array", at)
    evaluates = _all_as(items, kind)
    return CompiledExpression(ArrayOf(kind), lambda row: [one(row) for one in evaluates])


def map_of(
    keys: Sequence[CompiledExpression], values: Sequence[CompiledExpression], at: Place | None
) -> CompiledExpression:
    """`MAP(key := value)`."""
    if not keys:
        reason = "Map constructor cannot be empty. Please supply at least one key value pair"
        raise SqlTypeError(f"{reason}.", at)
    key_type, value_type = _shared(keys, "a map", at), _shared(values, "a map", at)
    entries = list(zip(_all_as(keys, key_type), _all_as(values, value_type), strict=True))

    def evaluate(row: Row) -> dict[object, object]:
        made = {key(row): value(row) for key, value in entries}
        if None in made:
            raise RowFailure("a key of a MAP is NULL")
        return made

    return CompiledExpression(MapOf(key_type, value_type), evaluate)


def struct_of(
    names: Sequence[str], values: Sequence[CompiledExpression], at: Place | None
) -> CompiledExpression:
    """`STRUCT(name := value)`."""
    for name in names:
        if names.count(name) > 1:
            raise SqlTypeError(f"Duplicate field names found in STRUCT: '{name}'", at)
    kind = StructOf(tuple((n, value.type) for n, value in zip(names, values, strict=True)))
    members = [(name, value.evaluate) for name, value in zip(names, values, strict=True)]
    return CompiledExpression(kind, lambda row: {name: value(row) for name, value in members})


def converted(inner: CompiledExpression, kind: DataType | None) -> CompiledExpression:
    """The same expression with values of a wider type, or of the type a literal stands for."""
    if inner.type is None or kind is None or inner.type == kind:
        return inner
    if inner.is_literal:
        return literal(_literal_as(inner, kind), kind)
    cast, evaluate = cast_to(inner.type, kind), inner.evaluate
    return CompiledExpression(kind, lambda row: cast(evaluate(row)))


def _literal_as(inner: CompiledExpression, kind: DataType) -> object:
    if kind == BOOLEAN and isinstance(inner.literal, str):
        return truth_of(inner.literal)
    return cast_to(inner.type, kind)(inner.literal)


def _shared(members: Sequence[CompiledExpression], what: str, at: Place | None) -> DataType:
    try:
        kind = shared_type([member.typed() for member in members])
    except NoSharedType as error:
        raise SqlTypeError(str(error), at) from None
    if kind is None:
        reason = f"Cannot construct {what} with all NULL elements. As a workaround, you may cast"
        raise SqlTypeError(f"{reason} a NULL value to the desired type.", at)
    return kind


def _all_as(members: Sequence[CompiledExpression], kind: DataType) -> list[Evaluate]:
    return [converted(member, kind).evaluate for member in members]
