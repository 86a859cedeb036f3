"""How the built-in aggregate functions are declared: variants, gathered under one name."""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.sql.functions.aggregates.aggregate import (
    AggregateFunction,
    AggregateOverload,
    SqlAggregator,
)
from penstock.sql.functions.patterns import signature
from penstock.sql.types.kinds import DataType

Make = Callable[[tuple[DataType | None, ...], tuple[Any, ...]], SqlAggregator]


def variant(
    text: str, make: Make, *, constants: int = 0, names: Sequence[str] = ("value",)
) -> AggregateOverload:
    """One variant by its signature."""
    return AggregateOverload(
        signature=signature(text), make=make, constants=constants, names=tuple(names)
    )


def aggregate(name: str, about: str, *overloads: AggregateOverload) -> AggregateFunction:
    """An aggregate function with all its variants."""
    return AggregateFunction(name=name, about=about, overloads=overloads)
