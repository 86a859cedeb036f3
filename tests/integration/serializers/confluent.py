"""confluent-kafka's serializers, with topic and value alone, and nothing in their caches."""

from typing import Any

import pytest

pytest.importorskip("authlib")
pytest.importorskip("grpc_tools")

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext


class Confluent:
    """One language, and what it needs to know of the schema."""

    def __init__(self, url: str, kind: str, *, is_key: bool = False, **conf: Any) -> None:
        self._url = url
        self._kind = kind
        self._field = MessageField.KEY if is_key else MessageField.VALUE
        self._conf = conf

    @property
    def _client(self) -> SchemaRegistryClient:
        """A new one each time: what it wrote it would not ask the registry for."""
        return SchemaRegistryClient({"url": self._url})

    def write(self, topic: str, schema: Any, value: Any) -> bytes:
        """The bytes of a value; the schema is a text, a Schema or a message class."""
        classes = {"AVRO": AvroSerializer, "JSON": JSONSerializer}
        if self._kind == "PROTOBUF":
            serializer = ProtobufSerializer(schema, self._client, self._conf)
        elif self._kind == "AVRO":
            serializer = classes["AVRO"](self._client, schema, conf=self._conf)
        else:
            serializer = classes["JSON"](schema, self._client, conf=self._conf)
        data = serializer(value, SerializationContext(topic, self._field))
        assert isinstance(data, bytes)
        return data

    def read(self, topic: str, data: bytes | None, schema: Any = None) -> Any:
        """The value of some bytes."""
        if self._kind == "PROTOBUF":
            reader = ProtobufDeserializer(schema, self._conf, self._client)
        elif self._kind == "AVRO":
            reader = AvroDeserializer(self._client, schema, conf=self._conf)
        else:
            reader = JSONDeserializer(schema, schema_registry_client=self._client)
        return reader(data, SerializationContext(topic, self._field))


__all__ = ["Confluent", "Schema", "SchemaRegistryClient"]
