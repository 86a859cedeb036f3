"""Rows as an Arrow table, each column by its type in SQL."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.sql.types.kinds import ArrayOf, DataType, DecimalOf, MapOf, StructOf, kind_name

if TYPE_CHECKING:
    from penstock.sql.client.rows import ResultTable

_PLAIN = {
    "BOOLEAN": pa.bool_(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),
    "TIMESTAMP": pa.timestamp("ms", tz="UTC"),
}


def arrow_type(kind: DataType | None) -> Any:
    """Arrow's type for one of SQL's; what is unknown is left for Arrow to guess."""
    match kind:
        case ArrayOf():
            return pa.list_(arrow_type(kind.item) or pa.null())
        case MapOf():
            return pa.map_(arrow_type(kind.key) or pa.null(), arrow_type(kind.value) or pa.null())
        case StructOf():
            return pa.struct([(name, arrow_type(one) or pa.null()) for name, one in kind.fields])
        case DecimalOf(precision, scale):
            wide = pa.decimal128 if precision <= 38 else pa.decimal256
            return wide(precision, scale)
    return _PLAIN.get(kind_name(kind))


def arrow_table(table: "ResultTable") -> pa.Table:
    """The table, column by column."""
    columns = [
        pa.array([_entries(row[at], column.kind) for row in table.rows], arrow_type(column.kind))
        for at, column in enumerate(table.columns)
    ]
    return pa.Table.from_arrays(columns, names=table.names)


def _entries(value: Any, kind: DataType | None) -> Any:
    """Arrow takes a map as pairs, wherever it lies."""
    if value is None:
        return None
    match kind:
        case MapOf():
            return [(k, _entries(v, kind.value)) for k, v in value.items()]
        case ArrayOf():
            return [_entries(one, kind.item) for one in value]
        case StructOf():
            return {name: _entries(value.get(name), one) for name, one in kind.fields}
    return value
