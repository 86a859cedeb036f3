"""Clients that know nothing of us at every secured listener, by each mechanism they have."""

import asyncio
import json
import os
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from tests.integration.security.secured_broker import (
    MECHANISMS,
    PASSWORD,
    SecuredBroker,
)
from tests.support.java import compiled, run_java
from tests.support.key_stores import trusting_jks
from tests.support.outside import needs

from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic

HERE = Path(__file__).parent
WAYS = [("SSL", ""), *((p, m) for p in ("SASL_PLAINTEXT", "SASL_SSL") for m in MECHANISMS)]
MODULES = {"PLAIN": "plain.Plain"} | dict.fromkeys(MECHANISMS[1:], "scram.Scram")


def create(secured: SecuredBroker, topic: str) -> None:
    with Admin(secured.settings("PLAINTEXT")) as admin:
        admin.create_topics([NewTopic(name=topic, partitions=1)])


def java_properties(secured: SecuredBroker, protocol: str, mechanism: str) -> str:
    """As the oldest client can read them: stores of Java's own, and no PEM."""
    (secured.directory / "trust.jks").write_bytes(trusting_jks("trusted", secured.authority))
    (secured.directory / "client.jks").write_bytes(secured.client.jks("client"))
    lines = {
        "bootstrap.servers": secured.address(protocol),
        "security.protocol": protocol,
        "ssl.truststore.type": "JKS",
        "ssl.truststore.location": str(secured.directory / "trust.jks"),
        "ssl.truststore.password": "trusted",
    }
    if protocol == "SSL":
        lines |= {
            "ssl.keystore.type": "JKS",
            "ssl.keystore.location": str(secured.directory / "client.jks"),
            "ssl.keystore.password": "client",
            "ssl.key.password": "client",
        }
    if mechanism:
        quoted = PASSWORD.replace('"', '\\\\"')
        module = f"org.apache.kafka.common.security.{MODULES[mechanism]}LoginModule"
        lines["sasl.mechanism"] = mechanism
        lines["sasl.jaas.config"] = f'{module} required username="alice" password="{quoted}";'
    return "".join(f"{name}={value}\n" for name, value in lines.items())


@pytest.mark.kafka
@pytest.mark.parametrize("release", ["kafka-4.3.1", "kafka-3.9.1", "clients-0.10.2.2"])
def test_java_clients_come_in(secured: SecuredBroker, release: str, tmp_path: Path) -> None:
    create(secured, f"java-{release}")
    files = []
    ways = WAYS
    if release.startswith("clients-0.10"):  # Its SCRAM needs a class that Java dropped with 11.
        ways = [way for way in WAYS if not way[1].startswith("SCRAM")]
    for number, (protocol, mechanism) in enumerate(ways):
        file = tmp_path / f"{number}.properties"
        file.write_text(java_properties(secured, protocol, mechanism))
        files.append(str(file))
    program = compiled(HERE / "java" / "SecuredRoundTrip.java", needs(release))
    printed = run_java(program, "SecuredRoundTrip", f"java-{release}", *files)
    values = [line for line in printed.splitlines() if line.startswith("value")]
    assert values == [f"value {number + 1}" for number in range(len(ways))]


def test_kafkajs_comes_in(secured: SecuredBroker) -> None:
    modules = needs("kafkajs") / "node_modules"
    create(secured, "kafkajs")
    ways: list[dict[str, Any]] = []
    for protocol, mechanism in WAYS:
        way: dict[str, Any] = {"brokers": [secured.address(protocol)]}
        if protocol.endswith("SSL"):
            way["ssl"] = {"ca": str(secured.ca)}
        if protocol == "SSL":
            way["ssl"] |= {
                "cert": str(secured.directory / "client.pem"),
                "key": str(secured.directory / "client.key"),
            }
        if mechanism:
            way["sasl"] = {
                "mechanism": mechanism.lower(),
                "username": "alice",
                "password": PASSWORD,
            }
        ways.append(way)
    done = subprocess.run(
        ["node", str(HERE / "node" / "secured_round_trip.js"), "kafkajs", json.dumps(ways)],
        env={**os.environ, "NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"value {number}" for number in range(len(ways))]


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_aiokafka_comes_in(secured: SecuredBroker, protocol: str, mechanism: str) -> None:
    context = ssl.create_default_context(cafile=str(secured.ca))
    context.load_cert_chain(secured.directory / "client.pem", secured.directory / "client.key")
    how: dict[str, Any] = {
        "bootstrap_servers": secured.address(protocol),
        "security_protocol": protocol,
        "ssl_context": context if protocol.endswith("SSL") else None,
    }
    if mechanism:
        how |= {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": "alice",
            "sasl_plain_password": PASSWORD,
        }
    topic = f"aio-{protocol}-{mechanism}".lower()
    create(secured, topic)

    async def scenario() -> None:
        async with AIOKafkaProducer(**how) as producer:
            await producer.send_and_wait(topic, b"in")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **how) as consumer:
            assert (await consumer.getone()).value == b"in"

    asyncio.run(asyncio.wait_for(scenario(), 120))
