"""Where a row goes: the partition folders of a table, and the names of the files in them.

A file's name tells the query, batch and task it is from, so that leftovers of a batch that never
was committed can be told from data.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.lake.errors import LakeError
from penstock.lake.spec import PartitionColumn

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # The name that all readers take for NULL.
WHOLE = "data"  # The one folder of a Parquet table without partitions.

# Readers that follow the Hive convention unescape %XX in these folders.
_KEPT_AS_THEY_ARE = " !$&()+,;@[]{}~"
_NAME = re.compile(r"part-([0-9a-f]{8})-(\d{10})-(\d{5})-.*")

Values = tuple[str | None, ...]  # Of the partition columns, in their order, as text.


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The query and batch a file is from."""

    query: str
    batch_id: int


def file_name(query_id: str, batch_id: int, task: int, number: int, attempt: str) -> str:
    """`attempt` keeps a repeated try from writing into the files of one that was committed."""
    return f"part-{query_tag(query_id)}-{batch_id:010d}-{task:05d}-{number:03d}-{attempt}.parquet"


def query_tag(query_id: str) -> str:
    """The first eight hex digits of the query's id."""
    return query_id.replace("-", "")[:8]


def origin_of(name: str) -> Origin | None:
    """None: not a file of ours, or one that holds the rows of several batches."""
    found = _NAME.fullmatch(name)
    return Origin(query=found[1], batch_id=int(found[2])) if found else None


def folder(columns: tuple[PartitionColumn, ...], values: Values) -> str:
    """`date=2026-01-31/country=de`; empty without partitions."""
    pairs = zip(columns, values, strict=True)
    return "/".join(f"{column.name}={_escaped(value)}" for column, value in pairs)


def split(
    batch: pa.RecordBatch, columns: tuple[PartitionColumn, ...]
) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """The batch cut by its partition values; rows keep their order within each."""
    if not columns:
        yield (), batch
        return
    keys = [_key(batch, column) for column in columns]
    codes, values = _codes(keys)
    if len(values) == 1:
        yield values[0], batch
        return
    for code, value in enumerate(values):
        yield value, batch.filter(pa.array(codes == code))


def with_partition_columns(
    batch: pa.RecordBatch, columns: tuple[PartitionColumn, ...]
) -> pa.RecordBatch:
    """The batch with its date columns filled in from their timestamps."""
    for column in columns:
        if column.is_date:
            batch = batch.append_column(pa.field(column.name, pa.date32()), _key(batch, column))
    return batch


def partition_types(schema: pa.Schema, columns: tuple[PartitionColumn, ...]) -> list[pa.Field]:
    """The partition columns as the table has them; LakeError where that cannot be."""
    return [_partition_field(schema, column) for column in columns]


def _partition_field(schema: pa.Schema, column: PartitionColumn) -> pa.Field:
    at = schema.get_field_index(column.source)
    if at < 0:
        raise LakeError(
            f"partition_by names {column.source}, but the rows have {', '.join(schema.names)}"
        )
    kind = schema.field(at).type
    if column.is_date:
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise LakeError(f"date({column.source}) needs a timestamp; the column is {kind}")
        if column.name in schema.names:
            raise LakeError(
                f"the rows have a column {column.name} already; "
                f"write date({column.source}) as another_name"
            )
        return pa.field(column.name, pa.date32())
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date(kind)):
        raise LakeError(
            f"partition_by names {column.name}, which is {kind}; "
            "partitions can be whole numbers, strings and dates"
        )
    return pa.field(column.name, kind)


def _key(batch: pa.RecordBatch, column: PartitionColumn) -> pa.Array:
    at = batch.schema.get_field_index(column.source)
    if at < 0:
        # The records of this batch lack the column; others of the table may have it.
        return pa.nulls(batch.num_rows, pa.date32() if column.is_date else pa.string())
    array = batch.column(at)
    if not column.is_date:
        return array
    if pa.types.is_timestamp(array.type):
        # The days are counted in UTC, whatever the zone the timestamps are shown in.
        array = array.cast(pa.timestamp("us"), safe=False)
        return pc.floor_temporal(array, unit="day").cast(pa.date32())
    return array.cast(pa.date32())


def _codes(keys: list[pa.Array]) -> tuple[np.ndarray, list[Values]]:
    """For each row the number of its combination of values, and the combinations."""
    if len(keys[0]) and all(_is_constant(key) for key in keys):
        return np.zeros(len(keys[0]), np.int64), [tuple(_text(key[0].as_py()) for key in keys)]
    combined = np.zeros(len(keys[0]), np.int64)
    dictionaries = []
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        combined = combined * len(encoded.dictionary) + encoded.indices.to_numpy()
        dictionaries.append(encoded.dictionary.to_pylist())
    found, codes = np.unique(combined, return_inverse=True)
    return codes, [_combination(int(number), dictionaries) for number in found]


def _is_constant(key: pa.Array) -> bool:
    if key.null_count:
        return bool(key.null_count == len(key))
    ends = pc.min_max(key)
    return bool(ends["min"] == ends["max"])


def _combination(number: int, dictionaries: list[list[object]]) -> Values:
    values: list[str | None] = []
    for dictionary in reversed(dictionaries):
        number, at = divmod(number, len(dictionary))
        values.append(_text(dictionary[at]))
    return tuple(reversed(values))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _escaped(value: str | None) -> str:
    # An empty string cannot be told from NULL in a folder's name; all engines write it as NULL.
    return quote(value, safe=_KEPT_AS_THEY_ARE) if value else NO_VALUE
