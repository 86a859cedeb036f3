"""What somebody with few rights is told: the same as by Apache Kafka, answer by answer.

The answers of Apache Kafka are kept in tests/golden/acls; with its jars at hand they are checked.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.security.acl_plays import SETTINGS, play, prepare_plays
from tests.integration.security.acl_script import answers, settings_of
from tests.support.apache_kafka import CURRENT, LAST_WITH_ZOOKEEPER, KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.outside import needs
from tests.support.processes import HOST, ROOT, free_port
from tests.support.zookeeper import ZooKeeperProcess

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
        **SETTINGS,
    }
    with BrokerProcess(directory, settings, port=ports["PLAINTEXT"], broker_id=1) as broker:
        broker.start()
        with BrokerConnection(HOST, broker.port, timeout_s=120) as admin:
            prepare_plays(admin, ports["SASL_PLAINTEXT"])
            found = answers(admin, ports["SASL_PLAINTEXT"], play)
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


# Where 3.9 with ZooKeeper is another program, by request: it has no consumer groups of the new
# protocol and no settings of groups, hides what a topic was made with in another field, and tells
# who may see a topic but not delete it whether it is there.
OTHERWISE_IN_3_9 = {
    "describe consumer groups",
    "describe configs",
    "incremental alter configs",
    "create topics",
    "delete topics",
}
# What shows records, topics and groups that only the plays make, which need APIs of 4.3.
SEES_PLAYS = {"list groups", "metadata of all", "offset for leader epoch", "fetch"}


@pytest.mark.kafka
def test_the_last_kafka_with_zookeeper_answers_alike(tmp_path: Path) -> None:
    expected = json.loads(GOLDEN.read_text())
    found = json.loads(json.dumps(answers_with_zookeeper(tmp_path)))
    skipped = OTHERWISE_IN_3_9 | SEES_PLAYS
    both = {name for name in found.keys() & expected.keys() if request_of(name) not in skipped}
    assert len(both) > 700
    assert differences({n: found[n] for n in both}, {n: expected[n] for n in both}) == {}


def request_of(name: str) -> str:
    """Of `situation: request vN`."""
    return name.partition(": ")[2].rpartition(" v")[0]


def answers_with_zookeeper(directory: Path) -> dict[str, Any]:
    ports = {"SASL_PLAINTEXT": free_port()}
    zookeeper = ZooKeeperProcess(directory / "zookeeper")
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "inter.broker.listener.name": "PLAINTEXT",
        "zookeeper.connect": zookeeper.connect,
        **settings_of(ports),
        **SETTINGS,
    }
    jars = needs(LAST_WITH_ZOOKEEPER)
    with zookeeper, KafkaWithZooKeeper(jars, directory / "kafka", settings) as kafka:
        for key in ("listeners", "advertised.listeners"):
            kafka.settings[key] = f"PLAINTEXT://{HOST}:{kafka.port},{listeners(ports)}"
        kafka.start()
        with BrokerConnection(HOST, kafka.port, timeout_s=120) as admin:
            return answers(admin, ports["SASL_PLAINTEXT"], lambda _admin, _port: iter(()))


class KafkaWithZooKeeper(KafkaProcess):
    """Without what KRaft wants to be told, and without its format."""

    def prepare(self) -> None:
        for key in ("process.roles", "controller.quorum.voters", "controller.listener.names"):
            self.settings.pop(key, None)
        self.settings["broker.id"] = self.settings.pop("node.id")
        super().prepare()

    def format(self) -> None:
        """The broker does it by itself."""


def kafka_answers(directory: Path) -> dict[str, Any]:
    ports = {"SASL_PLAINTEXT": free_port()}
    settings = {
        "authorizer.class.name": STANDARD,
        "inter.broker.listener.name": "PLAINTEXT",
        **settings_of(ports),
        **SETTINGS,
    }
    with KafkaProcess(needs(CURRENT), directory, settings) as kafka:
        for key in ("listeners", "advertised.listeners"):
            kafka.settings[key] += f",{listeners(ports)}"
        kafka.settings["listener.security.protocol.map"] = (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        )
        kafka.start()
        with BrokerConnection(HOST, kafka.port, timeout_s=120) as admin:
            prepare_plays(admin, ports["SASL_PLAINTEXT"])
            return answers(admin, ports["SASL_PLAINTEXT"], play)
