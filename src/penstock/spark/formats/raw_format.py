"""Values without structure: bytes as they are, text, and the numbers of Kafka's own serializers."""

import struct
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as t

from penstock.schemas.errors import DecodeError, SchemaError
from penstock.spark.formats.format import (
    DecodedValues,
    Format,
    ValueDecoder,
    ValueEncoder,
    arrow_type,
    decode_each,
    encode_each,
    rows_of,
)

# As org.apache.kafka.common.serialization writes them: big-endian, without anything around them.
_NUMBERS = {
    "short": (struct.Struct(">h"), t.ShortType()),
    "integer": (struct.Struct(">i"), t.IntegerType()),
    "long": (struct.Struct(">q"), t.LongType()),
    "float": (struct.Struct(">f"), t.FloatType()),
    "double": (struct.Struct(">d"), t.DoubleType()),
}
_TYPES: dict[str, t.DataType] = {
    "binary": t.BinaryType(),
    "string": t.StringType(),
    **{word: kind for word, (_, kind) in _NUMBERS.items()},
}


@dataclass(frozen=True, slots=True)
class Raw(Format):
    """Bytes as they are, or `Raw("string")`, `Raw("long")`, ... for Kafka's own serializers."""

    kind: str = "binary"

    def __post_init__(self) -> None:
        if self.kind not in _TYPES:
            raise SchemaError(f"Raw({self.kind!r}) is none of {', '.join(_TYPES)}")

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.kind

    def spark_type(self) -> t.DataType:
        return _TYPES[self.kind]

    def decoder(self) -> ValueDecoder:
        return RawDecoder(self.kind)

    def expression(self, value: Column, spark_type: t.DataType) -> Column | None:
        if self.kind in _NUMBERS:
            return None
        if self.kind == "binary" and not isinstance(spark_type, (t.BinaryType, t.StringType)):
            raise SchemaError(
                f"a {spark_type.simpleString()} column is not bytes; choose a format for it"
            )
        return value.cast(self.kind).cast("binary")

    def encoder(self, spark_type: t.DataType) -> ValueEncoder:
        if spark_type != _TYPES[self.kind]:
            raise SchemaError(
                f"Raw({self.kind!r}) takes a column of type {self.spark_type().simpleString()}, "
                f"not {spark_type.simpleString()}"
            )
        return RawEncoder(self.kind)


class RawDecoder:
    """Decodes batches of bytes, text or numbers."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def decode(self, values: pa.Array) -> DecodedValues:
        """All values of a batch."""
        if self._kind == "binary":
            return DecodedValues(values, [])
        target = arrow_type(_TYPES[self._kind])
        if self._kind != "string":
            return decode_each(values, self._number, target, target)
        try:
            return DecodedValues(values.cast(pa.string()), [])
        except pa.ArrowInvalid:
            return decode_each(values, _text, target, target)

    def _number(self, data: bytes) -> object:
        layout = _NUMBERS[self._kind][0]
        if len(data) != layout.size:
            raise DecodeError(f"a {self._kind} has {layout.size} bytes, this value {len(data)}")
        return layout.unpack(data)[0]


class RawEncoder:
    """Encodes batches of numbers."""

    def __init__(self, kind: str) -> None:
        self._pack = _NUMBERS[kind][0].pack

    def encode(self, values: pa.Array) -> pa.Array:
        """All values of a batch."""
        return encode_each(rows_of(values), self._pack)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"this is not UTF-8: {error.reason} at byte {error.start}") from error
