"""Topics whose records must decode by the schema that they name, in all three languages."""

import json
import os
import signal

import pytest

pytest.importorskip("authlib")
pytest.importorskip("grpc_tools")

import confluent_kafka
import psutil
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.api.metric_pb2 import Metric
from tests.integration.validation.world import DECODED, INVALID_RECORD, Sent, World
from tests.support.broker import BrokerProcess
from tests.support.waiting import eventually

PERSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Person",
        "type": "object",
        "properties": {"age": {"type": "integer", "minimum": 0}},
        "required": ["age"],
    }
)


def workers_of(broker: BrokerProcess) -> list[psutil.Process]:
    """The decoding processes of a broker."""
    children = psutil.Process(broker.pid).children(recursive=True)
    return [one for one in children if any("checking.worker" in word for word in one.cmdline())]


def test_avro_that_does_not_decode_is_refused(world: World) -> None:
    topic = world.create("decoded-avro", DECODED)
    good = world.order(topic, 1)
    assert world.send(topic, good, None, good).offsets == [0, 1, 2]
    for bad in (good[:-1], good + b"!", b"plain"):
        assert world.send(topic, bad).codes == [INVALID_RECORD]
    assert world.end(topic) == 3


def test_json_that_does_not_fit_its_schema_is_refused(world: World) -> None:
    topic = world.create("decoded-json", DECODED)
    serialize = JSONSerializer(PERSON, world.schemas)
    good = serialize({"age": 7}, SerializationContext(topic, MessageField.VALUE))
    assert good is not None
    assert world.send(topic, good).offsets == [0]
    deep = b"[" * 100_000
    for bad in (b'{"age": -1}', b"{}", b"{", b"\xff", deep):
        assert world.send(topic, good[:5] + bad).codes == [INVALID_RECORD]


def test_protobuf_that_does_not_parse_is_refused(world: World) -> None:
    topic = world.create("decoded-protobuf", DECODED)
    options = {"use.deprecated.format": False}
    serialize = ProtobufSerializer(Metric, world.schemas, options)
    metric = Metric(type="orders", labels={"shop": "seven"})
    good = serialize(metric, SerializationContext(topic, MessageField.VALUE))
    assert good is not None
    assert world.send(topic, good).offsets == [0]
    for bad in (good[:5] + b"\x02\x14", good[:-3], good[:5] + b"\0\xff"):
        assert world.send(topic, bad).codes == [INVALID_RECORD]


def test_a_process_killed_in_the_middle_of_load_costs_no_record_and_no_order(
    world: World, broker: BrokerProcess
) -> None:
    topic = world.create("decoded-killed", DECODED)
    values = world.orders(topic, 4_000)
    settings = {"enable.idempotence": True, "linger.ms": 1, "batch.num.messages": 50}
    producer = confluent_kafka.Producer({"bootstrap.servers": world.bootstrap, **settings})
    sent = Sent()
    pause = len(values) // 4
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=0, on_delivery=sent.note)
        producer.poll(0)
        if number % pause == pause // 2:
            # Each kill meets another batch: all before the last one were answered.
            seen = len(sent.answers)
            eventually(lambda seen=seen: producer.poll(0.01) or len(sent.answers) > seen)
            (worker,) = eventually(lambda: workers_of(broker), what="a decoding process")
            os.kill(worker.pid, signal.SIGKILL)
    assert producer.flush(120) == 0
    assert set(sent.codes) == {0}
    assert [message.value() for message in world.read(topic, len(values))] == values
    assert world.end(topic) == len(values)
