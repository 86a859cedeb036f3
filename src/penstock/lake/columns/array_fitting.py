"""Columns that a format with a schema of its own has decoded, beside those of the table.

All rows have the same types here, so mostly one look at the types is enough. Where a type does not
go with the table's column, each row with a value there is a misfit, except for numbers, of which
single ones may fit.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.lake.columns.agreement import Agreement
from penstock.lake.columns.fitting import exact_paths, grow
from penstock.lake.columns.flaws import Flaw, flaw_of
from penstock.lake.columns.schema import conform_array, lake_schema
from penstock.lake.columns.types import Demand, fitted_array
from penstock.lake.errors import IncompatibleSchema, LakeError, UnfitName


def fit_arrays(
    arrays: Mapping[str, pa.Array], agreement: Agreement
) -> tuple[dict[str, pa.Array], dict[int, Flaw]]:
    """The arrays by column, in the table's types, and the rows that do not fit."""
    fitted: dict[str, pa.Array] = {}
    flaws: dict[int, Flaw] = {}
    owners: dict[str, str] = {}
    for name, array in arrays.items():
        column = agreement.rules.column(name)
        owner = owners.setdefault(column.lower(), name)
        if owner != name:
            raise LakeError(
                f"the columns {owner} and {name} differ only in case, which lake tables cannot "
                "hold; rename one of them"
            )
        known = agreement.columns.by_name().get(column.lower())
        column = column if known is None else known.name
        stored = lake_schema(pa.schema([pa.field(column, array.type)]))
        if not stored.names:
            continue  # Nothing but nulls, of no known type.
        array = conform_array(array, stored.field(0).type)
        fitted[column], found = _fitted(column, array, agreement)
        flaws = {**found, **flaws}
    return fitted, flaws


def _fitted(column: str, array: pa.Array, agreement: Agreement) -> tuple[pa.Array, dict[int, Flaw]]:
    rows = pa.RecordBatch.from_arrays([array], names=[column])
    exact, rules = tuple(exact_paths(rows)), agreement.rules
    try:
        agreement.admit(lambda columns: grow(columns, rows.schema, exact, rules))
    except IncompatibleSchema as misfit:
        kind = _kind(agreement, column)
        if kind is None:
            raise
        return _one_by_one(array, kind, agreement, column, misfit)
    except UnfitName:
        raise
    agreed = _kind(agreement, column)
    assert agreed is not None, "it was admitted"
    return conform_array(array, agreed), {}


def _one_by_one(
    array: pa.Array,
    kind: pa.DataType,
    agreement: Agreement,
    column: str,
    misfit: IncompatibleSchema,
) -> tuple[pa.Array, dict[int, Flaw]]:
    values: list[Any] = []
    flaws: dict[int, Flaw] = {}
    for row, value in enumerate(array.to_pylist()):
        one = _number(value)
        if one is not None and _fits(one, kind, agreement, column):
            values.append(one)
            continue
        values.append(None)
        if value is not None:
            flaws[row] = flaw_of(misfit)
    return fitted_array(values, kind), flaws


def _fits(value: Any, kind: pa.DataType, agreement: Agreement, column: str) -> bool:
    demand = Demand(agreement.rules, set(agreement.columns.exact))
    try:
        needed = demand.kind(value, kind, (column,))
    except IncompatibleSchema:
        return False
    return needed is not None and bool(needed.equals(kind))


def _number(value: object) -> int | Decimal | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Decimal):
        return value
    return Decimal(repr(value)) if isinstance(value, float) else None


def _kind(agreement: Agreement, column: str) -> pa.DataType | None:
    at = agreement.columns.schema.get_field_index(column)
    return None if at < 0 else agreement.columns.schema.field(at).type
