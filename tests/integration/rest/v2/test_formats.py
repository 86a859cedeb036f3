"""Every embedded format through a real registry, and past other people's clients."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.integration.rest.v2.asking import assign, error_of, media, produce, read, stored
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess

pytest.importorskip("authlib")
pytest.importorskip("grpc_tools")

import confluent_kafka
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

Make = Callable[..., str]

AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": ["int", "long", "double"]},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}},
        {"name": "raw", "type": "bytes"},
        {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
    ],
}
ORDER = {
    "id": 7,
    "note": {"string": "späť"},
    "amount": {"long": 5},
    "state": "OLD",
    "raw": "\u0000ÿ",
    "tags": {"a": ["b", "c"], "d": []},
}
JSON_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["id"],
}
PROTO = """
syntax = "proto3";
package shop;
message Order {
  int64 id = 1;
  string order_note = 2;
  repeated Line lines = 3;
  message Line { string article = 1; bytes raw = 2; }
}
"""
PROTO_ORDER = {
    "id": "7",
    "orderNote": "late",
    "lines": [{"article": "a", "raw": "AP8="}, {"article": "b", "raw": ""}],
}


def one_value(broker: BrokerProcess, topic: str) -> bytes:
    """The bytes of the topic's first record."""
    settings = {"bootstrap.servers": broker.address, "group.id": "bytes"}
    consumer = confluent_kafka.Consumer(settings)
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        value = message.value()
        assert isinstance(value, bytes)
        return value
    finally:
        consumer.close()


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


@pytest.mark.parametrize(
    ("format_", "records"),
    [
        ("binary", [{"key": "AAH/", "value": ""}, {"key": None, "value": None}]),
        ("json", [{"key": "k", "value": {"a": [1, None, "ä"]}}, {"key": 1, "value": False}]),
        ("json", [{"key": None, "value": 0}, {"key": {"b": 1.5}, "value": None}]),
    ],
)
def test_formats_without_a_schema_come_back_as_they_were_sent(
    client: httpx.Client, consumer: Make, topic: str, format_: str, records: list[dict[str, Any]]
) -> None:
    stored(produce(client, topic, records, format_))
    reader = consumer(format_)
    assign(client, reader, topic)
    found = read(client, reader, len(records), format_)
    assert [{"key": one["key"], "value": one["value"]} for one in found] == records


@pytest.mark.parametrize(
    ("format_", "schema", "value"),
    [
        ("avro", json.dumps(AVRO), ORDER),
        ("avro", '"string"', "plain"),
        ("jsonschema", json.dumps(JSON_SCHEMA), {"id": 7, "note": "late"}),
        ("protobuf", PROTO, PROTO_ORDER),
    ],
)
def test_formats_with_a_schema_come_back_as_they_were_sent(
    client: httpx.Client, consumer: Make, topic: str, format_: str, schema: str, value: Any
) -> None:
    key_schema = {"avro": '"string"', "jsonschema": '{"type":"string"}'}.get(format_)
    key = None if key_schema is None else "k"
    records = [{"key": key, "value": value}, {"key": key, "value": None}]
    more = {} if key_schema is None else {"key_schema": key_schema}
    got = produce(client, topic, records, format_, value_schema=schema, **more)
    assert stored(got) == [(0, 0), (0, 1)]
    schema_id = got.json()["value_schema_id"]
    assert isinstance(schema_id, int)
    assert (got.json()["key_schema_id"] is None) == (key is None)
    by_id = produce(client, topic, [{"value": value}], format_, value_schema_id=schema_id)
    assert stored(by_id) == [(0, 2)]
    assert by_id.json()["value_schema_id"] == schema_id
    reader = consumer(format_)
    assign(client, reader, topic)
    found = read(client, reader, 3, format_)
    assert [one["value"] for one in found] == [value, None, value]
    assert [one["key"] for one in found] == [key, key, None]


def test_other_clients_read_what_the_proxy_wrote(
    client: httpx.Client, broker: BrokerProcess, registry: RegistryProcess, topic: str
) -> None:
    asked = SchemaRegistryClient({"url": registry.url})
    stored(produce(client, topic, [{"value": ORDER}], "avro", value_schema=json.dumps(AVRO)))
    found = AvroDeserializer(asked)(one_value(broker, topic), value_of(topic))
    assert found == {
        "id": 7,
        "note": "späť",
        "amount": 5,
        "state": "OLD",
        "raw": b"\x00\xff",
        "tags": {"a": ["b", "c"], "d": []},
    }
    assert asked.get_latest_version(f"{topic}-value").version == 1
    text = json.dumps(JSON_SCHEMA)
    stored(
        produce(client, f"{topic}-json", [{"value": {"id": 1}}], "jsonschema", value_schema=text)
    )
    there = value_of(f"{topic}-json")
    assert JSONDeserializer(text)(one_value(broker, f"{topic}-json"), there) == {"id": 1}


def test_the_proxy_reads_what_other_clients_wrote(
    client: httpx.Client,
    broker: BrokerProcess,
    registry: RegistryProcess,
    consumer: Make,
    topic: str,
) -> None:
    asked = SchemaRegistryClient({"url": registry.url})
    item = {"type": "record", "name": "Item", "fields": [{"name": "n", "type": "int"}]}
    asked.register_schema(f"{topic}-item", Schema(json.dumps(item), "AVRO"))
    cart = {"type": "record", "name": "Cart", "fields": [{"name": "item", "type": "Item"}]}
    references = [SchemaReference("Item", f"{topic}-item", 1)]
    schema = Schema(json.dumps(cart), "AVRO", references)
    data = AvroSerializer(asked, schema)({"item": {"n": 3}}, value_of(topic))
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address})
    producer.produce(topic, data)
    assert producer.flush(60) == 0
    # The same schema through the proxy: as text with its references.
    named = [{"name": "Item", "subject": f"{topic}-item", "version": 1}]
    got = produce(
        client,
        topic,
        [{"value": {"item": {"n": 4}}}],
        "avro",
        value_schema=json.dumps(cart),
        value_schema_references=named,
    )
    assert stored(got) == [(0, 1)]
    assert got.json()["value_schema_id"] == asked.get_latest_version(f"{topic}-value").schema_id
    reader = consumer("avro")
    assign(client, reader, topic)
    assert [one["value"]["item"]["n"] for one in read(client, reader, 2, "avro")] == [3, 4]


def test_values_that_do_not_fit_are_refused_whole(client: httpx.Client, topic: str) -> None:
    text = json.dumps(AVRO)
    wrong = [
        ORDER | {"id": "seven"},
        ORDER | {"note": "not in a union"},
        ORDER | {"amount": {"float": 1.0}},
        ORDER | {"state": "LOST"},
        ORDER | {"raw": "€"},
        {"id": 7},
        [],
    ]
    for value in wrong:
        got = produce(
            client, topic, [{"value": ORDER}, {"value": value}], "avro", value_schema=text
        )
        assert error_of(got) == (422, 42203)
        assert got.json()["message"].startswith("Conversion of JSON to Avro failed: ")
    proto = produce(client, f"{topic}-p", [{"value": {"nope": 1}}], "protobuf", value_schema=PROTO)
    assert error_of(proto) == (422, 42203)
    other = f"{topic}-j"
    text = json.dumps(JSON_SCHEMA)
    checked = produce(client, other, [{"value": {"id": "x"}}], "jsonschema", value_schema=text)
    assert error_of(checked) == (422, 42203)
    assert error_of(client.get(f"/topics/{topic}")) == (404, 40401)  # Nor was it created.


def test_schemas_that_are_missing_or_wrong_have_their_codes(
    client: httpx.Client, topic: str
) -> None:
    missing = produce(client, topic, [{"value": 1}], "avro")
    assert error_of(missing) == (422, 42202)
    keys = produce(client, topic, [{"key": 1, "value": 1}], "avro", value_schema='"int"')
    assert error_of(keys) == (422, 42201)
    broken = produce(client, topic, [{"value": 1}], "avro", value_schema='{"type":"nope"}')
    assert error_of(broken) == (422, 42205)
    assert broken.json()["message"].startswith("Invalid schema: ")
    unknown = produce(client, topic, [{"value": 1}], "avro", value_schema_id=999_999)
    assert error_of(unknown) == (408, 40801)
    got = produce(client, topic, [{"value": 1}], "avro", value_schema='"int"')
    number = got.json()["value_schema_id"]
    kind = produce(client, topic, [{"value": 1}], "jsonschema", value_schema_id=number)
    assert error_of(kind) == (422, 42205)
    incompatible = produce(client, topic, [{"value": "x"}], "avro", value_schema='"string"')
    assert error_of(incompatible) == (408, 40801)


def test_a_record_that_cannot_be_decoded_stays_first_until_somebody_seeks_past_it(
    client: httpx.Client, consumer: Make, topic: str
) -> None:
    stored(produce(client, topic, [{"value": "QUJD"}], "binary"))
    stored(produce(client, topic, [{"value": 5}], "avro", value_schema='"int"'))
    for format_ in ("avro", "json"):
        reader = consumer(format_)
        assign(client, reader, topic)
        for _ in range(2):
            headers = {"accept": media(format_)}
            got = client.get(f"{reader}/records", params={"timeout": 9000}, headers=headers)
            assert error_of(got) == (500, 50002)
            assert f"{topic}-0 at offset 0" in got.json()["message"]
        where = {"offsets": [{"topic": topic, "partition": 0, "offset": 1}]}
        moved = client.post(f"{reader}/positions", json=where)
        assert moved.status_code == 204
        if format_ == "avro":
            assert read(client, reader, 1, "avro")[0]["value"] == 5
