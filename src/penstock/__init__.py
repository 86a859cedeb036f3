"""Penstock: event streaming in Python that any Kafka client takes for Kafka.

    from penstock import Admin, Consumer, Producer

The clients and the values they take and give; docs/api.md tells of each. A broker, its pipelines
and its tools are commands: `penstock --help`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.admin import Admin
    from penstock.client.aio import AsyncConsumer, AsyncProducer
    from penstock.client.consumer.consumer import Consumer
    from penstock.client.headers import RecordHeaders
    from penstock.client.operations.configs import ConfigChange, ConfigResource, ResourceType
    from penstock.client.operations.offsets import OffsetSpec
    from penstock.client.operations.topics import NewPartitions, NewTopic
    from penstock.client.producer.producer import Producer
    from penstock.client.values import (
        ConsumerRecord,
        ConsumerRecords,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        ProducerRecord,
        RecordMetadata,
        TopicPartition,
    )
    from penstock.errors import PenstockError
    from penstock.schemas.serializers.avro import AvroDeserializer, AvroSerializer
    from penstock.schemas.serializers.json_schema import (
        JsonSchemaDeserializer,
        JsonSchemaSerializer,
    )
    from penstock.schemas.serializers.protobuf import ProtobufDeserializer, ProtobufSerializer

__version__ = "0.1.0"

__all__ = [
    "Admin",
    "AsyncConsumer",
    "AsyncProducer",
    "AvroDeserializer",
    "AvroSerializer",
    "ConfigChange",
    "ConfigResource",
    "Consumer",
    "ConsumerRecord",
    "ConsumerRecords",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "NewPartitions",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "PenstockError",
    "Producer",
    "ProducerRecord",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "RecordHeaders",
    "RecordMetadata",
    "ResourceType",
    "TopicPartition",
    "__version__",
]

_HOMES = {
    "Admin": "client.admin",
    "AsyncConsumer": "client.aio",
    "AsyncProducer": "client.aio",
    "AvroDeserializer": "schemas.serializers.avro",
    "AvroSerializer": "schemas.serializers.avro",
    "ConfigChange": "client.operations.configs",
    "ConfigResource": "client.operations.configs",
    "Consumer": "client.consumer.consumer",
    "ConsumerRecord": "client.values",
    "ConsumerRecords": "client.values",
    "JsonSchemaDeserializer": "schemas.serializers.json_schema",
    "JsonSchemaSerializer": "schemas.serializers.json_schema",
    "NewPartitions": "client.operations.topics",
    "NewTopic": "client.operations.topics",
    "OffsetAndMetadata": "client.values",
    "OffsetAndTimestamp": "client.values",
    "OffsetSpec": "client.operations.offsets",
    "PenstockError": "errors",
    "Producer": "client.producer.producer",
    "ProducerRecord": "client.values",
    "ProtobufDeserializer": "schemas.serializers.protobuf",
    "ProtobufSerializer": "schemas.serializers.protobuf",
    "RecordHeaders": "client.headers",
    "RecordMetadata": "client.values",
    "ResourceType": "client.operations.configs",
    "TopicPartition": "records.topic_partition",
}


def __getattr__(name: str) -> object:
    # A broker starts without librdkafka; only who asks for a client pays for it.
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"penstock.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING"})
