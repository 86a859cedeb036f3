"""A record as a line of text, as Kafka's DefaultMessageFormatter writes it."""

from collections.abc import Callable, Mapping
from typing import Any

from penstock.client.serialization import ReadyDeserializer
from penstock.client.values import ConsumerRecord
from penstock.errors import CommandError

_FLAGS = {
    "print.timestamp": False,
    "print.partition": False,
    "print.offset": False,
    "print.epoch": False,
    "print.delivery": False,
    "print.headers": False,
    "print.key": False,
    "print.value": True,
}
_TEXTS = {
    "key.separator": "\t",
    "line.separator": "\n",
    "headers.separator": ",",
    "null.literal": "null",
}
_DESERIALIZERS = ("key.deserializer", "value.deserializer", "headers.deserializer")

RawRecord = ConsumerRecord[bytes, bytes]


class RecordPrinter:
    """Columns chosen by `print.*`, in Kafka's order: time, place, headers, key, value."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        _check(properties)
        flags = {
            name: properties.get(name, str(default)).strip().lower() == "true"
            for name, default in _FLAGS.items()
        }
        texts = {name: properties.get(name, default).encode() for name, default in _TEXTS.items()}
        self._separator = texts["key.separator"]
        self._line_end = texts["line.separator"]
        self._headers_separator = texts["headers.separator"]
        self._null = texts["null.literal"]
        header_given = properties.get("headers.deserializer") or properties.get(
            "header.deserializer"
        )
        self._key = ReadyDeserializer(properties.get("key.deserializer"), properties, "key")
        self._value = ReadyDeserializer(properties.get("value.deserializer"), properties, "value")
        self._header = ReadyDeserializer(header_given, properties, "value")
        columns: dict[str, Callable[[RawRecord], bytes]] = {
            "print.timestamp": _timestamp,
            "print.partition": lambda r: b"Partition:%d" % r.partition,
            "print.offset": lambda r: b"Offset:%d" % r.offset,
            "print.delivery": lambda _: b"Delivery:NOT_PRESENT",
            "print.epoch": _epoch,
            "print.headers": self._headers_of,
            "print.key": lambda r: self._text(self._key(r.topic, r.key)),
            "print.value": lambda r: self._text(self._value(r.topic, r.value)),
        }
        self._columns = [column for name, column in columns.items() if flags[name]]

    def line(self, record: RawRecord) -> bytes:
        """The record with its line end."""
        return self._separator.join([column(record) for column in self._columns]) + self._line_end

    def _headers_of(self, record: RawRecord) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            name.encode() + b":" + self._text(self._header(record.topic, value))
            for name, value in record.headers
        )

    def _text(self, value: Any) -> bytes:
        if value is None:
            return self._null
        return value if isinstance(value, bytes) else str(value).encode()


def _check(properties: Mapping[str, str]) -> None:
    known = (*_FLAGS, *_TEXTS, *_DESERIALIZERS, "header.deserializer")
    for name in properties:
        if name not in known and not name.startswith(tuple(f"{d}." for d in _DESERIALIZERS)):
            raise CommandError(
                f"{name} is not a property for printing records: choose from {', '.join(known)}."
            )


def _timestamp(record: RawRecord) -> bytes:
    if record.timestamp_type == "NoTimestampType":
        return b"NO_TIMESTAMP"
    return b"%s:%d" % (record.timestamp_type.encode(), record.timestamp_ms)


def _epoch(record: RawRecord) -> bytes:
    return (
        b"Epoch:NOT_PRESENT" if record.leader_epoch is None else b"Epoch:%d" % record.leader_epoch
    )
