"""Which columns a frame must have to be written to topics: the rules of Spark's Kafka sink.

`value` is needed; `key`, `headers`, `partition` and `topic` are optional, and the option `topic`
wins over the column. With `includeTimestamp`, which is ours, `timestamp` is each record's own time
in milliseconds. Other columns are refused by nobody and written by nobody, as in Spark.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.spark.options import OptionError, WriteOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TEXT = ("string", "binary")
_HEADERS = "array<struct<key:string,value:binary>>"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordColumns:
    """Where in a row each part of a record stands; None: nowhere."""

    value: int
    key: int | None
    headers: int | None
    partition: int | None
    topic: int | None
    timestamp: int | None = None


def columns_of(schema: "StructType", options: WriteOptions) -> RecordColumns:
    """Find and check the columns; OptionError says what is missing or of the wrong type."""
    topic = None if options.topic is not None else _find(schema, "topic", ("string",))
    if options.topic is None and topic is None:
        raise OptionError(
            "topic option required when no 'topic' attribute is present. "
            "Use the topic option for setting a topic."
        )
    key = _find(schema, "key", _TEXT)
    value = _find(schema, "value", _TEXT)
    if value is None:
        raise OptionError("Required attribute 'value' not found")
    return RecordColumns(
        value=value,
        key=key,
        headers=_find(schema, "headers", (_HEADERS,)) if options.include_headers else None,
        partition=_find(schema, "partition", ("int",)),
        topic=topic,
        timestamp=_timestamp(schema) if options.include_timestamp else None,
    )


def _timestamp(schema: "StructType") -> int:
    found = _find(schema, "timestamp", ("bigint",))
    if found is None:
        raise OptionError("includeTimestamp: required attribute 'timestamp' not found")
    return found


def _find(schema: "StructType", name: str, allowed: tuple[str, ...]) -> int | None:
    for index, column in enumerate(schema.fields):
        if column.name != name:
            continue
        found = column.dataType.simpleString()
        if found not in allowed and not (
            found.startswith(("string collate", "varchar", "char")) and "string" in allowed
        ):
            raise OptionError(
                f"{name} attribute unsupported type {found}. "
                f"{name} must be a(n) {' or '.join(allowed)}"
            )
        return index
    return None
