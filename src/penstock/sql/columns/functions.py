"""Functions that Arrow has with the very meaning of ours; others go row by row."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.columns.cells import NotInColumns, is_ascii
from penstock.sql.expressions.compiled import CompiledExpression
from penstock.sql.functions.scalars import nulls, strings

ArrayFunction = Callable[[Sequence[Any]], Any]
_Maker = Callable[[Sequence[CompiledExpression]], ArrayFunction]


def in_arrow(
    function: Callable[..., Any], arguments: Sequence[CompiledExpression]
) -> ArrayFunction:
    """The function for columns; NotInColumns if there is none for such arguments."""
    make = _MAKERS.get(function)
    if make is None:
        raise NotInColumns
    return make(arguments)


def _cases(arrow: Callable[[Any], Any], python: Callable[[str], str]) -> _Maker:
    """Letters outside of ASCII go by Python's tables, for some become two."""

    def make(_arguments: Sequence[CompiledExpression]) -> ArrayFunction:
        def cased(parts: Sequence[Any]) -> Any:
            (texts,) = parts
            if is_ascii(texts):
                return arrow(texts)
            found = (None if text is None else python(text) for text in texts.to_pylist())
            return pa.array(found, pa.string())

        return cased

    return make


def _length(arguments: Sequence[CompiledExpression]) -> ArrayFunction:
    if str(arguments[0].type) != "STRING":
        raise NotInColumns
    return lambda parts: pc.cast(pc.utf8_length(parts[0]), pa.int64())


def _substring(arguments: Sequence[CompiledExpression]) -> ArrayFunction:
    """From a position that is known, and so is the length if there is one."""
    places = [one.literal for one in arguments[1:] if one.is_literal]
    if str(arguments[0].type) != "STRING" or len(places) != len(arguments) - 1:
        raise NotInColumns
    if any(place is None or place < 1 for place in places):
        raise NotInColumns
    start = places[0] - 1
    stop = start + places[1] if len(places) > 1 else None
    return lambda parts: pc.utf8_slice_codeunits(parts[0], start, stop)


def _concatenation(arguments: Sequence[CompiledExpression]) -> ArrayFunction:
    return lambda parts: pc.binary_join_element_wise(
        *parts, "", null_handling="replace", null_replacement=""
    )


def _first_valid(_arguments: Sequence[CompiledExpression]) -> ArrayFunction:
    return lambda parts: pc.coalesce(*parts)


def _same(_arguments: Sequence[CompiledExpression]) -> ArrayFunction:
    return lambda parts: parts[0]


_MAKERS: Final[dict[Any, _Maker]] = {
    strings.upper_case: _cases(pc.ascii_upper, str.upper),
    strings.lower_case: _cases(pc.ascii_lower, str.lower),
    strings.length: _length,
    strings.substring: _substring,
    strings.concat: _concatenation,
    nulls.coalesce: _first_valid,
    nulls.if_null: _first_valid,
    nulls.as_value: _same,
}
