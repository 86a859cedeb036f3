"""Maps: keys, values, entries."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.sql.functions.catalogue import Catalogue
from penstock.sql.types.kinds import ArrayOf, DataType, MapOf, StructOf

catalogue = Catalogue("MAP")


@catalogue.scalar("MAP_KEYS", "(MAP<K, V>) -> ARRAY<K>", about="The keys of a map.")
def map_keys(values: Mapping[Any, Any]) -> list[Any]:
    return list(values)


@catalogue.scalar("MAP_VALUES", "(MAP<K, V>) -> ARRAY<V>", about="The values of a map.")
def map_values(values: Mapping[Any, Any]) -> list[Any]:
    return list(values.values())


@catalogue.scalar(
    "MAP_UNION",
    "(MAP<K, V>, MAP<K, V>) -> MAP<K, V>",
    takes_nulls=True,
    about="The entries of both maps; where both have a key, that of the second.",
)
def map_union(left: Mapping[Any, Any] | None, right: Mapping[Any, Any] | None) -> Any:
    if left is None and right is None:
        return None
    return {**(left or {}), **(right or {})}


@catalogue.scalar(
    "AS_MAP",
    "(ARRAY<K>, ARRAY<V>) -> MAP<K, V>",
    about="A map of an array of keys and an array of values, as long as the shorter one.",
)
def as_map(keys: Sequence[Any], values: Sequence[Any]) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=False))


def _entries_type(kind: DataType | None, *_others: Any) -> DataType:
    key, value = (kind.key, kind.value) if isinstance(kind, MapOf) else (None, None)
    return ArrayOf(StructOf((("K", key), ("V", value))))


@catalogue.scalar(
    "ENTRIES",
    "(MAP<K, V>, BOOLEAN) -> ARRAY<V>",
    result_type=_entries_type,
    about="The entries of a map as structs of K and V, sorted by key if asked for.",
)
def entries(values: Mapping[Any, Any], is_sorted: bool) -> list[dict[str, Any]]:
    keys = sorted(values) if is_sorted else list(values)
    return [{"K": key, "V": values[key]} for key in keys]
