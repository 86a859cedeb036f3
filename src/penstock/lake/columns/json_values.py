"""JSON values into columns: a whole batch by Arrow's own reader, one by one where that will not do.

Arrow's reader is about ten times as fast as Python's, but takes the first record that does not fit
for the whole batch, rounds large numbers and knows nothing of cases. So its answer counts only if
nothing is odd about the batch; else each record is looked at by itself (fitting.py), which names
the ones that do not fit. Times in JSON are strings and stay strings unless the table has a column
of times: what looks like a time in one record need not in the next.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from penstock.lake.columns.agreement import Agreement
from penstock.lake.columns.fitting import (
    Fitted,
    exact_paths,
    fit_record,
    grow,
    has_doubtful_doubles,
)
from penstock.lake.columns.flaws import Flaw, flaw_of
from penstock.lake.columns.rules import AgreedColumns
from penstock.lake.columns.schema import conform_array, lake_schema
from penstock.lake.columns.types import JsonObject, fitted_array
from penstock.lake.errors import IncompatibleSchema, UnfitName

_EMPTY = b"{}"
_ALONE_MAX = 32  # So few values are not worth another attempt to read them together.


class JsonRows(NamedTuple):
    """The values of a batch as columns."""

    columns: dict[str, pa.Array]
    flaws: dict[int, Flaw]  # By row. Such a row has nulls, or what fits of it.


class GrowingJson:
    """Decodes batch after batch; the columns that all tasks agree on grow as fields appear."""

    def __init__(self, agreement: Agreement, *, keeps_what_fits: bool = False) -> None:
        self._agreement = agreement
        self._keeps_what_fits = keeps_what_fits

    def decode(self, values: pa.Array) -> JsonRows:
        """All columns of the table for these values; a missing one (a tombstone) gives nulls."""
        parts = list(self._parts(values))
        schema = self._agreement.columns.schema
        flaws: dict[int, Flaw] = {}
        start = 0
        for number, (count, found) in enumerate(parts):
            flaws.update({start + at: flaw for at, flaw in found.flaws.items()})
            # Later parts may have told the type of a list that was empty in this one.
            if not found.flaws and not _has_types(found, schema):
                again = self._decode_again(values[start : start + count])
                parts[number] = count, found if again.flaws else again
            start += count
        joined = {
            one.name: pa.concat_arrays([_part(found, one, count) for count, found in parts])
            for one in schema
        }
        return JsonRows(joined, flaws)

    def _parts(self, values: pa.Array) -> Iterator[tuple[int, JsonRows]]:
        """Read all together; around a record that fails, in ever smaller parts."""
        together = self._together(values)
        if together is not None:
            yield len(values), JsonRows(together, {})
        elif len(values) <= _ALONE_MAX:
            yield len(values), self._each(values)
        else:
            middle = len(values) // 2
            yield from self._parts(values[:middle])
            yield from self._parts(values[middle:])

    def _decode_again(self, values: pa.Array) -> JsonRows:
        together = self._together(values)
        return self._each(values) if together is None else JsonRows(together, {})

    def _together(self, values: pa.Array) -> dict[str, pa.Array] | None:
        """Read by Arrow's reader; None: it cannot read this batch, or not rightly."""
        if _has_blank(values) or not _is_utf8(values):
            return None
        document = _document(values)
        has_lines = bool(pc.any(pc.match_substring(values, "\n")).as_py())
        known = self._known_fields()
        try:
            table = _parsed(document, known, has_lines, unexpected="infer")
            wanted = _without_times(table.schema, known)
            if not wanted.equals(table.schema):
                table = _parsed(document, wanted, has_lines, unexpected="ignore")
            table.validate()  # Of a list that begins with null, the reader loses that item.
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(values) or has_doubtful_doubles(table):
            return None
        table = table.rename_columns([self._agreement.rules.column(n) for n in table.column_names])
        data, exact = lake_schema(table.schema), tuple(exact_paths(table))
        if len({name.lower() for name in data.names}) < len(data):
            return None
        rules = self._agreement.rules
        try:
            self._agreement.admit(lambda columns: grow(columns, data, exact, rules))
        except (IncompatibleSchema, UnfitName):
            return None
        return {
            one.name: _column(table, one, len(values)) for one in self._agreement.columns.schema
        }

    def _known_fields(self) -> pa.Schema:
        """The columns under the names that they have in a record."""
        rules = self._agreement.rules
        named = {rules.column(name): name for name in rules.reserved}
        fields = [
            one.with_name(named.get(one.name, one.name)) for one in self._agreement.columns.schema
        ]
        return pa.schema(fields)

    def _each(self, values: pa.Array) -> JsonRows:
        rows: list[dict[str, Any]] = []
        flaws: dict[int, Flaw] = {}
        for at, value in enumerate(values.to_pylist()):
            found = self._one(value)
            row, flaw = found
            rows.append(row)
            if flaw is not None:
                flaws[at] = flaw
        schema = self._agreement.columns.schema
        arrays = {
            one.name: fitted_array([r.get(one.name) for r in rows], one.type) for one in schema
        }
        return JsonRows(arrays, flaws)

    def _one(self, value: bytes | None) -> tuple[dict[str, Any], Flaw | None]:
        if value is None:
            return {}, None
        try:
            record = parse(value)
            if not isinstance(record, JsonObject):
                return {}, _not_json(f"it is {_kind(record)}, not a JSON object")
            fitted = self._admit(record)
        except ValueError as error:
            return {}, _not_json(f"it is not JSON: {error}")
        except RecursionError:
            return {}, _not_json("it is nested too deeply")
        if not fitted.misfits:
            return fitted.values, None
        flaw = flaw_of(next(iter(fitted.misfits.values())))
        return (fitted.values if self._keeps_what_fits else {}), flaw

    def _admit(self, record: JsonObject) -> Fitted:
        """Fit a record into the columns; they grow only if the record becomes a row."""
        fitted = Fitted(AgreedColumns(), {}, {})

        def needed(columns: AgreedColumns) -> AgreedColumns:
            nonlocal fitted
            fitted = fit_record(record, columns, self._agreement.rules)
            is_row = not fitted.misfits or self._keeps_what_fits
            return fitted.columns if is_row else columns

        self._agreement.admit(needed)
        return fitted


def parse(value: bytes) -> Any:
    """The value of a JSON text: numbers with a point as decimals, objects with their doublets."""
    return json.loads(value.decode(), parse_float=Decimal, object_pairs_hook=JsonObject.of_pairs)


def _document(values: pa.Array) -> pa.Buffer:
    """All values in one buffer, a line each."""
    filled = values.fill_null(_EMPTY) if values.null_count else values
    lines = pc.binary_join_element_wise(
        filled, pa.scalar(b"", filled.type), pa.scalar(b"\n", filled.type)
    )
    offsets = pa.Array.from_buffers(
        pa.int32(), len(lines) + 1, [None, lines.buffers()[1]], offset=lines.offset
    )
    start, end = offsets[0].as_py(), offsets[len(lines)].as_py()
    return lines.buffers()[2].slice(start, end - start)


def _parsed(
    document: pa.Buffer, schema: pa.Schema, has_lines: bool, *, unexpected: str
) -> pa.Table:
    return pj.read_json(
        pa.BufferReader(document),
        # One block, so that all records of the batch get the same types.
        read_options=pj.ReadOptions(use_threads=False, block_size=max(document.size + 1, 1024)),
        parse_options=pj.ParseOptions(
            explicit_schema=schema,
            newlines_in_values=has_lines,
            unexpected_field_behavior=unexpected,
        ),
    )


def _column(table: pa.Table, one: pa.Field, count: int) -> pa.Array:
    at = table.schema.get_field_index(one.name)
    if at < 0:
        return pa.nulls(count, one.type)
    array = table.column(at).combine_chunks()
    if pa.types.is_null(array.type):
        return pa.nulls(count, one.type)
    return conform_array(array, one.type)


def _has_types(found: JsonRows, schema: pa.Schema) -> bool:
    return all(
        one.name in found.columns and found.columns[one.name].type == one.type for one in schema
    )


def _part(found: JsonRows, one: pa.Field, count: int) -> pa.Array:
    if one.name not in found.columns:
        return pa.nulls(count, one.type)
    return conform_array(found.columns[one.name], one.type)


def _has_blank(values: pa.Array) -> bool:
    """A blank value is no line to the reader: beside one with two objects the count would do."""
    return bool(pc.any(pc.match_substring_regex(values, r"^\s*$")).as_py())


def _is_utf8(values: pa.Array) -> bool:
    """Arrow's reader takes any bytes for a string; those who read the table do not."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _without_times(found: pa.Schema, known: pa.Schema) -> pa.Schema:
    """Text instead of the times that Arrow sees, except where the table has times."""
    return pa.schema([_field_as_text(one, _inner(known, one.name)) for one in found])


def _field_as_text(one: pa.Field, known: pa.DataType | None) -> pa.Field:
    return pa.field(one.name, _as_text(one.type, known))


def _as_text(kind: pa.DataType, known: pa.DataType | None) -> pa.DataType:
    if pa.types.is_temporal(kind):
        return kind if known is not None else pa.string()
    if pa.types.is_struct(kind):
        fields = known if known is not None and pa.types.is_struct(known) else ()
        return pa.struct([_field_as_text(one, _inner(fields, one.name)) for one in kind])
    if pa.types.is_list(kind):
        inner = known.value_type if known is not None and pa.types.is_list(known) else None
        return pa.list_(pa.field(kind.value_field.name, _as_text(kind.value_type, inner)))
    return kind


def _inner(fields: Any, name: str) -> pa.DataType | None:
    return next((one.type for one in fields if one.name == name), None)


def _not_json(reason: str) -> Flaw:
    return Flaw(reason=reason, error_class="json.JSONDecodeError")


def _kind(value: object) -> str:
    return {list: "an array", str: "a string", type(None): "null"}.get(type(value), "a number")
