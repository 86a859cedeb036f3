"""Serializers and deserializers that work with a schema registry: Avro, JSON Schema, Protobuf."""
