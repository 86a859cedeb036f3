"""Keys and values of dumped records as text; those of coordinators as JSON, in Kafka's form."""

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any, TypeAlias

from penstock.client.serialization import ReadyDeserializer
from penstock.errors import ProtocolError
from penstock.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from penstock.protocol.messages.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from penstock.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
from penstock.protocol.primitives import MalformedMessage, uuid_text
from penstock.protocol.schema import Field, Struct
from penstock.protocol.stored import (
    RecordKey,
    RecordValue,
    Versioned,
    group_record_classes,
    read_prefix,
)

# Key and value as text; None: nothing is to be printed.
Decode: TypeAlias = Callable[[bytes | None, bytes | None], tuple[str | None, str | None]]

_EMBEDDED: dict[str, type[Versioned]] = {
    "subscription": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
}


_SHARE_STATE: dict[int, tuple[type[RecordKey], type[RecordValue]]] = {
    ShareSnapshotKey.record_type: (ShareSnapshotKey, ShareSnapshotValue),
    ShareUpdateKey.record_type: (ShareUpdateKey, ShareUpdateValue),
}


def plain(key_class: str | None, value_class: str | None) -> Decode:
    """Text, or what the named deserializers make of it."""
    decode_key = ReadyDeserializer(_named(key_class), {}, "key")
    decode_value = ReadyDeserializer(_named(value_class), {}, "value")

    def decode(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
        return _text(decode_key("", key)), _text(decode_value("", value))

    return decode


def group_record(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """A record of `__consumer_offsets`."""
    if key is None:
        return None, _text(value)
    try:
        record_type = read_prefix(key)
        classes = group_record_classes(record_type)
        if classes is None:
            return f"Unknown record type {record_type} at offset, skipping...", None
        return _key_json(classes[0], key), _value_json(classes[1], value)
    except ProtocolError as error:
        return f"Error decoding the record: {error}", None


def transaction_record(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """A record of `__transaction_state`."""
    if key is None:
        return None, _text(value)
    try:
        return _key_json(TransactionLogKey, key), _value_json(TransactionLogValue, value)
    except ProtocolError as error:
        return f"Error decoding the record: {error}", None


def share_state_record(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """A record of `__share_group_state`."""
    if key is None:
        return None, _text(value)
    try:
        found = _SHARE_STATE.get(read_prefix(key))
        if found is None:
            return f"Unknown record type {read_prefix(key)} at offset, skipping...", None
        return _key_json(found[0], key), _value_json(found[1], value)
    except ProtocolError as error:
        return f"Error decoding the record: {error}", None


def as_json(message: Struct, version: int) -> dict[str, Any]:
    """The fields of a version under Kafka's names; optional ones only where they say something."""
    found: dict[str, Any] = {}
    for name, field in message.fields.items():
        value = getattr(message, name)
        if not field.exists_in(version):
            continue
        if field.tag is not None and value == field.default:
            continue
        found[_camel(name)] = _value(name, field, value, version)
    return found


def _value(name: str, field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.kind == "uuid":
        return uuid_text(value)
    if field.kind == "blob":
        return _embedded(name, bytes(value))
    if field.kind == "struct":
        return as_json(value, version)
    if field.kind == "array":
        return [
            as_json(item, version)
            if isinstance(item, Struct)
            else uuid_text(item)
            if isinstance(item, bytes)
            else item
            for item in value
        ]
    return value


def _embedded(name: str, data: bytes) -> Any:
    """What consumers tell each other through a classic group; other bytes as base64."""
    kind = _EMBEDDED.get(name)
    if kind is not None and data:
        try:
            version = min(read_prefix(data), kind.versions[-1])
            return as_json(kind.from_bytes(data), version)
        except MalformedMessage:
            pass  # Not a consumer's group, or bytes from a future this tool does not know.
    return b64encode(data).decode()


def _key_json(kind: type[RecordKey], data: bytes) -> str:
    body = as_json(kind.from_bytes(data), 0)
    return _dumped({"type": str(kind.record_type), "data": body})


def _value_json(kind: type[RecordValue], data: bytes | None) -> str:
    if data is None:
        return "<DELETE>"
    version = read_prefix(data)
    return _dumped({"version": str(version), "data": as_json(kind.from_bytes(data), version)})


def _dumped(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _named(name: str | None) -> str | None:
    """`org.apache.kafka.tools.api.LongDecoder` and `long` mean the same; None: text as it is."""
    simple = (name or "string").rpartition(".")[2].removesuffix("Decoder").lower()
    return None if simple in ("string", "default") else simple


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
