"""KAFKA: one bare value, as Kafka's own serializers write it."""

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from penstock.sql.catalog.relations import RelationColumn
from penstock.sql.formats.codec import FormatCodec, FormatMisfit, Values

_FORMS = {"INTEGER": ">i", "BIGINT": ">q", "DOUBLE": ">d"}


def kafka_codec(columns: Sequence[RelationColumn]) -> FormatCodec:
    """The codec of the one column; without a column there are no bytes."""
    if not columns:
        return FormatCodec(lambda values: None, lambda data: [])
    name = str(columns[0].type)
    to_bytes, from_bytes = _functions(name)

    def write(values: Values) -> bytes | None:
        return None if values[0] is None else to_bytes(values[0])

    def read(data: bytes) -> list[Any]:
        try:
            return [from_bytes(data)]
        except (struct.error, UnicodeDecodeError) as error:
            raise FormatMisfit(f"{len(data)} bytes are not a {name}: {error}") from None

    return FormatCodec(write, read)


def _functions(name: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    if name == "STRING":
        return str.encode, lambda data: bytes(data).decode()
    if name == "BYTES":
        return bytes, bytes
    form = _FORMS[name]
    if name == "DOUBLE":  # As in Java there is one NaN, whatever its sign was.
        return _double_bytes, lambda data: struct.unpack(form, data)[0]
    return lambda value: struct.pack(form, value), lambda data: struct.unpack(form, data)[0]


def _double_bytes(value: float) -> bytes:
    return struct.pack(_FORMS["DOUBLE"], value if value == value else math.nan)
