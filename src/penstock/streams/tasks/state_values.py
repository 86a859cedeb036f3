"""States as bytes: what steps keep, and what travels through internal topics beside plain values.

A state is made of plain values (numbers, texts, bytes, lists, tuples, dicts) and of our own frozen
classes, each under a number that never changes. A value of another kind, such as a Protobuf
message, is written by its serde. Nothing that is read here can run code, and the first byte says
which layout it is.
"""

import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from penstock.streams.steps.contract import Timer
from penstock.streams.steps.foreign_key import ForeignAnswer, ForeignSubscription, Instruction
from penstock.streams.steps.stream_join import JoinClock, JoinState, Waiting
from penstock.streams.steps.suppress import HeldBack, HeldWithHeaders
from penstock.streams.steps.window_clock import WindowClock
from penstock.streams.values.records import (
    Stamped,
    StreamRecord,
    TableChange,
    TimeWindow,
    Windowed,
)
from penstock.streams.values.serdes import Serde, SerdeError

LAYOUT = b"\x01"
_INT = struct.Struct(">q")
_FLOAT = struct.Struct(">d")
_SIZE = struct.Struct(">I")
# The place of a class is its number in every checkpoint: new ones go to the end.
_CLASSES: tuple[type, ...] = (
    Stamped,
    TableChange,
    TimeWindow,
    Windowed,
    StreamRecord,
    Timer,
    WindowClock,
    JoinClock,
    JoinState,
    Waiting,
    HeldBack,
    ForeignSubscription,
    ForeignAnswer,
    HeldWithHeaders,
)
_NUMBERS = {cls: bytes([number]) for number, cls in enumerate(_CLASSES)}
_FIELDS = {cls: tuple(field.name for field in fields(cls)) for cls in _CLASSES}
_INSTRUCTIONS = tuple(Instruction)
_INT_MAX, _INT_MIN = 2**63 - 1, -(2**63)


def encoded(value: Any, serde: Serde[Any] | None = None) -> bytes:
    """The value's bytes; `serde` writes what is not plain."""
    row = _row_bytes(value) if type(value) is Stamped else None
    if row is not None:
        return row
    parts = [LAYOUT]
    _write(value, parts.append, serde)
    return b"".join(parts)


def decoded(data: bytes, serde: Serde[Any] | None = None) -> Any:
    """The value of the bytes; SerdeError where they are of another layout, or cut off."""
    if data[:1] != LAYOUT:
        raise SerdeError(f"a state of layout {data[:1].hex() or 'none'}, but this reads 01")
    try:
        if data.startswith(_TEXT_FRONT):
            return _text_row(data)
        value, end = _read(data, 1, serde)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise SerdeError(f"a state that was cut off or changed: {error}") from error
    if end != len(data):
        raise SerdeError(f"a state of {end} bytes has {len(data) - end} more")
    return value


_COUNT = struct.Struct(">3scqcq")
_COUNT_FRONT = LAYOUT + b"c\0"  # A Stamped, which is the first of the classes.


def encoded_count(count: int, timestamp_ms: int) -> bytes:
    """The bytes of `Stamped(count, timestamp_ms)`, at once."""
    return _COUNT.pack(_COUNT_FRONT, b"i", count, b"i", timestamp_ms)


def decoded_count(data: bytes) -> tuple[int, int]:
    """Count and time of such bytes; SerdeError where they are of anything else."""
    if len(data) != _COUNT.size:
        raise SerdeError(f"a count of {len(data)} bytes")
    front, first, count, second, timestamp_ms = _COUNT.unpack(data)
    if (front, first, second) != (_COUNT_FRONT, b"i", b"i"):
        raise SerdeError("a state that is no count")
    return count, timestamp_ms


_TEXT_FRONT = LAYOUT + b"c\0s"  # A Stamped text, as most tables have them.
_TEXT_SIZE = struct.Struct(">4sI")
_TIME = struct.Struct(">cq")


def _row_bytes(row: Stamped) -> bytes | None:
    """The bytes of a row of a text or a number, at once; None: of another, or of a great number."""
    value, at_ms = row.value, row.timestamp_ms
    if not 0 <= at_ms <= _INT_MAX:
        return None
    if type(value) is str:
        data = value.encode("utf-8", "surrogatepass")
        return _TEXT_SIZE.pack(_TEXT_FRONT, len(data)) + data + _TIME.pack(b"i", at_ms)
    if type(value) is int and _INT_MIN <= value <= _INT_MAX:
        return encoded_count(value, at_ms)
    return None


def _text_row(data: bytes) -> Stamped:
    """The row of a text; its bytes are those that `_write` makes of it."""
    text, end = _read_text(data, len(_TEXT_FRONT), None)
    tag, at_ms = _TIME.unpack_from(data, end)
    if tag != b"i" or end + _TIME.size != len(data):
        raise SerdeError(f"a state of {end + _TIME.size} bytes has {len(data)}")
    return Stamped(text, at_ms)


def _write(value: Any, put: Callable[[bytes], None], serde: Serde[Any] | None) -> None:
    kind = type(value)
    writer = _WRITERS.get(kind)
    if writer is not None:
        writer(value, put, serde)
    elif kind in _NUMBERS:
        put(b"c" + _NUMBERS[kind])
        for name in _FIELDS[kind]:
            _write(getattr(value, name), put, serde)
    elif serde is not None:
        data = serde.serialize(value) or b""
        put(b"x" + _SIZE.pack(len(data)) + data)
    else:
        raise SerdeError(f"{value!r} is a {kind.__name__}, which no serde was given to write")


def _write_int(value: int, put: Callable[[bytes], None], serde: Any) -> None:
    if _INT_MIN <= value <= _INT_MAX:
        put(b"i" + _INT.pack(value))
        return
    data = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
    put(b"I" + _SIZE.pack(len(data)) + data)


def _write_text(value: str, put: Callable[[bytes], None], serde: Any) -> None:
    data = value.encode("utf-8", "surrogatepass")
    put(b"s" + _SIZE.pack(len(data)) + data)


def _sequence(tag: bytes) -> Callable[[Any, Callable[[bytes], None], Any], None]:
    def write(value: Any, put: Callable[[bytes], None], serde: Any) -> None:
        put(tag + _SIZE.pack(len(value)))
        for one in value:
            _write(one, put, serde)

    return write


def _write_dict(value: dict[Any, Any], put: Callable[[bytes], None], serde: Any) -> None:
    put(b"m" + _SIZE.pack(len(value)))
    for key, one in value.items():
        _write(key, put, serde)
        _write(one, put, serde)


_WRITERS: dict[type, Callable[[Any, Callable[[bytes], None], Any], None]] = {
    type(None): lambda value, put, serde: put(b"n"),
    bool: lambda value, put, serde: put(b"T" if value else b"F"),
    int: _write_int,
    float: lambda value, put, serde: put(b"d" + _FLOAT.pack(value)),
    str: _write_text,
    bytes: lambda value, put, serde: put(b"b" + _SIZE.pack(len(value)) + value),
    tuple: _sequence(b"t"),
    list: _sequence(b"l"),
    dict: _write_dict,
    Instruction: lambda value, put, serde: put(b"e" + bytes([_INSTRUCTIONS.index(value)])),
}


def _read(data: bytes, at: int, serde: Serde[Any] | None) -> tuple[Any, int]:
    tag = data[at]
    reader = _READERS.get(tag)
    if reader is None:
        raise SerdeError(f"a state with the unknown tag {tag}")
    return reader(data, at + 1, serde)


def _read_bytes(data: bytes, at: int, serde: Any = None) -> tuple[bytes, int]:
    (size,) = _SIZE.unpack_from(data, at)
    end = at + 4 + size
    if end > len(data):
        raise SerdeError(f"a state of {len(data)} bytes ends within a value of {size}")
    return data[at + 4 : end], end


def _read_text(data: bytes, at: int, serde: Any) -> tuple[str, int]:
    found, end = _read_bytes(data, at)
    return found.decode("utf-8", "surrogatepass"), end


def _read_great(data: bytes, at: int, serde: Any) -> tuple[int, int]:
    found, end = _read_bytes(data, at)
    return int.from_bytes(found, "big", signed=True), end


def _read_list(data: bytes, at: int, serde: Any) -> tuple[list[Any], int]:
    (size,) = _SIZE.unpack_from(data, at)
    at, found = at + 4, []
    for _ in range(size):
        one, at = _read(data, at, serde)
        found.append(one)
    return found, at


def _read_tuple(data: bytes, at: int, serde: Any) -> tuple[tuple[Any, ...], int]:
    found, end = _read_list(data, at, serde)
    return tuple(found), end


def _read_dict(data: bytes, at: int, serde: Any) -> tuple[dict[Any, Any], int]:
    (size,) = _SIZE.unpack_from(data, at)
    at, found = at + 4, {}
    for _ in range(size):
        key, at = _read(data, at, serde)
        found[key], at = _read(data, at, serde)
    return found, at


def _read_class(data: bytes, at: int, serde: Any) -> tuple[Any, int]:
    cls = _CLASSES[data[at]]
    at += 1
    found = {}
    for name in _FIELDS[cls]:
        found[name], at = _read(data, at, serde)
    return cls(**found), at


def _read_foreign(data: bytes, at: int, serde: Serde[Any] | None) -> tuple[Any, int]:
    found, end = _read_bytes(data, at)
    if serde is None:
        raise SerdeError("a value that a serde wrote, but no serde was given to read it")
    return serde.deserialize(found), end


_READERS: dict[int, Callable[[bytes, int, Any], tuple[Any, int]]] = {
    ord("n"): lambda data, at, serde: (None, at),
    ord("T"): lambda data, at, serde: (True, at),
    ord("F"): lambda data, at, serde: (False, at),
    ord("i"): lambda data, at, serde: (_INT.unpack_from(data, at)[0], at + 8),
    ord("I"): _read_great,
    ord("d"): lambda data, at, serde: (_FLOAT.unpack_from(data, at)[0], at + 8),
    ord("s"): _read_text,
    ord("b"): _read_bytes,
    ord("t"): _read_tuple,
    ord("l"): _read_list,
    ord("m"): _read_dict,
    ord("c"): _read_class,
    ord("e"): lambda data, at, serde: (_INSTRUCTIONS[data[at]], at + 1),
    ord("x"): _read_foreign,
}
