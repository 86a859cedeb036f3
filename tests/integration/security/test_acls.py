"""What somebody with few rights is told: the same as by Apache Kafka, answer by answer.

The answers of Apache Kafka are kept in tests/golden/acls; with its jars at hand they are checked.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.security.acl_script import answers, settings_of
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.outside import needs
from tests.support.processes import HOST, ROOT, free_port

from penstock.client.wire.connection import BrokerConnection

GOLDEN = ROOT / "tests/golden/acls/answers.json"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def listeners(ports: dict[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def differences(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {"found": found.get(name), "expected": expected.get(name)}
        for name in sorted(found.keys() | expected.keys())
        if found.get(name) != expected.get(name)
    }


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    directory: Path = tmp_path_factory.mktemp("ours")
    ports = {name: free_port() for name in ("PLAINTEXT", "SASL_PLAINTEXT")}
    settings = {
        "listeners": listeners(ports),
        "inter.broker.listener.name": "PLAINTEXT",
        "authorizer.class.name": STANDARD,
        **settings_of(ports),
    }
    with BrokerProcess(directory, settings, port=ports["PLAINTEXT"], broker_id=1) as broker:
        broker.start()
        with BrokerConnection(HOST, broker.port, timeout_s=120) as admin:
            found = answers(admin, ports["SASL_PLAINTEXT"])
        assert broker.tracebacks() == {}
        yield found
        broker.stop()


def test_the_answers_are_those_of_apache_kafka(ours: dict[str, Any]) -> None:
    expected = json.loads(GOLDEN.read_text())
    assert differences(json.loads(json.dumps(ours)), expected) == {}


@pytest.mark.kafka
def test_the_kept_answers_are_apache_kafkas(tmp_path: Path) -> None:
    found = json.loads(json.dumps(kafka_answers(tmp_path)))
    assert differences(found, json.loads(GOLDEN.read_text())) == {}


def kafka_answers(directory: Path) -> dict[str, Any]:
    ports = {"SASL_PLAINTEXT": free_port()}
    settings = {
        "authorizer.class.name": STANDARD,
        "inter.broker.listener.name": "PLAINTEXT",
        **settings_of(ports),
    }
    with KafkaProcess(needs(CURRENT), directory, settings) as kafka:
        for key in ("listeners", "advertised.listeners"):
            kafka.settings[key] += f",{listeners(ports)}"
        kafka.settings["listener.security.protocol.map"] = (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        )
        kafka.start()
        with BrokerConnection(HOST, kafka.port, timeout_s=120) as admin:
            return answers(admin, ports["SASL_PLAINTEXT"])
