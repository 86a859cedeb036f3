"""What was denied: in the log by Kafka's words, and in a topic for who keeps it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from tests.integration.security.acl_script import PLAIN_MODULE
from tests.support.broker import BrokerProcess
from tests.support.processes import HOST, free_port

from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer
from penstock.errors import PenstockError

AUDIT = "who-tried-what"


def settings_of(user: str, port: int) -> dict[str, Any]:
    return {
        "bootstrap.servers": f"{HOST}:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
    }


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("audited")
    port = free_port()
    people = " ".join(f'user_{name}="{name}-secret"' for name in ("admin", "mallory"))
    settings = {
        "listeners": f"SASL_PLAINTEXT://{HOST}:{port}",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {people};",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:admin",
        "penstock.audit.topic": AUDIT,
        "penstock.audit.allowed": "true",
        "num.partitions": "2",
    }
    with BrokerProcess(directory, settings, port=port) as broker:
        broker.start()
        yield broker
        assert broker.tracebacks() == {}
        broker.stop()


def read_audit(port: int, wanted: int) -> list[dict[str, Any]]:
    consumer = Consumer(
        {**settings_of("admin", port), "group.id": "auditors", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([AUDIT])
    found: list[dict[str, Any]] = []
    while sum(not one["allowed"] for one in found) < wanted:
        found += [json.loads(one.value()) for one in consumer.consume(100, 1) if not one.error()]
    consumer.close()
    return found


def test_denials_are_told_in_the_log_and_in_the_topic(audited: BrokerProcess) -> None:
    with Admin(settings_of("admin", audited.port)) as admin:
        admin.create_topics([NewTopic(name="plans", partitions=1)])
    with Producer(settings_of("admin", audited.port)) as producer:
        producer.send("plans", value=b"secret").result(120)
    with Admin(settings_of("mallory", audited.port)) as mallory, pytest.raises(PenstockError):
        mallory.delete_topics(["plans"])
    line = (
        "Principal = User:mallory is Denied Operation = Describe from host = 127.0.0.1 on resource "
        "= Topic:LITERAL:plans for request = DeleteTopics with resourceRefCount = 1"
    )
    found = read_audit(audited.port, 1)
    assert f"INFO {line} (kafka.authorizer.logger)" in audited.log
    denied = next(one for one in found if not one["allowed"])
    assert {name: denied[name] for name in ("principal", "host", "operation", "request")} == {
        "principal": "User:mallory",
        "host": HOST,
        "operation": "DESCRIBE",
        "request": "DeleteTopics",
    }
    assert (denied["resourceType"], denied["resourceName"]) == ("TOPIC", "plans")
    allowed = {(one["principal"], one["operation"], one["resourceName"]) for one in found}
    assert ("User:admin", "WRITE", "plans") in allowed
    assert not any(one["allowed"] and one["resourceName"] == AUDIT for one in found)
