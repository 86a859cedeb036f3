"""Our bytes against those of two libraries that were written by others.

`kio` has the versions that Kafka 4 still serves; `aiokafka` has old ones that Kafka 4 dropped.
"""

import dataclasses
import datetime
import importlib
import io
import pkgutil
import random
import types
import typing
import uuid
from collections.abc import Iterator
from typing import Any

import aiokafka.protocol
import pytest
from aiokafka.protocol.struct import Struct as AiokafkaStruct
from kio.index import UnknownEntity, load_entity_schema, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_writer
from kio.static.constants import EntityType
from tests.unit.protocol.samples import sample

from penstock.protocol.apis import PUBLIC_KEYS, ApiKey, request_class, response_class
from penstock.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from penstock.protocol.messages.control_records import ControlRecordTypeSchema, EndTxnMarker
from penstock.protocol.schema import Message, Struct
from penstock.protocol.source import body_fields

SAMPLES_PER_VERSION = 3

KIO_NAMES = {"enable_2pc": "enable2_pc", "type": "type_"}  # Where it differs from us.

EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


def kio_versions(message: type[Message], key: ApiKey) -> Iterator[tuple[int, type[Any]]]:
    load = load_request_schema if message is request_class(key) else load_response_schema
    for version in message.versions:
        try:
            yield version, load(key, version)
        except UnknownEntity:
            continue


def to_kio(ours: Struct, kind: type[Any], rng: random.Random) -> Any:
    """The same values as a kio entity; a value that kio has no type for is replaced in ours."""
    values = {}
    ours_of = {KIO_NAMES.get(name, name).removesuffix("_ms"): name for name in ours.fields}
    for field in dataclasses.fields(kind):
        name = ours_of[field.name.removesuffix("_ms")]
        kafka_type = field.metadata.get("kafka_type")
        if (narrow := replacement(kafka_type, rng)) is not None:
            setattr(ours, name, narrow)
        value = getattr(ours, name)
        values[field.name] = kio_value(value, field.type, kafka_type, rng)
    return kind(**values)


def replacement(kafka_type: str | None, rng: random.Random) -> int | None:
    """A value for a field to which kio gives a narrower type than the wire does."""
    match kafka_type:
        case "error_code":
            return int(rng.choice(list(KioErrorCode)).value)
        case "datetime_i64":
            return rng.randrange(2**31) * 1000
        case "timedelta_i64":
            return rng.randrange(-(2**40), 2**40)
    return None


def kio_value(value: Any, hint: Any, kafka_type: str | None, rng: random.Random) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        element = next(a for a in flat(hint) if typing.get_origin(a) is tuple)
        of = typing.get_args(element)[0]
        return tuple(kio_value(item, of, kafka_type, rng) for item in value)
    if isinstance(value, Struct):
        return to_kio(value, next(a for a in flat(hint) if a is not type(None)), rng)
    if kafka_type == "error_code":
        return KioErrorCode(value)
    if kafka_type in ("timedelta_i32", "timedelta_i64"):
        return datetime.timedelta(milliseconds=value)
    if kafka_type == "datetime_i64":
        return EPOCH + datetime.timedelta(milliseconds=value)
    if kafka_type == "uuid":
        return uuid.UUID(bytes=value) if any(value) else None
    return value


def flat(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the one type there is."""
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    return typing.get_args(hint) if is_union else (hint,)


def assert_bytes_equal_kio(message: type[Message], version: int, kind: type[Any]) -> None:
    rng = random.Random(f"{message.__name__} {version}")
    for _ in range(SAMPLES_PER_VERSION):
        ours = sample(message, version, rng)
        theirs = to_kio(ours, kind, rng)
        buffer = io.BytesIO()
        entity_writer(kind)(buffer, theirs)
        encoded = ours.encode(version)
        assert encoded == buffer.getvalue(), f"{message.__name__} {version}: {ours}"
        assert message.decode(buffer.getvalue(), version) == ours


@pytest.mark.parametrize("key", PUBLIC_KEYS, ids=lambda key: key.name.lower())
def test_requests_and_responses_have_the_bytes_that_kio_writes(key: ApiKey) -> None:
    compared = 0
    for message in (request_class(key), response_class(key)):
        for version, kind in kio_versions(message, key):
            assert_bytes_equal_kio(message, version, kind)
            compared += 1
    assert compared >= 2, "kio knows every API of ours"


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (ConsumerProtocolSubscription, "consumer_protocol_subscription"),
        (ConsumerProtocolAssignment, "consumer_protocol_assignment"),
        (EndTxnMarker, "end_txn_marker"),
        (ControlRecordTypeSchema, "control_record_type_schema"),
    ],
)
def test_stored_messages_have_the_bytes_that_kio_writes(message: type[Message], name: str) -> None:
    for version in message.versions:
        kind = load_entity_schema(name, version, EntityType.data)
        assert_bytes_equal_kio(message, version, kind)


def aiokafka_structs() -> dict[tuple[int, int, bool], type[Any]]:
    """aiokafka's classes by API key, version and whether it is a request."""
    for module in pkgutil.iter_modules(aiokafka.protocol.__path__):
        importlib.import_module(f"aiokafka.protocol.{module.name}")
    found: dict[tuple[int, int, bool], type[Any]] = {}
    pending = list(AiokafkaStruct.__subclasses__())
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        key, version = getattr(kind, "API_KEY", None), getattr(kind, "API_VERSION", None)
        if isinstance(key, int) and isinstance(version, int):
            found[key, version, "Request" in kind.__name__] = kind
    return found


def in_order(value: Any, version: int) -> Any:
    """A struct as the plain tuples that aiokafka takes: fields in the order of the wire."""
    if isinstance(value, list):
        return [in_order(item, version) for item in value]
    if isinstance(value, Struct):
        names = [name for name, _ in body_fields(type(value), version)]
        return tuple(in_order(getattr(value, name), version) for name in names)
    return value


def dropped_by_kafka_4(message: type[Message], key: ApiKey) -> set[int]:
    known = {version for version, _ in kio_versions(message, key)}
    return {version for version in message.versions if version < min(known)}


AIOKAFKA = aiokafka_structs()
OLD = [
    (message, version, AIOKAFKA[key, version, message is request_class(key)])
    for key in PUBLIC_KEYS
    for message in (request_class(key), response_class(key))
    for version in sorted(dropped_by_kafka_4(message, key))
    if (key, version, message is request_class(key)) in AIOKAFKA
]


@pytest.mark.parametrize(("message", "version", "kind"), OLD, ids=[o[2].__name__ for o in OLD])
def test_versions_that_kafka_4_dropped_have_the_bytes_that_aiokafka_writes(
    message: type[Message], version: int, kind: type[Any]
) -> None:
    rng = random.Random(f"{message.__name__} {version}")
    for _ in range(SAMPLES_PER_VERSION):
        ours = sample(message, version, rng)
        encoded = ours.encode(version)
        assert encoded == kind(*in_order(ours, version)).encode(), f"{kind.__name__}: {ours}"
        assert message.decode(encoded, version) == ours
