"""The built-in functions, all modules together."""

from collections.abc import Sequence
from typing import Final

from penstock.sql.functions import table_functions
from penstock.sql.functions.aggregates import counting, extremes, gathering, offsets, sums
from penstock.sql.functions.scalars import (
    arrays,
    dates,
    encodings,
    json_text,
    lambdas,
    maps,
    masks,
    nulls,
    numeric,
    patterns_of_text,
    strings,
    surroundings,
    urls,
)
from penstock.sql.functions.table import FunctionTable, SqlFunction, Surroundings

_SCALARS: Final = (
    arrays, encodings, json_text, lambdas, maps, masks, nulls, numeric, patterns_of_text, strings,
    urls,
)  # fmt: skip
_AGGREGATES: Final = (counting, extremes, gathering, offsets, sums)


def built_in(world: Surroundings) -> FunctionTable:
    """ksqlDB's functions; those of time and chance ask the surroundings."""
    functions: list[SqlFunction] = [*_scalars(world), *table_functions.catalogue.tables()]
    for module in _AGGREGATES:
        functions += module.FUNCTIONS
    return FunctionTable(functions)


def _scalars(world: Surroundings) -> Sequence[SqlFunction]:
    functions: list[SqlFunction] = []
    for module in _SCALARS:
        functions += module.catalogue.scalars()
    timed = dates.catalogue.copy()
    surroundings.now_functions(world, timed)
    return [*functions, *timed.scalars(), *surroundings.functions_of(world)]
