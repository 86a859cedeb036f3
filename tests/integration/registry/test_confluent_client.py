"""confluent-kafka's registry client and serializers, unchanged, on the registry as a process."""

import contextlib
import itertools
import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.broker import BrokerProcess
from tests.support.processes import python
from tests.support.registry import RegistryProcess
from tests.support.waiting import eventually

pytest.importorskip("authlib")
pytest.importorskip("grpc_tools")

import httpx
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.api.metric_pb2 import Metric

from penstock.client.producer.producer import Producer


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(
        tmp_path_factory.mktemp("broker"), {"group.initial.rebalance.delay.ms": "0"}
    ) as running:
        running.start()
        yield running


@pytest.fixture(scope="module")
def registry(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("registry"), broker.address) as running:
        running.start()
        yield running
        assert running.tracebacks() == {}


def client_of(registry: RegistryProcess) -> SchemaRegistryClient:
    """A client without anything in its cache."""
    return SchemaRegistryClient({"url": registry.url})


def avro(*names: str, default: object = None) -> Schema:
    """A record with an id and more fields, with a default or (None) without one."""
    more: list[dict[str, Any]] = [{"name": name, "type": "string"} for name in names]
    for field in more if default is not None else []:
        field["default"] = default
    fields = [{"name": "id", "type": "long"}, *more]
    return Schema(json.dumps({"type": "record", "name": "Order", "fields": fields}), "AVRO")


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def test_avro_goes_round(registry: RegistryProcess) -> None:
    client, there = client_of(registry), value_of("avro-orders")
    data = AvroSerializer(client, avro().schema_str)({"id": 7}, there)
    assert AvroDeserializer(client_of(registry))(data, there) == {"id": 7}
    assert client.get_latest_version("avro-orders-value").version == 1


def test_json_goes_round(registry: RegistryProcess) -> None:
    text = json.dumps(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Order",
            "type": "object",
            "properties": {"id": {"type": "integer"}},
        }
    )
    client, there = client_of(registry), value_of("json-orders")
    data = JSONSerializer(text, client)({"id": 7}, there)
    assert JSONDeserializer(text)(data, there) == {"id": 7}
    found = client_of(registry).get_latest_version("json-orders-value")
    assert found.schema.schema_type == "JSON"


def test_protobuf_goes_round_with_what_it_imports(registry: RegistryProcess) -> None:
    client, there = client_of(registry), value_of("proto-orders")
    options = {"use.deprecated.format": False}
    metric = Metric(type="orders", labels={"shop": "seven"})
    data = ProtobufSerializer(Metric, client, options)(metric, there)
    reader = ProtobufDeserializer(Metric, options, client_of(registry))
    assert reader(data, there) == metric
    found = client_of(registry).get_latest_version("proto-orders-value")
    assert found.schema.schema_type == "PROTOBUF"
    names = {reference.name for reference in found.schema.references}
    assert "google/api/label.proto" in names
    assert names <= set(client.get_subjects())
    latest = options | {"auto.register.schemas": False, "use.latest.version": True}
    assert ProtobufSerializer(Metric, client_of(registry), latest)(metric, there) == data


def test_a_subject_evolves_and_is_deleted(registry: RegistryProcess) -> None:
    client, subject = client_of(registry), "evolving"
    first = client.register_schema(subject, avro())
    second = client.register_schema(subject, avro("note", default=""))
    assert second > first
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema(subject, avro("bare"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    assert not client.test_compatibility(subject, avro("bare"))
    assert client.test_compatibility(subject, avro("other", default=""))
    assert client.lookup_schema(subject, avro()).version == 1
    assert client.get_versions(subject) == [1, 2]
    assert client.set_compatibility(subject, "NONE") == {"compatibility": "NONE"}
    assert client.get_compatibility(subject) == "NONE"
    third = client.register_schema(subject, avro("bare"))
    assert client.delete_version(subject, 3) == 3
    assert client.delete_subject(subject) == [1, 2]
    assert client.delete_subject(subject, permanent=True) == [1, 2, 3]
    with pytest.raises(SchemaRegistryError) as missing:
        client_of(registry).get_latest_version(subject)
    assert missing.value.error_code == 40401
    assert client.register_schema("evolving-later", avro("new", default="")) > third


def test_a_stop_keeps_everything(registry: RegistryProcess) -> None:
    client = client_of(registry)
    schema_id = client.register_schema("kept", avro("kept", default=""))
    client.set_compatibility("kept", "FULL")
    before = client.get_subjects()
    assert registry.stop() == 0
    registry.start()
    after = client_of(registry)
    assert after.get_subjects() == before
    assert after.get_compatibility("kept") == "FULL"
    assert after.lookup_schema("kept", avro("kept", default="")).schema_id == schema_id


def test_ids_are_never_given_twice_though_the_process_is_killed(registry: RegistryProcess) -> None:
    given: list[tuple[int, str]] = []

    def register_until_it_dies(turn: int) -> None:
        client = SchemaRegistryClient({"url": registry.url, "max.retries": 0})
        with contextlib.suppress(httpx.HTTPError):
            for number in itertools.count():
                name = f"field{turn}x{number}"
                given.append((client.register_schema(f"killed-{name}", avro(name)), name))

    for turn in range(3):
        writer = threading.Thread(target=register_until_it_dies, args=[turn])
        before = len(given)
        writer.start()
        eventually(lambda before=before: len(given) >= before + 5, what="five answers")
        registry.kill()
        writer.join()
        registry.start()
    assert len({schema_id for schema_id, _ in given}) == len(given)
    client = client_of(registry)
    for schema_id, name in given:
        assert name in client.get_schema(schema_id).schema_str


def test_an_id_is_not_given_again_after_its_schema_was_deleted_for_good(
    registry: RegistryProcess,
) -> None:
    client = client_of(registry)
    gone = client.register_schema("gone", avro("gone", default=""))
    client.delete_subject("gone")
    client.delete_subject("gone", permanent=True)
    registry.kill()
    registry.start()
    assert client_of(registry).register_schema("next", avro("next", default="")) > gone


def test_the_topic_is_compacted_and_confluents(
    broker: BrokerProcess, registry: RegistryProcess
) -> None:
    from penstock.client.admin import Admin
    from penstock.client.consumer.consumer import Consumer
    from penstock.client.operations.configs import ConfigResource, ResourceType
    from penstock.client.values import TopicPartition

    client_of(registry).register_schema("shown", avro("shown", default=""))
    topic = ConfigResource(ResourceType.TOPIC, "_schemas")
    with Admin(bootstrap_servers=broker.address) as admin:
        entries = admin.describe_configs([topic])[topic]
    assert {e.value for e in entries if e.name == "cleanup.policy"} == {"compact"}
    at = TopicPartition("_schemas", 0)
    keys: list[bytes | None] = []
    with Consumer(bootstrap_servers=broker.address, auto_offset_reset="earliest") as consumer:
        consumer.assign([at])
        end = consumer.end_offsets([at])[at]
        while consumer.position(at) < end:
            keys += [record.key for record in consumer.poll(10.0)]
    assert keys[0] == b'{"keytype":"NOOP","magic":0}'
    assert b'{"keytype":"SCHEMA","subject":"shown","version":1,"magic":1}' in keys


def test_clients_that_break_off_anywhere_harm_nobody(registry: RegistryProcess) -> None:
    body = json.dumps({"schema": avro().schema_str}).encode()
    head = (
        b"POST /subjects/broken-off/versions HTTP/1.1\r\nHost: x\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    whole = head + body
    held = []
    for end in range(0, len(whole), 7):
        one = socket.create_connection(("127.0.0.1", registry.port), timeout=60)
        one.sendall(whole[:end])
        if end % 2:
            one.close()
        else:
            held.append(one)  # It says nothing more and stays.
    try:
        client = client_of(registry)
        assert "broken-off" not in client.get_subjects()
        assert client.register_schema("not-broken-off", avro("whole")) > 0
    finally:
        for one in held:
            one.close()


def test_foreign_and_damaged_records_are_passed_over(
    broker: BrokerProcess, registry: RegistryProcess
) -> None:
    client = client_of(registry)
    before = client.register_schema("before", avro("before"))
    foreign: list[tuple[bytes, bytes]] = [
        (b"", b""),
        (b"\xff\xfe", b"{}"),
        (b"[" * 10_000, b"{}"),
        (b'{"keytype":"TAG","magic":9}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"x","version":1,"magic":1}', b"not json"),
        (b'{"keytype":"SCHEMA","subject":"x","version":1,"magic":1}', b'{"subject":"y"}'),
        (b'{"keytype":"CONFIG","subject":[],"magic":0}', b"{}"),
    ]
    with Producer({"bootstrap.servers": broker.address}) as producer:
        for key, value in foreign:
            producer.send("_schemas", value, key=key, partition=0).result(60)
    after = client.register_schema("after", avro("after"))
    assert after > before
    registry.restart()
    fresh = client_of(registry)
    assert fresh.get_schema(before).schema_str
    assert fresh.register_schema("after", avro("after")) == after


def test_a_topic_that_deletes_is_refused(broker: BrokerProcess, tmp_path: Path) -> None:
    from penstock.client.admin import Admin
    from penstock.client.operations.topics import NewTopic

    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_topics([NewTopic(name="forgetful", partitions=1)])
        admin.create_topics(
            [NewTopic(name="wide", partitions=2, configs={"cleanup.policy": "compact"})]
        )
    for topic, words in (("forgetful", "cleanup.policy=delete"), ("wide", "has 2 partitions")):
        settings = {"kafkastore.topic": topic}
        with RegistryProcess(tmp_path / topic, broker.address, settings) as process:
            process.launch()
            assert process.wait() == 1
            assert words in process.log
            assert "Traceback" not in process.log


def test_a_port_in_use_is_told(registry: RegistryProcess, tmp_path: Path) -> None:
    settings = {"listeners": registry.url}
    bootstrap = registry.settings["kafkastore.bootstrap.servers"].rpartition("/")[2]
    with RegistryProcess(tmp_path, bootstrap, settings) as process:
        process.launch()
        assert process.wait() == 1
        assert f"cannot listen on {registry.address}: Address already in use" in process.log
        assert "Traceback" not in process.log


def test_a_stop_ends_the_wait_for_brokers(tmp_path: Path) -> None:
    from tests.support.processes import free_port

    settings = {"listeners": f"http://127.0.0.1:{free_port()}", "zork": "1"}
    with RegistryProcess(tmp_path, f"127.0.0.1:{free_port()}", settings) as process:
        process.launch()
        eventually(lambda: "zork is not a setting" in process.log, what="a warning")
        assert process.stop() == 0
        assert "told to stop before it had started" in process.log


def registered(client: SchemaRegistryClient) -> int | None:
    """The id of a schema of `orders`; None: the machine was too busy to write it in time."""
    with contextlib.suppress(SchemaRegistryError):
        return client.register_schema("orders", avro())
    return None


SLOW_TO_STOP = """
import asyncio
from penstock.registry.service import process

async def main():
    stopping = asyncio.Event()
    process.stop_on_signals(stopping, lambda: None)
    print("ready", flush=True)
    await stopping.wait()
    print("stopping", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_second_signal_ends_it_at_once() -> None:
    with subprocess.Popen([python(), "-c", SLOW_TO_STOP], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for told in (b"ready\n", b"stopping\n"):
            assert process.stdout.readline() == told
            process.send_signal(signal.SIGTERM)
        assert process.wait(120) == -signal.SIGTERM


def test_schemas_are_told_while_the_brokers_are_away_and_written_when_they_are_back(
    tmp_path: Path,
) -> None:
    settings = {"kafkastore.timeout.ms": "1000"}
    with (
        BrokerProcess(tmp_path / "broker") as broker,
        RegistryProcess(tmp_path / "registry", broker.address, settings) as registry,
    ):
        broker.start()
        registry.start()
        client = SchemaRegistryClient({"url": registry.url, "max.retries": 0})
        first = eventually(lambda: registered(client), timeout_s=120, what="the first schema")
        broker.kill()
        found = json.loads(client_of(registry).get_schema(first).schema_str)
        assert found == json.loads(avro().schema_str)
        for field in ("late", "later"):
            with pytest.raises(SchemaRegistryError) as refused:
                client.register_schema("orders", avro(field, default=""))
            assert refused.value.error_code in (50001, 50002, 50004)
        broker.start()

        def is_written() -> bool:
            with contextlib.suppress(SchemaRegistryError):
                return bool(client.register_schema("others", avro("other")) != first)
            return False

        eventually(is_written, timeout_s=120, what="a schema written after the brokers came back")
        # What had no answer happened or did not; there is no half of it, and it can be asked again.
        assert client_of(registry).get_versions("orders") in ([1], [1, 2])
        again = client_of(registry).register_schema("orders", avro("late", default=""))
        assert client_of(registry).get_versions("orders") == [1, 2]
        assert again == client_of(registry).get_latest_version("orders").schema_id
