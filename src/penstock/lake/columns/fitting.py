"""Whether a record fits the table's columns, and what they must become for it.

Pure: values, types and rules in; columns or the reason why not out. What the columns cannot follow
is a misfit, and only that record's affair.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock.lake.columns.rules import (
    ELEMENT,
    AgreedColumns,
    Path,
    Rules,
    ambiguous_path,
    check_folder,
    check_name,
    type_at,
    wrong_name,
)
from penstock.lake.columns.types import (
    WHOLE_IN_DOUBLE_MAX,
    WHOLE_IN_FLOAT_MAX,
    Demand,
    JsonObject,
    is_untyped,
)
from penstock.lake.errors import IncompatibleSchema, Misfit, UnfitName


class Fitted(NamedTuple):
    """A record beside the columns."""

    columns: AgreedColumns  # As they are with it.
    values: dict[str, Any]  # By column; what does not fit is left out.
    misfits: dict[str, Misfit]  # By the name in the record.


def fit_record(record: Mapping[str, Any], columns: AgreedColumns, rules: Rules) -> Fitted:
    """The columns as they must be for this record, which are its own affair where it does not fit.

    Its values are as a JSON text has them: numbers with a point are decimals.
    """
    known = columns.by_name()
    exact = set(columns.exact)
    grown: dict[str, pa.Field] = {}
    values: dict[str, Any] = {}
    misfits: dict[str, Misfit] = {}
    for name, (column, clash) in _columns_of(record, known, rules).items():
        if clash is not None:
            misfits[name] = clash
            continue
        old = known[column.lower()].type if column.lower() in known else None
        demand = Demand(rules, set(exact))
        try:
            kind = demand.kind(record[name], old, (column,))
            if kind is not None and (old is None or not kind.equals(old)):
                grown[column] = _grown(columns, grown, pa.field(column, kind), rules)
        except (IncompatibleSchema, UnfitName) as misfit:
            misfits[name] = misfit
            continue
        exact = demand.exact
        if column not in values or not is_untyped(record[name]):  # Not a null over a value.
            values[column] = record[name]
    if not grown and len(exact) == len(columns.exact):
        return Fitted(columns, values, misfits)
    return Fitted(_with(columns, grown, exact), values, misfits)


def grow(
    columns: AgreedColumns, data: pa.Schema, exact: Iterable[Path], rules: Rules
) -> AgreedColumns:
    """The columns with those of the data; raises a misfit where they do not go together.

    `exact` are the places where the data have whole numbers beyond 2^53.
    """
    known = columns.by_name()
    marks = {*columns.exact, *exact}
    grown: dict[str, pa.Field] = {}
    for one in data:
        old = known.get(one.name.lower())
        if old is not None and old.name != one.name:
            raise UnfitName(one.name, f"the table has {old.name}, which differs only in case")
        join = Demand(rules, marks)
        kind = join.joined(None if old is None else old.type, one.type, (one.name,))
        if kind is None or (old is not None and kind.equals(old.type)):
            continue
        if old is None:
            check_name(one.name)
        fresh = _grown(columns, grown, pa.field(one.name, kind), rules)
        known[one.name.lower()] = grown[one.name] = fresh
    whole = _with(columns, grown, marks)
    for path in marks:
        kind = type_at(whole.schema, path)
        if kind is not None and pa.types.is_floating(kind):
            raise IncompatibleSchema(".".join(path), str(kind), "a whole number beyond 2^53")
    return whole


def _grown(
    columns: AgreedColumns, grown: Mapping[str, pa.Field], fresh: pa.Field, rules: Rules
) -> pa.Field:
    """The new column, if it can be one beside the others."""
    if fresh.name in rules.folders:
        check_folder(fresh.name, fresh.type)
    if rules.lake_format == "iceberg":
        path = ambiguous_path(_with(columns, {**grown, fresh.name: fresh}, ()).schema)
        if path is not None:
            raise UnfitName(fresh.name, f"two fields would be {path}")
    return fresh


def exact_paths(rows: pa.Table | pa.RecordBatch) -> Iterator[Path]:
    """Where whole numbers beyond 2^53 are."""
    for path, leaf in _leaves(rows):
        if pa.types.is_integer(leaf.type) and _reaches_beyond(leaf, WHOLE_IN_DOUBLE_MAX):
            yield path


def has_doubtful_doubles(table: pa.Table) -> bool:
    """Whether a number may have been rounded: beyond these bounds not all whole ones are exact."""
    for _, leaf in _leaves(table):
        bound = WHOLE_IN_FLOAT_MAX if pa.types.is_float32(leaf.type) else WHOLE_IN_DOUBLE_MAX
        if pa.types.is_floating(leaf.type) and _reaches_beyond(leaf, bound - 1):
            return True
    return False


def _leaves(rows: pa.Table | pa.RecordBatch) -> Iterator[tuple[Path, pa.Array]]:
    """The innermost arrays, nulls and all."""
    for one, array in zip(rows.schema, rows.columns, strict=True):
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        for chunk in chunks:
            yield from _leaves_of(chunk, (one.name,))


def _leaves_of(array: pa.Array, path: Path) -> Iterator[tuple[Path, pa.Array]]:
    if pa.types.is_struct(array.type):
        for at, one in enumerate(array.type):
            yield from _leaves_of(array.field(at), (*path, one.name))
    elif pa.types.is_list(array.type):
        yield from _leaves_of(array.values, (*path, ELEMENT))
    else:
        yield path, array


def _reaches_beyond(leaf: pa.Array, bound: int) -> bool:
    ends = pc.min_max(leaf)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is not None and bool(low < -bound or high > bound)


def _columns_of(
    record: Mapping[str, Any], known: Mapping[str, pa.Field], rules: Rules
) -> dict[str, tuple[str, Misfit | None]]:
    """For each name its column, or what is wrong with the name, if there is anything under it."""
    found: dict[str, tuple[str, Misfit | None]] = {}
    owners: dict[str, str] = {}
    for name in record:
        column = rules.column(name)
        clash: Misfit | None = None
        is_nothing = is_untyped(record[name])
        owner = name if is_nothing else owners.setdefault(column.lower(), name)
        if owner != name:
            clash = UnfitName(name, f"it differs from {owner} only in case")
            if column.lower() != rules.column(owner).lower() or owner.lower() != name.lower():
                clash = UnfitName(name, f"{owner} has the same column {column}")
            found[owner] = (column, clash)
        if column.lower() in known:
            column = known[column.lower()].name
        elif clash is None and not is_nothing:
            clash = wrong_name(name)
        found[name] = (column, clash)
    if isinstance(record, JsonObject) and record.twice is not None:
        column = found[record.twice][0]
        found[record.twice] = (column, UnfitName(record.twice, "the record has it twice"))
    return found


def _with(
    columns: AgreedColumns, grown: Mapping[str, pa.Field], exact: Iterable[Path]
) -> AgreedColumns:
    fields = {one.name: one for one in columns.schema} | dict(grown)
    return replace(columns, schema=pa.schema(list(fields.values())), exact=frozenset(exact))
