"""A broker and a registry that know each other, and clients that are not ours."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess

INVALID_RECORD = 87  # confluent_kafka.KafkaError.INVALID_RECORD
BY_ID = {"confluent.value.schema.validation": "true"}
DECODED = {"penstock.value.validation": "decode"}
ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
    }
)


class Sent:
    """What became of the records that a producer sent, in the order in which they were sent."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, str] | int] = []  # An offset, or a code and a text.

    def note(self, error: Any, message: Any) -> None:
        """As librdkafka tells it."""
        self.answers.append(message.offset() if error is None else (error.code(), error.str()))

    @property
    def codes(self) -> list[int]:
        return [0 if isinstance(answer, int) else answer[0] for answer in self.answers]

    @property
    def offsets(self) -> list[int]:
        return [answer for answer in self.answers if isinstance(answer, int)]


class World:
    """One address of brokers, and one registry on them."""

    def __init__(self, bootstrap: str, registry: RegistryProcess) -> None:
        self.bootstrap = bootstrap
        self.registry = registry
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    @property
    def schemas(self) -> SchemaRegistryClient:
        return SchemaRegistryClient({"url": self.registry.url})

    def create(
        self, name: str, config: Mapping[str, str], *, partitions: int = 1, replicas: int = 1
    ) -> str:
        topic = NewTopic(name, partitions, replicas, config=dict(config))
        for made in self.admin.create_topics([topic], operation_timeout=30).values():
            made.result(60)
        return name

    def register(self, subject: str, text: str = ORDER, kind: str = "AVRO") -> int:
        return int(self.schemas.register_schema(subject, Schema(text, kind)))

    def order(self, topic: str, number: int) -> bytes:
        """An order as confluent-kafka's serializer writes it; its schema is registered."""
        return self.orders(topic, number + 1)[number]

    def orders(self, topic: str, count: int) -> list[bytes]:
        """So many orders, each with its number."""
        serialize = AvroSerializer(self.schemas, ORDER)
        there = SerializationContext(topic, MessageField.VALUE)
        return [bytes(serialize({"id": n, "note": "n"}, there) or b"") for n in range(count)]

    def send(self, topic: str, *values: bytes | None, **config: Any) -> Sent:
        """All values in one batch; waits for the answers."""
        return self.send_keyed(topic, *((b"k", value) for value in values), **config)

    def send_keyed(
        self, topic: str, *records: tuple[bytes | None, bytes | None], **config: Any
    ) -> Sent:
        # The linger ends with `flush`: no record goes before all are there.
        settings = {"linger.ms": 30_000, "message.timeout.ms": 60_000}
        settings.update({name.replace("_", "."): value for name, value in config.items()})
        producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap, **settings})
        sent = Sent()
        for key, value in records:
            producer.produce(topic, value, key, partition=0, on_delivery=sent.note)
        assert producer.flush(90) == 0
        return sent

    def read(self, topic: str, count: int, **config: Any) -> list[Any]:
        """The first so many messages of partition 0."""
        settings = {"group.id": "unused", "auto.offset.reset": "earliest", **config}
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.bootstrap, **settings})
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
            found: list[Any] = []
            while len(found) < count:
                message = consumer.poll(60)
                assert message is not None, f"{len(found)} of {count} came"
                assert message.error() is None, message.error()
                found.append(message)
            return found
        finally:
            consumer.close()

    def end(self, topic: str) -> int:
        """The offset after the last."""
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "unused"}
        )
        try:
            there = confluent_kafka.TopicPartition(topic, 0)
            return int(consumer.get_watermark_offsets(there, timeout=60)[1])
        finally:
            consumer.close()


@contextmanager
def broker_and_registry(
    directory: Path, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[BrokerProcess, World]]:
    """Each is told where the other will be before either is started."""
    broker = BrokerProcess(directory / "broker", settings)
    with broker, RegistryProcess(directory / "registry", broker.address) as registry:
        broker.settings["confluent.schema.registry.url"] = registry.url
        broker.start()
        registry.start()
        yield broker, World(broker.address, registry)
        assert broker.tracebacks() == {}
