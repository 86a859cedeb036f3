"""`record->field` and `container[index]`. What is not there is NULL."""

from typing import Any

from penstock.sql.expressions.compiled import CompiledExpression, Row
from penstock.sql.expressions.errors import SqlTypeError
from penstock.sql.language import expressions as x
from penstock.sql.types.casts import cast_to
from penstock.sql.types.conversions import is_convertible
from penstock.sql.types.kinds import WHOLE, ArrayOf, MapOf, StructOf, shown


def field_of(record: CompiledExpression, expression: x.FieldOf) -> CompiledExpression:
    """A field of a struct; of a NULL it is NULL."""
    kind, name = record.type, expression.name
    if not isinstance(kind, StructOf):
        reason = f"Expected STRUCT type, but got {shown(kind)}: {expression}"
        raise SqlTypeError(reason, expression.at)
    known = dict(kind.fields)
    if name not in known:
        reason = f"Could not find field '{name}' in '{expression.record}'. Available fields:"
        raise SqlTypeError(f"{reason} {', '.join(known) or 'none'}", expression.at)
    inner = record.evaluate

    def evaluate(row: Row) -> Any:
        value = inner(row)
        return None if value is None else value.get(name)

    return CompiledExpression(known[name], evaluate)


def item_of(
    container: CompiledExpression, index: CompiledExpression, expression: x.ItemOf
) -> CompiledExpression:
    """An item of an array, counted from 1 and from the end by negative numbers; or of a map."""
    match container.type:
        case ArrayOf(item):
            if index.type not in WHOLE:
                reason = f"an array is indexed by an INTEGER, not by {shown(index.type)}"
                raise SqlTypeError(f"{reason}: {expression}", expression.at)
            return _of_array(container, index, item)
        case MapOf(key, value):
            if not is_convertible(index.type, key):
                reason = f"the keys of the map are {shown(key)}, not {shown(index.type)}"
                raise SqlTypeError(f"{reason}: {expression}", expression.at)
            return _of_map(container, index, key, value)
    reason = f"'{expression.container}' is {shown(container.type)}: only ARRAY and MAP have items"
    raise SqlTypeError(reason, expression.at)


def _of_array(
    container: CompiledExpression, index: CompiledExpression, item: Any
) -> CompiledExpression:
    def evaluate(row: Row) -> Any:
        values, position = container.evaluate(row), index.evaluate(row)
        if values is None or position is None:
            return None
        at = position - 1 if position > 0 else len(values) + position
        return values[at] if position != 0 and 0 <= at < len(values) else None

    return CompiledExpression(item, evaluate)


def _of_map(
    container: CompiledExpression, index: CompiledExpression, key: Any, value: Any
) -> CompiledExpression:
    cast = cast_to(index.type, key)

    def evaluate(row: Row) -> Any:
        values, found = container.evaluate(row), cast(index.evaluate(row))
        return None if values is None or found is None else values.get(found)

    return CompiledExpression(value, evaluate)
