"""JSON values: a whole batch by pyarrow's parser, one by one only where that finds a bad record.

pyarrow reads many documents out of one buffer, about ten times faster than Python's parser reads
them alone, but does not say which one is bad. So each value is put into a list inside an object of
its own; if the buffer then has as many rows as there are values and every list one element, rows
and values are the same. Anything else is decoded value by value, with a reason for each bad one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from penstock.schemas.errors import DecodeError, SchemaError
from penstock.schemas.registry_client import RegistryClient
from penstock.schemas.serializers.json_schema import new_json_schema
from penstock.schemas.wire_header import HEADER_BYTES, read_header, write_header
from penstock.spark.formats.format import (
    DecodedValues,
    DecodeFailure,
    Format,
    ValueDecoder,
    arrow_type,
    decode_each,
    spark_type_of,
)
from penstock.spark.formats.json_schema_types import json_schema_of
from penstock.spark.formats.json_values import converter, infer, loads
from penstock.spark.formats.registering import registered_id, subject_of

SAMPLE_ROWS = 1_000
_ALONE_MAX = 64  # So few values are not worth another attempt to read them together.
_ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
WRITE_OPTIONS = {
    "timestampFormat": f"{_ISO}xxx",
    "timestampNTZFormat": _ISO,
    "dateFormat": "yyyy-MM-dd",
}
# Types that pyarrow's parser reads exactly as `json_values` does.
_TOGETHER = (
    t.BooleanType,
    t.ByteType,
    t.ShortType,
    t.IntegerType,
    t.LongType,
    t.DoubleType,
    t.StringType,
)


@dataclass(frozen=True, slots=True)
class Json(Format):
    """JSON text: `Json("id long, at timestamp")`.

    Without a schema, the first records of a batch DataFrame tell it; for a stream, give
    `Json(infer_json(batch_frame))`. With `framed`, values have the five-byte header of a schema
    registry; `schema_id` is what to write into it.

    With `registry` values have the header, and the schema of what is written is registered first,
    under `subject` or the topic's own: `json_schema`, or what the column's type says as JSON
    Schema. With `register=False` it must be there.
    """

    schema: t.DataType | str | None = None
    framed: bool = False
    schema_id: int | None = None
    null_fields: bool = False  # Whether fields that are null are written.
    registry: RegistryClient | None = None
    json_schema: str | Mapping[str, Any] | None = None
    subject: str | None = None
    register: bool = True
    name = "JSON"

    def __post_init__(self) -> None:
        if self.registry is not None:
            object.__setattr__(self, "framed", True)
        elif self.json_schema is not None:
            raise SchemaError("json_schema means nothing without registry=...")

    def spark_type(self) -> t.DataType:
        if self.schema is None:
            raise SchemaError(
                "Json() learns its schema from a batch DataFrame; for a stream, give one: "
                "Json('id long, name string') or Json(infer_json(some_batch_frame))"
            )
        return spark_type_of(self.schema)

    def bound(self, frame: DataFrame, column: str) -> "Json":
        if self.schema is None and not frame.isStreaming:
            return replace(self, schema=infer_json(frame, column, framed=self.framed))
        return replace(self, schema=self.spark_type())

    def decoder(self) -> ValueDecoder:
        return JsonDecoder(self.spark_type(), framed=self.framed)

    def for_writing(self, spark_type: t.DataType, topic: str | None, *, is_key: bool) -> "Json":
        if self.registry is None or self.schema_id is not None:
            return self
        schema = self.json_schema
        if schema is None:
            schema = json_schema_of(spark_type, null_fields=self.null_fields)
        schema_id = registered_id(
            self.registry,
            new_json_schema(schema, ()),
            subject_of(self.subject, topic, is_key=is_key),
            register=self.register,
        )
        return replace(self, schema_id=schema_id)

    def expression(self, value: Column, spark_type: t.DataType) -> Column:
        if not isinstance(spark_type, (t.StructType, t.ArrayType, t.MapType)):
            raise SchemaError(
                f"a JSON value is made of a struct, array or map column, not of "
                f"{spark_type.simpleString()}"
            )
        nulls = "false" if self.null_fields else "true"
        text = f.to_json(value, {**WRITE_OPTIONS, "ignoreNullFields": nulls}).cast("binary")
        if not self.framed:
            return text
        if self.schema_id is None:
            raise SchemaError("to write framed JSON, give the id of its schema: schema_id=...")
        return f.concat(f.lit(write_header(self.schema_id)), text)


def infer_json(
    frame: DataFrame, column: str = "value", *, rows: int = SAMPLE_ROWS, framed: bool = False
) -> t.DataType:
    """The type that the first records of a batch DataFrame need; broken ones are passed over."""
    sample = frame.select(f.col(column).cast("binary")).where(f.col(column).isNotNull())
    values = [bytes(row[0]) for row in sample.limit(rows).collect()]
    found = []
    for data in values:
        try:
            found.append(loads(data[_payload_at(data, framed) :]))
        except DecodeError:
            continue  # Decoding will meet it again, and do what the user chose.
    if not found:
        raise SchemaError(f"no JSON among {len(values)} records to infer a schema from")
    return infer(found)


class JsonDecoder:
    """Decodes batches of JSON."""

    def __init__(self, spark_type: t.DataType, *, framed: bool) -> None:
        self._target = arrow_type(spark_type)
        self._framed = framed
        self._convert = converter(spark_type)
        self._rows = _row_schema(self._target) if _reads_together(spark_type) else None

    def decode(self, values: pa.Array) -> DecodedValues:
        """All values of a batch."""
        failures: list[DecodeFailure] = []
        if self._framed:
            values, failures = _unframed(values)
        decoded = self._values(values)
        return DecodedValues(decoded.array, sorted(failures + decoded.failures))

    def _values(self, values: pa.Array) -> DecodedValues:
        """Together; around a bad record in ever smaller parts, so that it slows few others."""
        array = None if self._rows is None else read_together(values, self._rows)
        if array is not None:
            return DecodedValues(array.cast(self._target), [])
        if self._rows is None or len(values) <= _ALONE_MAX:
            return decode_each(values, self._one, self._target, self._target)
        middle = len(values) // 2
        one, other = self._values(values[:middle]), self._values(values[middle:])
        moved = [failure._replace(row=failure.row + middle) for failure in other.failures]
        return DecodedValues(pa.concat_arrays([one.array, other.array]), one.failures + moved)

    def _one(self, data: bytes) -> object:
        return self._convert(loads(data))


def read_together(values: pa.Array, rows: pa.Schema) -> pa.Array | None:
    """The values by pyarrow's parser; None if there is a bad one among them."""
    from pyarrow import json as arrow_json

    if len(values) == 0:
        return pa.array([], rows.field("v").type.value_type)
    buffer = _lines(values)
    options = arrow_json.ParseOptions(explicit_schema=rows, unexpected_field_behavior="ignore")
    # In one block, since a document may not lie across two.
    reading = arrow_json.ReadOptions(use_threads=False, block_size=buffer.size + 1)
    try:
        values.cast(pa.string())  # The parser takes any bytes for a string; Spark does not.
        table = arrow_json.read_json(
            pa.BufferReader(buffer), read_options=reading, parse_options=options
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    lists = table.column("v").combine_chunks()
    if len(lists) != len(values) or not _all_single(lists):
        return None
    return lists.flatten()


def _all_single(lists: pa.Array) -> bool:
    lengths = pc.list_value_length(lists)
    return lists.null_count == 0 and cast(bool, pc.all(pc.equal(lengths, 1)).as_py())


def _lines(values: pa.Array) -> pa.Buffer:
    """One object a line, with a value inside each."""
    given = pc.coalesce(values, pa.scalar(b"null", pa.binary()))
    lines = pc.binary_join_element_wise(
        pa.scalar(b'{"v":[', pa.binary()), given, pa.scalar(b"]}\n", pa.binary()), b""
    )
    # The array's bytes follow each other without a gap: they are the text.
    return lines.buffers()[2]


def _row_schema(target: pa.DataType) -> pa.Schema:
    return pa.schema([("v", pa.list_(target))])


def _reads_together(spark_type: t.DataType) -> bool:
    if isinstance(spark_type, t.StructType):
        names = [field.name for field in spark_type.fields]
        unique = len(set(names)) == len(names) > 0
        return unique and all(_reads_together(field.dataType) for field in spark_type.fields)
    if isinstance(spark_type, t.ArrayType):
        return _reads_together(spark_type.elementType)
    return type(spark_type) in _TOGETHER


def _unframed(values: pa.Array) -> tuple[pa.Array, list[DecodeFailure]]:
    failures: list[DecodeFailure] = []
    out: list[bytes | None] = []
    for row, data in enumerate(values.to_pylist()):
        try:
            out.append(None if data is None else data[_payload_at(data, True) :])
        except DecodeError as error:
            out.append(None)
            failures.append(DecodeFailure.of(row, error))
    return pa.array(out, pa.binary()), failures


def _payload_at(data: bytes, framed: bool) -> int:
    if not framed:
        return 0
    read_header(data)
    return HEADER_BYTES
