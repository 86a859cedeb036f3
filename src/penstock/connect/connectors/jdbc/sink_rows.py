"""A record as a row: columns of its key and of its value, or the key of a row to delete. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from penstock.connect.connectors.jdbc.addresses import Product
from penstock.connect.connectors.jdbc.dialects import NewColumn
from penstock.connect.connectors.jdbc.sink_settings import KeyMode
from penstock.connect.errors.kinds import DataError
from penstock.connect.records import SinkRecord
from penstock.connect.values.schema import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
)
from penstock.connect.values.struct import StructValue

_KAFKA_FIELDS = ("__connect_topic", "__connect_partition", "__connect_offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
    """What is to be written; a deletion has the columns of the key alone."""

    columns: tuple[NewColumn, ...]
    values: tuple[Any, ...]
    is_deletion: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(one.name for one in self.columns)

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the key's columns."""
        return tuple(one.name for one in self.columns if one.is_key)

    def value(self, name: str) -> Any:
        """The value of a column."""
        return self.values[self.names.index(name)]


def row_of(record: SinkRecord, settings: Mapping[str, Any], product: Product) -> TargetRow:
    """DataError for a record that makes none."""
    mode = KeyMode(settings["pk.mode"])
    key = _key(record, mode, settings["pk.fields"])
    if record.value is None:
        if not settings["delete.enabled"]:
            raise DataError("The record has no value, and delete.enabled is false.")
        return _row(key, {}, product, is_deletion=True)
    if not isinstance(record.value, StructValue):
        raise DataError("The record's value is no struct with a schema, so it has no columns.")
    wanted = set(settings["fields.whitelist"])
    fields = {
        one.name: (one.schema, value)
        for one, value in record.value.items()
        if one.name not in key and (not wanted or one.name in wanted)
    }
    return _row(key, fields, product)


_Fields = dict[str, tuple[Schema, Any]]


def _row(
    key: _Fields, fields: _Fields, product: Product, *, is_deletion: bool = False
) -> TargetRow:
    columns = [NewColumn(name=n, schema=s, is_key=True) for n, (s, _) in key.items()]
    columns += [NewColumn(name=n, schema=s, is_key=False) for n, (s, _) in fields.items()]
    values = [_written(value, product) for _, value in (*key.values(), *fields.values())]
    return TargetRow(columns=tuple(columns), values=tuple(values), is_deletion=is_deletion)


def _key(record: SinkRecord, mode: KeyMode, names: Sequence[str]) -> _Fields:
    if mode is KeyMode.NONE:
        return {}
    if mode is KeyMode.KAFKA:
        return _kafka_key(record, names or _KAFKA_FIELDS)
    schema, value = (
        (record.key_schema, record.key)
        if mode is KeyMode.RECORD_KEY
        else (record.value_schema, record.value)
    )
    if isinstance(value, StructValue):
        chosen = names or [one.name for one in value.schema.fields]
        found = {one.name: (one.schema, part) for one, part in value.items()}
        missing = [name for name in chosen if name not in found]
        if missing:
            raise DataError(f"The field {missing[0]} of pk.fields is not in the record.")
        return {name: found[name] for name in chosen}
    if mode is KeyMode.RECORD_VALUE or value is None or schema is None:
        raise DataError(f"pk.mode={mode} finds no fields in the record.")
    if len(names) != 1:
        raise DataError("A key that is no struct needs exactly one name in pk.fields.")
    return {names[0]: (schema, value)}


def _kafka_key(record: SinkRecord, names: Sequence[str]) -> _Fields:
    topic, partition, offset = place_of(record)
    schemas = (STRING_SCHEMA, INT32_SCHEMA, INT64_SCHEMA)
    values = (topic, partition, offset)
    return {name: (s, v) for name, s, v in zip(names, schemas, values, strict=True)}


def place_of(record: SinkRecord) -> tuple[str, int, int]:
    """Where the record is in Kafka, before transforms."""
    partition = record.partition if record.original_partition is None else record.original_partition
    offset = record.offset if record.original_offset is None else record.original_offset
    return record.original_topic or record.topic, partition or 0, offset


def _written(value: Any, product: Product) -> Any:
    if isinstance(value, StructValue | list | dict):
        raise DataError("A struct, list or map has no column; the transform Flatten may help.")
    if product is Product.SQLITE:
        return _for_sqlite(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _for_sqlite(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
