"""JSON values into columns, by Arrow's own reader, with a schema that grows as fields appear.

The reader takes a whole batch at once; Python looks at single records only to name the one that
is wrong. Times in JSON are strings and stay strings unless a schema is given: what looks like a
time in one record need not in the next.
"""

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from penstock.lake.errors import IncompatibleSchema, LakeError
from penstock.lake.schema import conform, lake_schema, unify

Complain = Callable[[int, str], LakeError]  # The row's number and the reason.

_EMPTY = b"{}"


class GrowingJson:
    """Decodes batch after batch; the fields known so far lead the types of the next."""

    def __init__(self, known: pa.Schema) -> None:
        self._schema = known

    def decode(self, values: pa.Array, complain: Complain) -> pa.StructArray:
        """A struct per value; a missing value (a tombstone) gives one of nulls."""
        before = self._schema
        try:
            found, count = self._read(values)
        except (pa.ArrowInvalid, IncompatibleSchema) as error:
            raise self._explained(values, complain, error) from None
        if count != len(values) or _has_blank(values):
            self._schema = before  # What the bad value has brought along is no field of ours.
            at, reason = _first_bad(values) or (0, "it is not one JSON object")
            raise complain(at, reason)
        if not found.num_columns:  # Nothing but nulls; a table without columns has no rows.
            return _nulls(len(values), self._schema)
        return found.combine_chunks().to_batches()[0].to_struct_array()

    def _read(self, values: pa.Array) -> tuple[pa.Table, int]:
        """The columns, and how many values there were."""
        document = _document(values)
        has_lines = bool(pc.any(pc.match_substring(values, "\n")).as_py())
        try:
            table = _parsed(document, self._schema, has_lines, unexpected="infer")
        except pa.ArrowInvalid:
            # A known field has a new type: look at this batch for itself, then compare.
            table = _parsed(document, pa.schema([]), has_lines, unexpected="infer")
        return self._grown(table, document, has_lines), table.num_rows

    def _grown(self, table: pa.Table, document: pa.Buffer, has_lines: bool) -> pa.Table:
        """Take new fields and wider types into the schema, and the table to it."""
        found = lake_schema(_without_times(table.schema))
        wanted = unify(self._schema, found)
        if not wanted.equals(self._schema) or not table.schema.equals(wanted):
            if not _has_times(table.schema):
                table = _to(table, wanted)
            else:
                table = _parsed(document, wanted, has_lines, unexpected="ignore")
            self._schema = wanted
        return table

    def _explained(self, values: pa.Array, complain: Complain, error: Exception) -> LakeError:
        """Which record it was: one that is no JSON object, or whose fields do not fit."""
        found = _first_bad(values)
        if found is not None:
            return complain(*found)
        known = self._schema
        for at, value in enumerate(values.to_pylist()):
            try:
                known = unify(known, _schema_of(value))
            except IncompatibleSchema as conflict:
                where = str(complain(at, "")).partition(" cannot")[0]
                return conflict.at(where)
        if isinstance(error, IncompatibleSchema):
            return error
        return complain(0, f"Arrow's JSON reader refuses this batch: {error}")


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


def _to(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.num_columns == 0:
        return table
    batches = [conform(batch, schema) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, schema=schema)


def _has_blank(values: pa.Array) -> bool:
    """A blank value is no line to the reader: beside one with two objects the count would do."""
    return bool(pc.any(pc.match_substring_regex(values, r"^\s*$")).as_py())


def _nulls(count: int, schema: pa.Schema) -> pa.StructArray:
    arrays = [pa.nulls(count, field.type) for field in schema]
    if not arrays:
        return pa.array([{}] * count, pa.struct([]))
    return pa.StructArray.from_arrays(arrays, fields=list(schema))


def _without_times(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _as_text(field.type)) for field in schema])


def _as_text(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _as_text(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _as_text(kind.value_type)))
    return kind


def _has_times(schema: pa.Schema) -> bool:
    return any(not field.type.equals(_as_text(field.type)) for field in schema)


def undecodable_rows(values: pa.Array) -> dict[int, str]:
    """The values that are not JSON objects, and why."""
    reasons = ((at, _reason(value)) for at, value in enumerate(values.to_pylist()))
    return {at: reason for at, reason in reasons if reason is not None}


def _first_bad(values: pa.Array) -> tuple[int, str] | None:
    for at, value in enumerate(values.to_pylist()):
        reason = _reason(value)
        if reason is not None:
            return at, reason
    return None


def _reason(value: bytes | None) -> str | None:
    """Why a value is no JSON object; None if it is one."""
    if value is None:
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    return None if isinstance(found, dict) else f"it is {_kind(found)}, not a JSON object"


def _schema_of(value: bytes | None) -> pa.Schema:
    found = json.loads(value) if value is not None else {}
    return pa.schema([pa.field(name, _type_of(field)) for name, field in found.items()])


def _type_of(value: object) -> pa.DataType:
    if isinstance(value, dict):
        return pa.struct([pa.field(name, _type_of(field)) for name, field in value.items()])
    if isinstance(value, list):
        kinds = [pa.schema([pa.field("element", _type_of(one))]) for one in value]
        merged = pa.schema([pa.field("element", pa.null())])
        for kind in kinds:
            merged = unify(merged, kind)
        return pa.list_(merged.field(0))
    return _SCALARS[type(value)]


_SCALARS = {
    type(None): pa.null(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


def _kind(value: object) -> str:
    return {list: "an array", str: "a string", type(None): "null"}.get(type(value), "a number")
