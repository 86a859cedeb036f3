"""How keys and values are written: Kafka's own formats, JSON, and windowed keys.

A serde maps None to None, for a tombstone has no bytes.
"""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.streams.values import column_types
from penstock.streams.values.column_types import ColumnType
from penstock.streams.values.records import TimeWindow, Windowed

T = TypeVar("T")


class SerdeError(ValueError):
    """Bytes that are not of the serde's format, or a value the format cannot hold."""


@dataclass(frozen=True, slots=True)
class Serde(Generic[T]):
    """A name and the two directions."""

    name: str
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]
    type: ColumnType | None = None  # None: expressions cannot look into its values.

    def serialize(self, value: T | None) -> bytes | None:
        """The value's bytes."""
        if value is None:
            return None
        try:
            return self.to_bytes(value)
        except (TypeError, ValueError, AttributeError, struct.error) as error:
            raise SerdeError(f"{value!r} is not for the {self.name} serde: {error}") from error

    def deserialize(self, data: bytes | None) -> T | None:
        """The value of the bytes."""
        if data is None:
            return None
        try:
            value: T = self.from_bytes(data)
        except (TypeError, ValueError, struct.error) as error:
            raise SerdeError(f"{data!r} is not of the {self.name} serde: {error}") from error
        return value


def _packed(name: str, form: str, kind: ColumnType) -> Serde[Any]:
    """By the form's text: a serde travels to workers, and struct.Struct cannot."""
    return Serde(
        name,
        lambda value: struct.pack(form, value),
        lambda data: struct.unpack(form, data)[0],
        kind,
    )


def _long_bytes(value: int) -> bytes:
    return struct.pack(">q", value)


def _long_of(data: bytes) -> int:
    (value,) = struct.unpack(">q", data)
    return int(value)


def _to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


STRING: Serde[str] = Serde("string", str.encode, bytes.decode, column_types.STRING)
LONG: Serde[int] = _packed("long", ">q", column_types.LONG)
INTEGER: Serde[int] = _packed("integer", ">i", column_types.LONG)
DOUBLE: Serde[float] = _packed("double", ">d", column_types.DOUBLE)
BYTES: Serde[bytes] = Serde("bytes", bytes, bytes, column_types.BYTES)
JSON: Serde[Any] = Serde("JSON", _to_json, json.loads)


def time_windowed(inner: Serde[Any], *, size_ms: int) -> Serde[Windowed]:
    """Kafka's time-windowed key: the key's bytes and the start; the reader knows the size."""

    def write(value: Windowed) -> bytes:
        return (inner.serialize(value.key) or b"") + _long_bytes(value.window.start_ms)

    def read(data: bytes) -> Windowed:
        start_ms = _long_of(data[-8:])
        return Windowed(inner.deserialize(data[:-8]), TimeWindow(start_ms, start_ms + size_ms))

    return Serde("time-windowed", write, read)


def session_windowed(inner: Serde[Any]) -> Serde[Windowed]:
    """Kafka's session key: the key's bytes, the end, the start."""

    def write(value: Windowed) -> bytes:
        window = value.window
        key = inner.serialize(value.key) or b""
        return key + _long_bytes(window.end_ms) + _long_bytes(window.start_ms)

    def read(data: bytes) -> Windowed:
        end_ms, start_ms = _long_of(data[-16:-8]), _long_of(data[-8:])
        return Windowed(inner.deserialize(data[:-16]), TimeWindow(start_ms, end_ms))

    return Serde("session-windowed", write, read)
