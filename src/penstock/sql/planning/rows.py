"""Rows as internal topics and stores keep them: dicts and tuples of values of SQL."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from penstock.streams import Serde, SerdeError
from penstock.streams.tasks.state_values import decoded, encoded

_TAGS: Final[Mapping[type, bytes]] = {Decimal: b"d", datetime: b"m", date: b"y", time: b"t"}
_READERS: Final[Mapping[bytes, Callable[[str], Any]]] = {
    b"d": Decimal,
    b"m": datetime.fromisoformat,
    b"y": date.fromisoformat,
    b"t": time.fromisoformat,
}


def _write_scalar(value: Any) -> bytes:
    tag = _TAGS.get(type(value))
    if tag is None:
        raise SerdeError(f"{value!r} is no value of SQL")
    text = str(value) if tag == b"d" else value.isoformat()
    return tag + text.encode()


def _read_scalar(data: bytes) -> Any:
    return _READERS[data[:1]](data[1:].decode())


# What the layout of states has no tag for: exact numbers, dates and times.
_SCALARS: Final[Serde[Any]] = Serde("SQL scalar", _write_scalar, _read_scalar)


def _write(value: Any) -> bytes:
    return encoded(value, _SCALARS)


def _read(data: bytes) -> Any:
    return decoded(data, _SCALARS)


ROW: Final[Serde[Any]] = Serde("SQL row", _write, _read)
