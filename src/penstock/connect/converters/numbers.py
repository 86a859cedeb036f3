"""The converters of bytes, numbers and booleans: one value each, in the bytes of Kafka's serdes."""

import struct
from typing import Any, ClassVar

from penstock.connect.converters.settings import CONVERTER_TYPE
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import Converter, SchemaAndValue
from penstock.connect.values.schema import (
    OPTIONAL_BOOLEAN_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_FLOAT32_SCHEMA,
    OPTIONAL_FLOAT64_SCHEMA,
    OPTIONAL_INT16_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    Schema,
)
from penstock.connect.values.struct import check_value


class _PlainConverter(Converter):
    """One kind of value."""

    SCHEMA: ClassVar[Schema]

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(CONVERTER_TYPE)

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not self.SCHEMA.type:
            raise DataError(f"Invalid schema type for {type(self).__name__}: {schema.type}")
        if value is None:
            return None
        check_value(self.SCHEMA, value)
        return self._packed(value)

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return self.SCHEMA, None if data is None else self._unpacked(bytes(data))

    def _packed(self, value: Any) -> bytes:
        return bytes(value)

    def _unpacked(self, data: bytes) -> Any:
        return data


class ByteArrayConverter(_PlainConverter):
    """Bytes as they are."""

    SCHEMA = OPTIONAL_BYTES_SCHEMA


class BooleanConverter(_PlainConverter):
    """One byte, 1 or 0."""

    SCHEMA = OPTIONAL_BOOLEAN_SCHEMA

    def _packed(self, value: Any) -> bytes:
        return b"\x01" if value else b"\x00"

    def _unpacked(self, data: bytes) -> bool:
        if data not in (b"\x00", b"\x01"):
            raise DataError("Failed to deserialize: a boolean is one byte, 0 or 1")
        return data == b"\x01"


class _NumberConverter(_PlainConverter):
    LAYOUT: ClassVar[struct.Struct]

    def _packed(self, value: Any) -> bytes:
        try:
            return self.LAYOUT.pack(value)
        except (struct.error, OverflowError) as error:
            raise DataError(f"Failed to serialize: {error}") from None

    def _unpacked(self, data: bytes) -> Any:
        if len(data) != self.LAYOUT.size:
            raise DataError(
                f"Failed to deserialize: {len(data)} bytes where there should be {self.LAYOUT.size}"
            )
        return self.LAYOUT.unpack(data)[0]


class ShortConverter(_NumberConverter):
    """Two bytes."""

    SCHEMA, LAYOUT = OPTIONAL_INT16_SCHEMA, struct.Struct(">h")


class IntegerConverter(_NumberConverter):
    """Four bytes."""

    SCHEMA, LAYOUT = OPTIONAL_INT32_SCHEMA, struct.Struct(">i")


class LongConverter(_NumberConverter):
    """Eight bytes."""

    SCHEMA, LAYOUT = OPTIONAL_INT64_SCHEMA, struct.Struct(">q")


class FloatConverter(_NumberConverter):
    """Four bytes of a float."""

    SCHEMA, LAYOUT = OPTIONAL_FLOAT32_SCHEMA, struct.Struct(">f")


class DoubleConverter(_NumberConverter):
    """Eight bytes of a float."""

    SCHEMA, LAYOUT = OPTIONAL_FLOAT64_SCHEMA, struct.Struct(">d")
