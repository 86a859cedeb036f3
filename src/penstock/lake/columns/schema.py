"""How a table's columns follow its data: new columns, wider types, and what cannot be followed.

Pure functions on Arrow schemas. A column only ever grows: what one version of a program wrote,
the next can read. A type is wider if it holds every value of the other; whole numbers also widen
to double, for JSON does not tell 10 from 10.0, and casting checks that no digit is lost.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from penstock.lake.errors import IncompatibleSchema, LakeError

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


def unify(table: pa.Schema, data: pa.Schema) -> pa.Schema:
    """The table's columns in their order, widened where needed, then the new ones."""
    fields = _unify_fields(list(table), list(data))
    _refuse_names_that_differ_in_case(field.name for field in fields)
    return pa.schema(fields)


def unify_all(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """One schema for all, the first leading."""
    result = pa.schema([])
    for schema in schemas:
        result = unify(result, schema)
    return result


def wider(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """The narrowest type that holds both; IncompatibleSchema (without a column) if none does."""
    if old.equals(new) or pa.types.is_null(new):
        return old
    if pa.types.is_null(old):
        return new
    found = _wider_scalar(old, new)
    if found is None:
        found = _wider_nested(old, new)
    if found is None:
        raise IncompatibleSchema("", str(old), str(new))
    return found


def is_only_growth(table: pa.Schema, target: pa.Schema) -> bool:
    """Whether the table's files stay valid under the target: only columns or fields were added."""
    return all(_keeps(field.type, target.field(field.name).type) for field in table)


def lake_schema(schema: pa.Schema) -> pa.Schema:
    """The data's schema in types that lake tables have; columns of no known type yet are left out.

    All columns may be null, since old rows lack new columns.
    """
    return pa.schema(list(_lake_fields(schema)))


def towards(known: pa.Schema, data: pa.Schema) -> pa.Schema:
    """The data's columns in the table's types where those are wider.

    Where the two do not go together the data's own type stays, for the commit to refuse.
    """
    fields = []
    for field in data:
        at = known.get_field_index(field.name)
        try:
            kind = field.type if at < 0 else wider(field.type, known.field(at).type)
        except IncompatibleSchema:
            kind = field.type
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def conform(batch: pa.RecordBatch, schema: pa.Schema, *, of_table: bool = False) -> pa.RecordBatch:
    """The batch with exactly these columns: cast where the type is wider, null where missing.

    `of_table` says whose values they are, for the message about one that cannot be cast.
    """
    if batch.schema.equals(schema):
        return batch
    arrays = [_conformed(batch, field, of_table) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def differences(table: pa.Schema, target: pa.Schema) -> tuple[list[str], list[str]]:
    """Names of the columns that are new, and of those whose type has changed."""
    added = [field.name for field in target if field.name not in table.names]
    changed = [f.name for f in table if not f.type.equals(target.field(f.name).type)]
    return added, changed


def _unify_fields(old: list[pa.Field], new: list[pa.Field]) -> list[pa.Field]:
    by_name = {field.name: field for field in new}
    known = {field.name for field in old}
    merged = [_unify_field(field, by_name.get(field.name)) for field in old]
    return merged + [pa.field(f.name, f.type) for f in new if f.name not in known]


def _unify_field(old: pa.Field, new: pa.Field | None) -> pa.Field:
    if new is None:
        return pa.field(old.name, old.type)
    try:
        return pa.field(old.name, wider(old.type, new.type))
    except IncompatibleSchema as error:
        if error.column:
            raise error.under(old.name) from None
        raise IncompatibleSchema(old.name, error.old, error.new, why=error.why) from None


def _wider_scalar(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    is_integer, is_float = pa.types.is_integer, pa.types.is_floating
    if is_integer(old) and is_integer(new):
        return old if old.bit_width >= new.bit_width else new
    if is_float(old) and is_float(new):
        return old if old.bit_width >= new.bit_width else new
    if (is_integer(old) or is_float(old)) and (is_integer(new) or is_float(new)):
        return pa.float64()
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return _wider_decimal(old, new)
    if pa.types.is_date(old) and pa.types.is_timestamp(new) and new.tz is None:
        return new
    if pa.types.is_timestamp(old) and pa.types.is_date(new) and old.tz is None:
        return old
    return None


def _wider_decimal(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    scale = max(old.scale, new.scale)
    precision = max(old.precision - old.scale, new.precision - new.scale) + scale
    return pa.decimal128(precision, scale) if precision <= 38 else None


def _wider_nested(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        return pa.struct(_unify_fields(list(old), list(new)))
    if pa.types.is_list(old) and pa.types.is_list(new):
        return pa.list_(_unify_field(_named(old.value_field, "element"), new.value_field))
    if pa.types.is_map(old) and pa.types.is_map(new):
        return pa.map_(wider(old.key_type, new.key_type), wider(old.item_type, new.item_type))
    return None


def _keeps(old: pa.DataType, new: pa.DataType) -> bool:
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        return all(_keeps(field.type, new.field(field.name).type) for field in old)
    if pa.types.is_list(old) and pa.types.is_list(new):
        return _keeps(old.value_type, new.value_type)
    return bool(old.equals(new))


def _lake_fields(fields: Iterable[pa.Field]) -> Iterator[pa.Field]:
    for field in fields:
        kind = _lake_type(field.type)
        if kind is not None:
            yield pa.field(field.name, kind)


def _lake_type(kind: pa.DataType) -> pa.DataType | None:
    """None: nothing but nulls have been seen, so there is no type yet."""
    if pa.types.is_null(kind):
        return None
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if pa.types.is_dictionary(kind):
        return _lake_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_unsigned_integer(kind):
        return pa.decimal128(20, 0) if kind.bit_width == 64 else pa.int64()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_date64(kind):
        return pa.date32()
    if _is_clock(kind):
        return pa.int64()  # Microseconds: no format of tables has durations, not all have times.
    return _lake_nested(kind)


def _is_clock(kind: pa.DataType) -> bool:
    return bool(pa.types.is_duration(kind) or pa.types.is_time(kind))


def _lake_nested(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_struct(kind):
        fields = list(_lake_fields(kind))
        return pa.struct(fields) if fields else None  # Parquet has no struct without fields.
    if pa.types.is_large_list(kind) or pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        element = _lake_type(kind.value_type)
        return pa.list_(pa.field("element", element)) if element is not None else None
    if pa.types.is_map(kind):
        key, item = _lake_type(kind.key_type), _lake_type(kind.item_type)
        return pa.map_(key, item) if key is not None and item is not None else None
    return kind


def _conformed(batch: pa.RecordBatch, field: pa.Field, of_table: bool) -> pa.Array:
    at = batch.schema.get_field_index(field.name)
    if at < 0:
        return pa.nulls(batch.num_rows, field.type)
    try:
        return conform_array(batch.column(at), field.type)
    except pa.ArrowInvalid as error:
        have, wanted = str(batch.schema.field(at).type), str(field.type)
        old, new = (have, wanted) if of_table else (wanted, have)
        raise IncompatibleSchema(field.name, old, new, why=str(error)) from None


def conform_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array in a wider type; Arrow's own cast, which wants the same fields, does the leaves."""
    if array.type.equals(kind):
        return array
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        columns = [_struct_column(array, field) for field in kind]
        # `field()` ignores the struct's own nulls; so they are given back as its mask.
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind) and pa.types.is_list(array.type):
        whole = _unsliced(array)
        values = conform_array(whole.values, kind.value_type)
        mask = whole.is_null() if whole.null_count else None
        return pa.ListArray.from_arrays(whole.offsets, values, type=kind, mask=mask)
    if _is_clock(array.type):
        is_time = pa.types.is_time(array.type)
        array = array.cast(pa.time64("us") if is_time else pa.duration("us"))
    return array.cast(kind)


def _struct_column(array: pa.StructArray, field: pa.Field) -> pa.Array:
    at = array.type.get_field_index(field.name)
    return (
        pa.nulls(len(array), field.type) if at < 0 else conform_array(array.field(at), field.type)
    )


def _unsliced(array: pa.Array) -> pa.Array:
    """Arrow builds lists with nulls only from offsets that do not begin inside another array."""
    return array.take(pa.array(range(len(array)), pa.int64())) if array.offset else array


def _named(field: pa.Field, name: str) -> pa.Field:
    return pa.field(name, field.type)


def _refuse_names_that_differ_in_case(names: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise LakeError(
                f"the columns {other} and {name} differ only in case, which lake tables cannot "
                "hold; rename one of them"
            )
