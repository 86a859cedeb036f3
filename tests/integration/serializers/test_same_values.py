"""Whatever our serializers write, confluent-kafka's deserializers read, and the reverse."""

import itertools
import json
import os
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from tests.integration.serializers.confluent import Confluent
from tests.integration.serializers.samples import avro_pairs, json_pairs, proto_pairs
from tests.support.registry import RegistryProcess

from penstock.schemas.documents.codec import document_codec
from penstock.schemas.serializers import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryClient,
)

EXAMPLES = 400 if os.environ.get("PENSTOCK_LONG") else 15
TOPICS = (f"same-{number}" for number in itertools.count())
modest = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # A smaller example is not worth an hour of questions.
    suppress_health_check=list(HealthCheck),
)


@modest
@given(pair=avro_pairs())
def test_avro_is_the_same_for_both(registry: RegistryProcess, pair: tuple[Any, Any]) -> None:
    schema, value = pair
    topic, text, ours = next(TOPICS), json.dumps(schema), RegistryClient(registry.url)
    theirs = Confluent(registry.url, "AVRO")
    written = AvroSerializer(text, registry=ours).serialize(topic, value)
    assert written is not None
    assert written == theirs.write(topic, text, value)
    read = theirs.read(topic, written)
    assert AvroDeserializer(registry=ours).deserialize(topic, written) == read
    codec = document_codec(ours.by_id(int.from_bytes(written[1:5], "big")))
    assert codec.encode(codec.decode(written)) == written


@modest
@given(pair=json_pairs())
def test_json_is_the_same_for_both(registry: RegistryProcess, pair: tuple[Any, Any]) -> None:
    schema, document = pair
    topic, text, ours = next(TOPICS), json.dumps(schema), RegistryClient(registry.url)
    theirs = Confluent(registry.url, "JSON")
    written = JsonSchemaSerializer(text, registry=ours).serialize(topic, document)
    assert written is not None
    assert written == theirs.write(topic, text, document)
    assert theirs.read(topic, written) == document
    assert JsonSchemaDeserializer(registry=ours).deserialize(topic, written) == document
    codec = document_codec(ours.by_id(int.from_bytes(written[1:5], "big")))
    assert codec.encode(codec.decode(written)) == written


@modest
@given(pair=proto_pairs())
def test_protobuf_is_the_same_for_both(registry: RegistryProcess, pair: tuple[Any, Any]) -> None:
    message_class, message = pair
    topic, ours = next(TOPICS), RegistryClient(registry.url)
    theirs = Confluent(registry.url, "PROTOBUF")
    written = ProtobufSerializer(registry=ours).serialize(topic, message)
    assert written is not None
    assert written == theirs.write(topic, message_class, message)
    assert theirs.read(topic, written, message_class) == message
    assert ProtobufDeserializer(message_class, registry=ours).deserialize(topic, written) == message
    found = ProtobufDeserializer(registry=ours).deserialize(topic, written)
    assert found.SerializeToString(deterministic=True) == message.SerializeToString(
        deterministic=True
    )
    name = message_class.DESCRIPTOR.full_name
    codec = document_codec(ours.by_id(int.from_bytes(written[1:5], "big")), message=name)
    back = codec.encode(codec.decode(written))
    assert theirs.read(topic, back, message_class) == message
