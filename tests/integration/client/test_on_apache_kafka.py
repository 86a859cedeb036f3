"""The same clients and commands on an Apache Kafka: they know no broker of their own."""

import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.outside import needs
from tests.support.processes import ROOT, python
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.consumer.consumer import Consumer
from penstock.client.operations.configs import ConfigChange, ConfigResource, ResourceType
from penstock.client.operations.topics import NewPartitions, NewTopic
from penstock.client.producer.producer import Producer
from penstock.client.values import OffsetAndMetadata, TopicPartition

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with KafkaProcess(needs(CURRENT), tmp_path_factory.mktemp("kafka"), settings) as made:
        made.start()
        yield made


def tool(kafka: KafkaProcess, name: str, *words: object, stdin: str = "") -> str:
    command = [python(), "-m", "penstock.cli.main", name, "--bootstrap-server", kafka.address]
    command += [str(word) for word in words]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_topics_are_administered(kafka: KafkaProcess) -> None:
    with Admin(bootstrap_servers=kafka.address) as admin:
        ids = admin.create_topics([NewTopic(name="adm", partitions=2)])
        admin.create_partitions({"adm": NewPartitions(total_count=3)})
        resource = ConfigResource(ResourceType.TOPIC, "adm")
        admin.alter_configs({resource: [ConfigChange(name="retention.ms", value="5000")]})

        # Kafka answers once its controller knows; its brokers hear of it a moment later.
        def shown() -> bool:
            entries = admin.describe_configs([resource])[resource]
            described = admin.describe_topics(["adm"])["adm"]
            assert described.topic_id == ids["adm"]
            values = {entry.name: entry.value for entry in entries}
            return values["retention.ms"] == "5000" and len(described.partitions) == 3

        eventually(shown)
        assert admin.describe_log_dirs()[1][0].error is None
        admin.delete_topics(["adm"])
        eventually(lambda: "adm" not in [listing.name for listing in admin.list_topics()])


def test_a_group_consumes_what_a_transaction_produced(kafka: KafkaProcess) -> None:
    settings = {"bootstrap.servers": kafka.address}
    with Producer[Any, Any]({**settings, "transactional.id": "x"}) as producer:
        with producer.transaction():
            producer.send("txn", b"kept")
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send("txn", b"dropped").result(120)
            raise ZeroDivisionError
        with producer.transaction():
            producer.send("txn", b"last")
    reading = {
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "group.protocol": "consumer",
    }
    with Consumer[Any, Any]({**settings, **reading}) as consumer:
        consumer.subscribe(["txn"])
        values: list[bytes] = []
        deadline_s = time.monotonic() + 40
        while len(values) < 2 and time.monotonic() < deadline_s:
            values += [record.value for record in consumer.poll(0.5)]
        assert values == [b"kept", b"last"]
        at = TopicPartition("txn", 0)
        consumer.commit({at: OffsetAndMetadata(3, "note")})
        assert consumer.committed([at])[at] == OffsetAndMetadata(3, "note")


def test_commands_work(kafka: KafkaProcess) -> None:
    assert tool(kafka, "topics", "--create", "--topic", "cmd") == "Created topic cmd.\n"
    tool(kafka, "console-producer", "--topic", "cmd", stdin="a\nb\n")
    words = ["--topic", "cmd", "--from-beginning", "--max-messages", 2]
    assert tool(kafka, "console-consumer", *words) == "a\nb\n"
    assert tool(kafka, "console-consumer", *words, "--group", "cg") == "a\nb\n"
    assert tool(kafka, "get-offsets", "--topic", "cmd") == "cmd:0:2\n"
    quota = ["--entity-type", "clients", "--entity-name", "c1"]
    tool(kafka, "configs", "--alter", *quota, "--add-config", "producer_byte_rate=1024")
    assert tool(kafka, "configs", "--describe", *quota) == (
        "Quota configs for client-id 'c1' are producer_byte_rate=1024.0\n"
    )
    assert "usable: 13" in tool(kafka, "broker-api-versions")
