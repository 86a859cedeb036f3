"""Connect's converters with a schema registry: what they write, they and others read."""

import random
import socket
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as ConfluentAvro
from confluent_kafka.schema_registry.json_schema import JSONDeserializer as ConfluentJson
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support.connect_cases import random_schema, random_value
from tests.support.registry import RegistryProcess

from penstock.connect.converters.avro import AvroConverter
from penstock.connect.converters.json_schema import JsonSchemaConverter
from penstock.connect.converters.protobuf import ProtobufConverter
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.lookup import PluginKind, load_plugin
from penstock.connect.values.logical import TIMESTAMP_SCHEMA, decimal_schema, timestamp_of
from penstock.connect.values.schema import (
    BYTES_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaType,
    array_schema,
    map_schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue
from penstock.schemas.registry_client import RegistryUnreachable

ORDER = struct_schema(
    {
        "id": INT8_SCHEMA,
        "note": OPTIONAL_STRING_SCHEMA,
        "at": TIMESTAMP_SCHEMA,
        "tags": array_schema(OPTIONAL_STRING_SCHEMA),
    },
    name="shop.Order",
    version=3,
    doc="an order",
)
VALUE = {"id": 7, "note": None, "at": timestamp_of(1_577_934_245_678), "tags": ["a", None]}


@pytest.fixture
def settings(registry: RegistryProcess) -> dict[str, Any]:
    return {"schema.registry.url": registry.url}


@pytest.mark.parametrize("kind", [AvroConverter, JsonSchemaConverter])
def test_a_struct_comes_back_with_its_schema(kind: Any, settings: dict[str, Any]) -> None:
    converter = kind(settings, is_key=False)
    order = StructValue.of(ORDER, VALUE)
    data = converter.from_connect(f"orders-{kind.__name__}", ORDER, order)
    again = kind(settings, is_key=False)
    assert again.to_connect(f"orders-{kind.__name__}", data) == (ORDER, order)


def test_another_client_reads_the_avro(settings: dict[str, Any], registry: RegistryProcess) -> None:
    converter = AvroConverter(settings, is_key=False)
    data = converter.from_connect("theirs", ORDER, StructValue.of(ORDER, VALUE))
    theirs = ConfluentAvro(SchemaRegistryClient({"url": registry.url}))
    found = theirs(data, SerializationContext("theirs", MessageField.VALUE))
    assert found == VALUE


def test_another_client_reads_the_json(settings: dict[str, Any], registry: RegistryProcess) -> None:
    converter = JsonSchemaConverter(settings, is_key=False)
    data = converter.from_connect("json-theirs", ORDER, StructValue.of(ORDER, VALUE))
    client = SchemaRegistryClient({"url": registry.url})
    theirs = ConfluentJson(None, schema_registry_client=client)
    found = theirs(data, SerializationContext("json-theirs", MessageField.VALUE))
    assert found == {"id": 7, "note": None, "at": 1_577_934_245_678, "tags": ["a", None]}


MESSAGE = struct_schema(
    {
        "id": INT64_SCHEMA,
        "note": OPTIONAL_STRING_SCHEMA,
        "at": TIMESTAMP_SCHEMA.as_optional(),
        "tags": array_schema(STRING_SCHEMA),
        "counts": map_schema(STRING_SCHEMA, INT32_SCHEMA),
        "place": struct_schema(
            {"x": FLOAT64_SCHEMA, "raw": BYTES_SCHEMA}, name="PlaceStruct", optional=True
        ),
    },
    name="Order",
)
PLACE = MESSAGE.fields[5].schema


@pytest.mark.parametrize("missing", [True, False])
def test_a_message_of_protobuf_comes_back(missing: bool, settings: dict[str, Any]) -> None:
    place = None if missing else StructValue.of(PLACE, {"x": 1.5, "raw": b"\x00"})
    order = StructValue.of(
        MESSAGE,
        {
            "id": 2**40,
            "note": None if missing else "",
            "at": None if missing else timestamp_of(-1),
            "tags": ["a", "b"],
            "counts": {"x": 1},
            "place": place,
        },
    )
    converter = ProtobufConverter(settings, is_key=False)
    data = converter.from_connect("messages", MESSAGE, order)
    assert ProtobufConverter(settings, is_key=False).to_connect("messages", data) == (
        MESSAGE,
        order,
    )


def test_what_protobuf_has_no_word_for_is_a_data_error(settings: dict[str, Any]) -> None:
    converter = ProtobufConverter(settings, is_key=False)
    schema = struct_schema({"price": decimal_schema(2)}, name="Price")
    with pytest.raises(DataError, match="cast it to a string first"):
        converter.from_connect("t", schema, StructValue.of(schema, {"price": Decimal("1.00")}))
    with pytest.raises(DataError, match="structs alone"):
        converter.from_connect("t", STRING_SCHEMA, "text")


def without_doubt(schema: Schema) -> bool:
    """Whether Avro can name all of it: names of fields, and structs of different names."""
    inner = [one.schema for one in schema.fields]
    inner += [one for one in (schema.key_schema, schema.value_schema) if one is not None]
    named = all(one.name.isidentifier() for one in schema.fields)
    nested = sum(one.type is SchemaType.STRUCT for one in inner)
    return named and nested == 0 and all(without_doubt(one) for one in inner)


def test_random_values_come_back_from_avro(settings: dict[str, Any]) -> None:
    converter = AvroConverter(
        {**settings, "subject.name.strategy": "TopicNameStrategy"}, is_key=True
    )
    tried = 0
    for seed in range(60):
        rng = random.Random(seed)
        schema = random_schema(rng, fields=True)
        if not without_doubt(schema):
            continue
        tried += 1
        value = random_value(rng, schema)
        data = converter.from_connect(f"random-{seed}", schema, value)
        _, found = converter.to_connect(f"random-{seed}", data)
        shown = [
            one if one is not None else f.schema.default
            for f, one in zip(schema.fields, value.values, strict=True)
        ]
        assert list(found.values) == shown, (schema, value)
    assert tried > 15


def test_decimals_keep_their_digits(settings: dict[str, Any]) -> None:
    schema = struct_schema({"price": decimal_schema(2)}, name="shop.Price")
    price = StructValue.of(schema, {"price": Decimal("12345678901234567890.12")})
    for kind, more in [
        (AvroConverter, {}),
        (JsonSchemaConverter, {}),
        (JsonSchemaConverter, {"decimal.format": "BASE64"}),
    ]:
        converter = kind({**settings, **more}, is_key=False)
        topic = f"prices-{kind.__name__}"
        _, found = converter.to_connect(topic, converter.from_connect(topic, schema, price))
        assert found == price


def test_what_cannot_be_read_or_written_is_a_data_error(settings: dict[str, Any]) -> None:
    for name in ("AvroConverter", "JsonSchemaConverter"):
        converter = load_plugin(PluginKind.CONVERTER, name)(settings, is_key=False)
        assert converter.from_connect("t", None, None) is None
        assert converter.to_connect("t", None) == (None, None)
        with pytest.raises(DataError, match="no schema"):
            converter.from_connect("t", None, {"a": 1})
        with pytest.raises(DataError, match="header"):
            converter.to_connect("t", b"plain")
        with pytest.raises(DataError, match="999999"):
            converter.to_connect("t", b"\0" + (999_999).to_bytes(4, "big") + b"x")


def test_a_registry_that_is_away_is_no_fault_of_a_record() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))  # Nobody listens here.
        settings = {"schema.registry.url": f"http://127.0.0.1:{taken.getsockname()[1]}"}
        for kind in (AvroConverter, JsonSchemaConverter, ProtobufConverter):
            with pytest.raises(RegistryUnreachable):
                kind(settings, is_key=False).to_connect("t", b"\0\0\0\0\1\0x")
