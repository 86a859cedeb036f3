"""Topics whose records must decode by the schema that they name, in all three languages."""

import json
import os
import signal
import threading

import pytest

pytest.importorskip("authlib")
pytest.importorskip("grpc_tools")

import psutil
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.api.metric_pb2 import Metric
from tests.integration.validation.world import DECODED, INVALID_RECORD, World
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


def test_a_process_that_is_killed_in_the_middle_of_load_costs_no_record(
    world: World, broker: BrokerProcess
) -> None:
    topic = world.create("decoded-killed", DECODED)
    good = world.order(topic, 1)
    stopping = threading.Event()
    codes: list[int] = []

    def produce() -> None:
        while not stopping.is_set():
            codes.extend(world.send(topic, *[good] * 200, linger_ms=5).codes)

    load = threading.Thread(target=produce)
    load.start()
    try:
        for _ in range(3):
            (worker,) = eventually(lambda: workers_of(broker), what="a decoding process")
            os.kill(worker.pid, signal.SIGKILL)
            enough = len(codes) + 400
            eventually(lambda enough=enough: len(codes) >= enough)
    finally:
        stopping.set()
        load.join(120)
    assert set(codes) == {0}
    assert world.end(topic) == len(codes)
