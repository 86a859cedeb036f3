"""What becomes what without being asked: a number a wider one, and so inside of other types."""

from collections.abc import Callable
from typing import Any

from penstock.sql.types.casts import cast_to
from penstock.sql.types.kinds import (
    NUMBER_ORDER,
    ArrayOf,
    DataType,
    MapOf,
    StructOf,
    is_number,
    kind_name,
)


def is_convertible(source: DataType | None, target: DataType | None) -> bool:
    """Whether values of `source` go without CAST where `target` is expected."""
    if source is None or source == target:
        return True
    if is_number(source) and is_number(target):
        order = NUMBER_ORDER
        return order.index(kind_name(source)) <= order.index(kind_name(target))
    match source, target:
        case ArrayOf(), ArrayOf():
            return is_convertible(source.item, target.item)
        case MapOf(), MapOf():
            same_key = is_convertible(source.key, target.key)
            return same_key and is_convertible(source.value, target.value)
        case StructOf(), StructOf():
            known = dict(target.fields)
            return all(n not in known or is_convertible(k, known[n]) for n, k in source.fields)
    return False


def converter(source: DataType | None, target: DataType | None) -> Callable[[Any], Any] | None:
    """The function that makes values of `target`; None if they are that already."""
    if source is None or target is None or source == target:
        return None
    return cast_to(source, target)
