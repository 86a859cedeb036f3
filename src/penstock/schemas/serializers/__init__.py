"""Serializers and deserializers that work with a schema registry: Avro, JSON Schema, Protobuf.

    from penstock.schemas.serializers import AvroDeserializer, AvroSerializer

Producers and consumers take them as objects, or by name: Confluent's Java class names, or the words
`avro`, `json-schema` and `protobuf`. Settings have Confluent's names (`settings.py`).
"""

from penstock.schemas.registry_client import ReferencedVersion, RegistryClient
from penstock.schemas.serializers.avro import AvroDeserializer, AvroSerializer
from penstock.schemas.serializers.json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
from penstock.schemas.serializers.protobuf import ProtobufDeserializer, ProtobufSerializer

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "ReferencedVersion",
    "RegistryClient",
]
