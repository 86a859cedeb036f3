"""Producer and consumer with serializers by name and by object, against a registry as a process."""

import itertools
import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tests.integration.serializers.confluent import Confluent, Schema, SchemaRegistryClient
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.spark_topics import Topic
from tests.unit.schemas.protos import add

from penstock.client.consumer.consumer import Consumer
from penstock.client.errors import SerializationError
from penstock.client.producer.producer import Producer
from penstock.client.values import TopicPartition
from penstock.errors import ConfigError
from penstock.schemas.errors import DecodeError, EncodeError, SchemaError, UnknownSchema
from penstock.schemas.registry_client import RegistryRefused, RegistryUnreachable
from penstock.schemas.serializers import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    ReferencedVersion,
    RegistryClient,
)

NAMES = (f"topic-{number}" for number in itertools.count())
PACKAGE = "io.confluent.kafka.serializers"
ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
)
JSON_ORDER = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "shop.Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    }
)


@pytest.fixture
def ours(registry: RegistryProcess) -> RegistryClient:
    return RegistryClient(registry.url)


def subjects(registry: RegistryProcess) -> list[str]:
    return list(SchemaRegistryClient({"url": registry.url}).get_subjects())


def one_back(
    broker: BrokerProcess, config: Mapping[str, object], topic: str, count: int
) -> list[Any]:
    """The values of a topic, as a consumer with this configuration sees them."""
    with Consumer[Any, Any]({"bootstrap.servers": broker.address, **config}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        found: list[Any] = []
        while len(found) < count:
            found += [record.value for record in consumer.poll(60)]
        return found


def order_class(*, imports: bool = False) -> Any:
    """shop.Order, and on request what it imports."""
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(
        name="shop/order.proto", package="shop", syntax="proto3"
    )
    file.message_type.add(name="Other")
    order = file.message_type.add(name="Order")
    add(order, "id", "int64")
    if imports:
        deep = descriptor_pb2.FileDescriptorProto(
            name="deep/unit.proto", package="deep", syntax="proto3"
        )
        add(deep.message_type.add(name="Unit"), "name", "string")
        money = descriptor_pb2.FileDescriptorProto(
            name="money.proto", package="money", syntax="proto3", dependency=["deep/unit.proto"]
        )
        price = money.message_type.add(name="Price")
        add(price, "cents", "int64")
        add(price, "unit", "deep.Unit")
        file.dependency.extend(["money.proto", "google/protobuf/timestamp.proto"])
        add(order, "price", "money.Price")
        add(order, "at", "google.protobuf.Timestamp")
        for one in (deep, money, _timestamp()):
            pool.Add(one)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def _timestamp() -> descriptor_pb2.FileDescriptorProto:
    from google.protobuf import timestamp_pb2

    file = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(file)
    return file


@pytest.mark.parametrize(
    "names",
    [("avro", "avro"), (f"{PACKAGE}.KafkaAvroSerializer", f"{PACKAGE}.KafkaAvroDeserializer")],
)
def test_avro_by_name_goes_through_a_topic(
    broker: BrokerProcess, registry: RegistryProcess, names: tuple[str, str]
) -> None:
    topic = next(NAMES)
    Topic(broker.port, topic)
    config = {
        "bootstrap.servers": broker.address,
        "schema.registry.url": f"http://127.0.0.1:1,{registry.url}",
        "value.serializer": names[0],
        "value.schema": ORDER,
    }
    with Producer[Any, Any](config) as producer:
        producer.send(topic, {"id": 1}).result(60)
        producer.send(topic, None).result(60)
        with pytest.raises(SerializationError, match=r"no value and no default|extra|fields"):
            producer.send(topic, {"id": 1, "more": 2})
    reading = {"schema.registry.url": registry.url, "value.deserializer": names[1]}
    assert one_back(broker, reading, topic, 2) == [{"id": 1, "note": None}, None]
    assert f"{topic}-value" in subjects(registry)


def test_json_and_protobuf_by_name(broker: BrokerProcess, registry: RegistryProcess) -> None:
    message = order_class()(id=5)
    for kind, schema, value, back in (
        ("json.KafkaJsonSchema", JSON_ORDER, {"id": 5}, lambda one: one == {"id": 5}),
        ("protobuf.KafkaProtobuf", None, message, lambda one: one.id == 5),
    ):
        topic = next(NAMES)
        Topic(broker.port, topic)
        config: dict[str, object] = {
            "bootstrap.servers": broker.address,
            "schema.registry.url": registry.url,
            "value.serializer": f"{PACKAGE}.{kind}Serializer",
            "value.schema": schema,
        }
        with Producer[Any, Any](config) as producer:
            producer.send(topic, value).result(60)
        name = f"{PACKAGE}.{kind}Deserializer"
        reading = {"schema.registry.url": registry.url, "value.deserializer": name}
        (found,) = one_back(broker, reading, topic, 1)
        assert back(found)


def test_names_that_do_not_fit_are_refused(broker: BrokerProcess) -> None:
    config = {"bootstrap.servers": broker.address}
    for settings, words in (
        ({"value.serializer": "avro"}, "schema.registry.url is missing"),
        ({"value.serializer": f"{PACKAGE}.KafkaAvroDeserializer"}, "is a deserializer"),
        ({"value.serializer": f"{PACKAGE}.KafkaNothingSerializer"}, "no counterpart"),
    ):
        with pytest.raises(ConfigError, match=words):
            Producer({**config, **settings})


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("TopicNameStrategy", "{topic}-value"),
        (f"{PACKAGE}.subject.RecordNameStrategy", "shop.Order"),
        ("TopicRecordNameStrategy", "{topic}-shop.Order"),
        (lambda topic, is_key, record: f"{topic}/{is_key}/{record}", "{topic}/False/shop.Order"),
    ],
)
def test_subjects_are_named_by_the_strategy_in_every_language(
    registry: RegistryProcess, ours: RegistryClient, strategy: Any, expected: str
) -> None:
    settings = {"value.subject.name.strategy": strategy}
    for serializer, value in (
        (AvroSerializer(ORDER, registry=ours, settings=settings), {"id": 1}),
        (JsonSchemaSerializer(JSON_ORDER, registry=ours, settings=settings), {"id": 1}),
        (ProtobufSerializer(registry=ours, settings=settings), order_class()(id=1)),
    ):
        topic = next(NAMES)
        subject = expected.format(topic=topic)
        if subject == "shop.Order":  # One subject for all: each language finds it empty.
            client = SchemaRegistryClient({"url": registry.url})
            if subject in client.get_subjects():
                client.delete_subject(subject)
                client.delete_subject(subject, permanent=True)
        serializer.serialize(topic, value)
        assert subject in subjects(registry)


def test_keys_have_subjects_of_their_own(registry: RegistryProcess, ours: RegistryClient) -> None:
    topic = next(NAMES)
    data = AvroSerializer("string", registry=ours, is_key=True).serialize(topic, "k")
    assert f"{topic}-key" in subjects(registry)
    theirs = Confluent(registry.url, "AVRO", is_key=True)
    assert data == theirs.write(topic, '"string"', "k")
    assert AvroDeserializer(registry=ours, is_key=True).deserialize(topic, data) == "k"


def test_bytes_alone_have_no_length_in_front(
    registry: RegistryProcess, ours: RegistryClient
) -> None:
    topic = next(NAMES)
    data = AvroSerializer('"bytes"', registry=ours).serialize(topic, b"abc")
    assert data is not None
    assert data[5:] == b"abc"
    assert data == Confluent(registry.url, "AVRO").write(topic, '"bytes"', b"abc")
    assert AvroDeserializer(registry=ours).deserialize(topic, data) == b"abc"


def test_without_registering_the_schema_must_be_there(
    registry: RegistryProcess, ours: RegistryClient
) -> None:
    topic = next(NAMES)
    settings = {"auto.register.schemas": "false"}
    with pytest.raises(RegistryRefused, match="40401"):
        AvroSerializer(ORDER, registry=ours, settings=settings).serialize(topic, {"id": 1})
    assert f"{topic}-value" not in subjects(registry)
    first = AvroSerializer(ORDER, registry=ours).serialize(topic, {"id": 1})
    again = AvroSerializer(ORDER, registry=ours, settings=settings).serialize(topic, {"id": 1})
    assert first == again


def test_the_latest_schema_is_written_and_read_by(
    registry: RegistryProcess, ours: RegistryClient
) -> None:
    topic = next(NAMES)
    old = AvroSerializer(ORDER, registry=ours).serialize(topic, {"id": 1})
    wider = json.loads(ORDER)
    wider["fields"].append({"name": "count", "type": "int", "default": 3})
    SchemaRegistryClient({"url": registry.url}).register_schema(
        f"{topic}-value", Schema(json.dumps(wider), "AVRO")
    )
    latest = {"use.latest.version": True}
    new = AvroSerializer(registry=ours, settings=latest).serialize(topic, {"id": 1, "count": 9})
    confluent = Confluent(registry.url, "AVRO", **{**latest, "auto.register.schemas": False})
    assert new == confluent.write(topic, ORDER, {"id": 1, "count": 9})
    reader = AvroDeserializer(registry=ours, settings=latest)
    assert reader.deserialize(topic, old) == {"id": 1, "note": None, "count": 3}
    assert AvroDeserializer(registry=ours).deserialize(topic, old) == {"id": 1, "note": None}
    own = AvroDeserializer({"type": "record", "name": "shop.Order", "fields": [
        {"name": "id", "type": "double"}]}, registry=ours)  # fmt: skip
    assert own.deserialize(topic, new) == {"id": 1.0}


def test_a_schema_is_written_by_its_id_and_by_its_metadata(
    registry: RegistryProcess, ours: RegistryClient
) -> None:
    topic = next(NAMES)
    client = SchemaRegistryClient({"url": registry.url})
    schema_id = ours.register(f"{topic}-other", AvroSerializer(ORDER)._own)  # type: ignore[arg-type]
    data = AvroSerializer(registry=ours, settings={"use.schema.id": schema_id}).serialize(
        topic, {"id": 2}
    )
    assert data is not None
    assert int.from_bytes(data[1:5], "big") == schema_id
    assert f"{topic}-value" not in client.get_subjects()
    from confluent_kafka.schema_registry import Metadata, MetadataProperties

    metadata = Metadata(None, MetadataProperties({"major": "2"}), None)
    marked = client.register_schema(f"{topic}-value", Schema(ORDER, "AVRO", metadata=metadata))
    found = AvroSerializer(registry=ours, settings={"use.latest.with.metadata": "major=2"})
    data = found.serialize(topic, {"id": 2})
    assert data is not None
    assert int.from_bytes(data[1:5], "big") == marked


def test_references_of_avro_and_json_are_resolved(
    registry: RegistryProcess, ours: RegistryClient
) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    topic = next(NAMES)
    color = {"type": "enum", "name": "paint.Color", "symbols": ["RED", "BLUE"]}
    client.register_schema(f"{topic}-color", Schema(json.dumps(color), "AVRO"))
    car = {"type": "record", "name": "Car", "fields": [{"name": "c", "type": "paint.Color"}]}
    reference = ReferencedVersion(name="paint.Color", subject=f"{topic}-color", version=1)
    avro = AvroSerializer(car, registry=ours, references=[reference])
    data = avro.serialize(topic, {"c": "BLUE"})
    assert Confluent(registry.url, "AVRO").read(topic, data) == {"c": "BLUE"}
    assert AvroDeserializer(registry=ours).deserialize(topic, data) == {"c": "BLUE"}
    topic = next(NAMES)
    client.register_schema(f"{topic}-line", Schema('{"type": "integer"}', "JSON"))
    reference = ReferencedVersion(name="line.json", subject=f"{topic}-line", version=1)
    schema = {"type": "object", "properties": {"line": {"$ref": "line.json"}}}
    checked = JsonSchemaSerializer(schema, registry=ours, references=[reference])
    data = checked.serialize(topic, {"line": 1})
    assert JsonSchemaDeserializer(registry=ours).deserialize(topic, data) == {"line": 1}
    assert Confluent(registry.url, "JSON").read(topic, data) == {"line": 1}
    with pytest.raises(EncodeError, match="line"):
        checked.serialize(topic, {"line": "x"})


def test_imports_of_protobuf_are_registered_as_confluent_does(
    registry: RegistryProcess, ours: RegistryClient
) -> None:
    topic = next(NAMES)
    message_class = order_class(imports=True)
    message = message_class(id=1, price={"cents": 5, "unit": {"name": "EUR"}}, at={"seconds": 9})
    data = ProtobufSerializer(message_class, registry=ours).serialize(topic, message)
    assert data is not None
    assert data[5:7] == b"\x02\x02"  # The second message of its file.
    assert data == Confluent(registry.url, "PROTOBUF").write(topic, message_class, message)
    read = Confluent(registry.url, "PROTOBUF").read(topic, data, message_class)
    assert read == message
    assert ProtobufDeserializer(message_class, registry=ours).deserialize(topic, data) == message
    found = ProtobufDeserializer(registry=ours).deserialize(topic, data)
    assert (found.price.unit.name, found.at.seconds) == ("EUR", 9)
    assert {"money.proto", "deep/unit.proto"} <= set(subjects(registry))
    latest = ProtobufSerializer(registry=ours, settings={"use.latest.version": "true"})
    assert latest.serialize(topic, message) == data


def test_values_that_do_not_fit_are_refused_with_the_reason(ours: RegistryClient) -> None:
    topic = next(NAMES)
    for serializer, value, words in (
        (AvroSerializer(ORDER, registry=ours), {"id": "x"}, "not of the Avro schema"),
        (AvroSerializer(ORDER, registry=ours), {}, "not of the Avro schema"),
        (JsonSchemaSerializer(JSON_ORDER, registry=ours), {"id": "x"}, "id: "),
        (ProtobufSerializer(order_class(), registry=ours), {"id": 1}, "no shop.Order"),
        (ProtobufSerializer(registry=ours), "text", "no Protobuf message"),
    ):
        name = f"{topic}-{type(serializer).__name__}"
        with pytest.raises(EncodeError, match=words):
            serializer.serialize(name, value)
    with pytest.raises(ConfigError, match="no schema: give it one"):
        AvroSerializer(registry=ours).serialize(topic, {"id": 1})
    with pytest.raises(ConfigError, match="no schema registry"):
        AvroSerializer(ORDER).serialize(topic, {"id": 1})


def test_bytes_that_do_not_fit_are_refused_with_the_reason(ours: RegistryClient) -> None:
    topic = next(NAMES)
    good = AvroSerializer(ORDER, registry=ours).serialize(topic, {"id": 1})
    assert good is not None
    for reader in (
        AvroDeserializer(registry=ours),
        JsonSchemaDeserializer(registry=ours),
        ProtobufDeserializer(registry=ours),
    ):
        assert reader.deserialize(topic, None) is None
        for data, error in (
            (b"", DecodeError),
            (b"\x01\x00\x00\x00\x01a", DecodeError),
            (b"\x00\x7f\xff\xff\xff\x00\x00", UnknownSchema),
            (
                good[:-1] if isinstance(reader, AvroDeserializer) else good,
                (DecodeError, SchemaError),
            ),
        ):
            with pytest.raises(error):
                reader.deserialize(topic, data)
    other = ProtobufSerializer(registry=ours).serialize(topic + "p", order_class()(id=1))
    refund = descriptor_pb2.FileDescriptorProto  # A message of quite another file.
    with pytest.raises(DecodeError, match=r"is a shop\.Order .* not a google"):
        ProtobufDeserializer(refund, registry=ours).deserialize(topic, other)


def test_a_deep_value_is_refused_and_does_not_end_the_process(ours: RegistryClient) -> None:
    topic = next(NAMES)
    chain = {"type": "record", "name": "C", "fields": [{"name": "c", "type": ["null", "C"]}]}
    data = AvroSerializer(chain, registry=ours).serialize(topic, {"c": {"c": None}})
    assert data is not None
    reader = AvroDeserializer(registry=ours)
    assert reader.deserialize(topic, data) == {"c": {"c": None}}
    with pytest.raises(DecodeError, match="too deeply"):
        reader.deserialize(topic, data[:5] + b"\x02" * 3_000_000 + b"\x00")
    holes = AvroSerializer({"type": "array", "items": "null"}, registry=ours)
    data = holes.serialize(topic + "n", [None])
    assert data is not None
    with pytest.raises(DecodeError, match="cannot have"):
        reader.deserialize(topic, data[:5] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00")


def test_rules_are_not_written_past(registry: RegistryProcess, ours: RegistryClient) -> None:
    from confluent_kafka.schema_registry import Rule, RuleKind, RuleMode, RuleSet

    topic = next(NAMES)
    rule = Rule("checkId", None, RuleKind.CONDITION, RuleMode.WRITE, "CEL", None, None,
                "message.id > 0", None, None, False)  # fmt: skip
    schema = Schema(ORDER, "AVRO", rule_set=RuleSet(None, [rule]))
    SchemaRegistryClient({"url": registry.url}).register_schema(f"{topic}-value", schema)
    serializer = AvroSerializer(registry=ours, settings={"use.latest.version": True})
    with pytest.raises(SchemaError, match=r"rule checkId \(CEL, WRITE\)"):
        serializer.serialize(topic, {"id": 1})


def test_an_incompatible_schema_is_refused_in_the_registrys_words(ours: RegistryClient) -> None:
    topic = next(NAMES)
    AvroSerializer(ORDER, registry=ours).serialize(topic, {"id": 1})
    other = AvroSerializer({"type": "record", "name": "Order", "namespace": "shop", "fields": [
        {"name": "id", "type": "string"}]}, registry=ours)  # fmt: skip
    with pytest.raises(RegistryRefused) as refused:
        other.serialize(topic, {"id": "x"})
    assert (refused.value.status, refused.value.error_code) == (409, 409)


def test_a_registry_that_is_away_is_said_to_be() -> None:
    gone = RegistryClient("http://127.0.0.1:1", timeout_s=1)
    with pytest.raises(RegistryUnreachable, match="no schema registry answers"):
        AvroSerializer(ORDER, registry=gone).serialize("any", {"id": 1})


def test_many_threads_share_one_serializer(ours: RegistryClient) -> None:
    topics = [next(NAMES) for _ in range(4)]
    serializer = AvroSerializer(ORDER, registry=ours)
    reader = AvroDeserializer(registry=ours)
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(50):
            topic = topics[(number + turn) % 4]
            value = {"id": number * 1000 + turn, "note": None}
            back = reader.deserialize(topic, serializer.serialize(topic, value))
            if back != value:
                wrong.append(back)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
