"""Columns of values into key and value of records.

JSON, CSV and raw bytes are written by Spark itself; Avro and Protobuf on the workers, a batch of
Arrow at a time. A value that the format does not allow fails the query: it is the query's own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from penstock.schemas.errors import EncodeError, SchemaError
from penstock.spark.formats.dead_letter_rows import DEAD_LETTER, in_place_of_rows, topic_of
from penstock.spark.formats.format import Format, ValueEncoder
from penstock.spark.formats.raw_format import Raw

# What a record has besides its value; as columns of the frame they pass as they are.
ASIDE = ("topic", "partition", "headers", DEAD_LETTER)
# Where a record was read. With all of the first three, topic and partition are not where to write.
PLACE = ("topic", "partition", "offset", "timestamp", "timestampType")


def encode(
    frame: DataFrame,
    format: Format,  # noqa: A002  (the word users know from Spark)
    *,
    value: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    key_format: Format | None = None,
    topic: str | None = None,
    schema_topic: str | None = None,
) -> DataFrame:
    """Records of the frame's rows: key, value, and topic, partition, headers where there are any.

    A frame that still says where its records were read (topic, partition and offset) loses that
    and the timestamp: they are neither part of the value nor where to write.

    `value` is a column, or several that become one struct; by default the column `value`, or else
    all columns that are not key, topic, partition or headers. `key` is likewise a column or
    several, by default the column `key` if there is one. With a column `dead_letter` (see
    `decode`), dead letters stand in the place of their rows, and `topic` is that of the others.

    A format with a registry registers its schema here, once, under the subject of `topic`; where
    the topic is said elsewhere, as by an option of the writer, `schema_topic` names it.
    """
    if set(PLACE[:3]) <= set(frame.columns):
        frame = frame.drop(*(name for name in PLACE if name not in _named(value, key)))
    key_columns = key if key is not None else ("key" if "key" in frame.columns else None)
    value_columns = value if value is not None else _value_columns(frame)
    is_good = f.col(DEAD_LETTER).isNull() if DEAD_LETTER in frame.columns else None
    columns = {"value": _column(frame, value_columns, is_good)}
    formats = {"value": format}
    if key_columns is not None:
        columns = {"key": _column(frame, key_columns, is_good), **columns}
        formats["key"] = key_format or Raw()
    aside = [f.col(name) for name in ASIDE if name in frame.columns]
    chosen = frame.select(*(column.alias(name) for name, column in columns.items()), *aside)
    encoded = _encoded(chosen, formats, schema_topic or topic)
    if is_good is not None:
        return in_place_of_rows(encoded, topic)
    return encoded if topic is None else encoded.withColumn("topic", topic_of(encoded, topic))


def _named(*given: str | Sequence[str] | None) -> set[str]:
    """The columns that the caller asked for by name."""
    words = [[one] if isinstance(one, str) else list(one or ()) for one in given]
    return {name for names in words for name in names}


def _value_columns(frame: DataFrame) -> str | list[str]:
    rest = [name for name in frame.columns if name not in ASIDE and name != "key"]
    if rest == ["value"]:
        return "value"
    if not rest:
        raise SchemaError(f"no column is left for the value; there are {', '.join(frame.columns)}")
    return rest


def _column(frame: DataFrame, names: str | Sequence[str], is_good: Column | None) -> Column:
    wanted = [names] if isinstance(names, str) else list(names)
    missing = [name for name in wanted if name not in frame.columns]
    if missing or not wanted:
        raise SchemaError(
            f"there is no column {', '.join(missing)}; there are {', '.join(frame.columns)}"
        )
    quoted = [f.col(f"`{name}`") for name in wanted]
    column = quoted[0] if isinstance(names, str) else f.struct(*quoted)
    # A dead letter has no value to encode; a struct of nulls may not be one of the schema.
    return column if is_good is None else f.when(is_good, column)


def _encoded(frame: DataFrame, formats: Mapping[str, Format], topic: str | None) -> DataFrame:
    types = {name: frame.schema[name].dataType for name in formats}
    left: dict[str, Format] = {}
    for name, given in formats.items():
        one = given.for_writing(types[name], topic, is_key=name == "key")
        expression = one.expression(f.col(name), types[name])
        if expression is None:
            left[name] = one
            one.encoder(types[name])  # What cannot work at all is said here and not by a worker.
        else:
            frame = frame.withColumn(name, expression)
    if not left:
        return frame
    encoding = Encoding(formats=left, types={name: types[name] for name in left})
    return frame.mapInArrow(encoding.run, encoding.schema(frame.schema))


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """What the workers do with every batch."""

    formats: Mapping[str, Format]
    types: Mapping[str, t.DataType]

    def schema(self, given: t.StructType) -> t.StructType:
        """The columns that come out."""
        return t.StructType(
            [
                t.StructField(field.name, t.BinaryType()) if field.name in self.formats else field
                for field in given.fields
            ]
        )

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Encode the batches of one task."""
        encoders = {name: one.encoder(self.types[name]) for name, one in self.formats.items()}
        for batch in batches:
            yield self.encoded(batch, encoders)

    def encoded(
        self, batch: pa.RecordBatch, encoders: Mapping[str, ValueEncoder]
    ) -> pa.RecordBatch:
        """One batch."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name, encoder in encoders.items():
            try:
                columns[name] = encoder.encode(batch.column(name))
            except EncodeError as error:
                words = self.formats[name].name
                raise EncodeError(f"a {name} cannot be encoded as {words}: {error}") from error
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
