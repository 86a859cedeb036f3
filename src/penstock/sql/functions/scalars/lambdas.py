"""TRANSFORM, FILTER and REDUCE: functions that take lambdas, over arrays and maps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.sql.functions.catalogue import Catalogue

catalogue = Catalogue("LAMBDA")


@catalogue.scalar(
    "TRANSFORM",
    "(ARRAY<T>, LAMBDA<T, U>) -> ARRAY<U>",
    about="A new array or map of what lambdas make of each item, or of each key and value.",
)
def transform_array(array: Sequence[Any], function: Callable[[Any], Any]) -> list[Any]:
    return [function(item) for item in array]


@catalogue.scalar("TRANSFORM", "(MAP<K, V>, LAMBDA<K, V, R>, LAMBDA<K, V, S>) -> MAP<R, S>")
def transform_map(
    values: Mapping[Any, Any], key: Callable[[Any, Any], Any], value: Callable[[Any, Any], Any]
) -> dict[Any, Any]:
    made = {}
    for k, v in values.items():
        new = key(k, v)
        if new in made:
            raise ValueError(f"TRANSFORM gives the key {new!r} twice")
        made[new] = value(k, v)
    return made


@catalogue.scalar(
    "FILTER",
    "(ARRAY<T>, LAMBDA<T, BOOLEAN>) -> ARRAY<T>",
    about="The items of an array, or the entries of a map, for which a lambda is true.",
)
def filter_array(array: Sequence[Any], function: Callable[[Any], Any]) -> list[Any]:
    return [item for item in array if function(item)]


@catalogue.scalar("FILTER", "(MAP<K, V>, LAMBDA<K, V, BOOLEAN>) -> MAP<K, V>")
def filter_map(values: Mapping[Any, Any], function: Callable[[Any, Any], Any]) -> dict[Any, Any]:
    return {key: value for key, value in values.items() if function(key, value)}


@catalogue.scalar(
    "REDUCE",
    "(ARRAY<T>, S, LAMBDA<S, T, S>) -> S",
    takes_nulls=True,
    about="A state that a lambda changes with each item, or with each key and value.",
)
def reduce_array(array: Sequence[Any] | None, state: Any, function: Callable[..., Any]) -> Any:
    for item in array or () if state is not None else ():
        state = function(state, item)
    return state


@catalogue.scalar("REDUCE", "(MAP<K, V>, S, LAMBDA<S, K, V, S>) -> S", takes_nulls=True)
def reduce_map(values: Mapping[Any, Any] | None, state: Any, function: Callable[..., Any]) -> Any:
    for key, value in (values or {}).items() if state is not None else ():
        state = function(state, key, value)
    return state
