"""Clients that know nothing of us at every secured listener, by each mechanism they have."""

import asyncio
import json
import os
import ssl
import subprocess
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokens
from tests.integration.security.secured_broker import (
    MECHANISMS,
    ONE_WAY,
    PASSWORD,
    SecuredBroker,
    protocol_of,
    unsigned_token,
)
from tests.support.java import compiled, run_java
from tests.support.key_stores import trusting_jks
from tests.support.outside import needs

from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic

HERE = Path(__file__).parent
# By listener: TLS with a certificate and without, and each mechanism in clear and inside TLS.
WAYS = [
    ("SSL", ""),
    (ONE_WAY, ""),
    *(
        (listener, mechanism)
        for listener in ("SASL_PLAINTEXT", "SASL_SSL")
        for mechanism in (*MECHANISMS, "OAUTHBEARER")
    ),
]
MODULES = {"PLAIN": "plain.Plain", "OAUTHBEARER": "oauthbearer.OAuthBearer"} | dict.fromkeys(
    MECHANISMS[1:], "scram.Scram"
)


def create(secured: SecuredBroker, topic: str) -> None:
    with Admin(secured.settings("PLAINTEXT")) as admin:
        admin.create_topics([NewTopic(name=topic, partitions=1)])


def java_properties(secured: SecuredBroker, protocol: str, mechanism: str) -> str:
    """As the oldest client can read them: stores of Java's own, and no PEM."""
    (secured.directory / "trust.jks").write_bytes(trusting_jks("trusted", secured.authority))
    (secured.directory / "client.jks").write_bytes(secured.client.jks("client"))
    lines = {
        "bootstrap.servers": secured.address(protocol),
        "security.protocol": protocol_of(protocol),
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
        if mechanism == "OAUTHBEARER":
            lines["sasl.jaas.config"] = f'{module} required unsecuredLoginStringClaim_sub="alice";'
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def files_of(secured: SecuredBroker, protocol: str) -> dict[str, str]:
    """What a client reads for TLS: whom it trusts, and who it is where the listener asks."""
    own = {
        "cert": str(secured.directory / "client.pem"),
        "key": str(secured.directory / "client.key"),
    }
    return {"ca": str(secured.ca)} | (own if protocol == "SSL" else {})


@pytest.mark.kafka
@pytest.mark.parametrize(
    "release", ["kafka-4.3.1", "kafka-3.9.1", "clients-2.8.2", "clients-0.10.2.2"]
)
def test_java_clients_come_in(secured: SecuredBroker, release: str, tmp_path: Path) -> None:
    create(secured, f"java-{release}")
    files = []
    ways = WAYS
    if release.startswith("clients-0.10"):  # OAUTHBEARER came with 2.0.
        ways = [way for way in WAYS if way[1] != "OAUTHBEARER"]
    for number, (protocol, mechanism) in enumerate(ways):
        file = tmp_path / f"{number}.properties"
        file.write_text(java_properties(secured, protocol, mechanism))
        files.append(str(file))
    sources = ("SecuredRoundTrip.java", "DatatypeConverter.java")
    program = ":".join(compiled(HERE / "java" / source, needs(release)) for source in sources)
    printed = run_java(program, "SecuredRoundTrip", f"java-{release}", *files)
    values = [line for line in printed.splitlines() if line.startswith("value")]
    assert values == [f"value {number + 1}" for number in range(len(ways))]


def test_kafkajs_comes_in(secured: SecuredBroker) -> None:
    modules = needs("kafkajs") / "node_modules"
    create(secured, "kafkajs")
    ways: list[dict[str, Any]] = []
    for protocol, mechanism in WAYS:
        way: dict[str, Any] = {"brokers": [secured.address(protocol)]}
        if protocol_of(protocol).endswith("SSL"):
            way["ssl"] = files_of(secured, protocol)
        if mechanism:
            way["sasl"] = {
                "mechanism": mechanism.lower(),
                "username": "alice",
                "password": PASSWORD,
            }
        if mechanism == "OAUTHBEARER":
            way["sasl"] = {"mechanism": "oauthbearer", "token": unsigned_token("alice")}
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


def test_franz_go_comes_in(secured: SecuredBroker) -> None:
    program = needs("franz-go").with_name("secured")
    create(secured, "franz-go")
    ways: list[dict[str, Any]] = []
    for protocol, mechanism in WAYS:
        way: dict[str, Any] = {"brokers": secured.address(protocol)}
        if protocol_of(protocol).endswith("SSL"):
            way["tls"] = files_of(secured, protocol)
        if mechanism:
            way |= {"mechanism": mechanism, "user": "alice", "password": PASSWORD}
        if mechanism == "OAUTHBEARER":
            way["token"] = unsigned_token("alice")
        ways.append(way)
    done = subprocess.run(
        [str(program), "franz-go", json.dumps(ways)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"value {number}" for number in range(len(ways))]


class AioTokens(AbstractTokenProvider):
    """Where aiokafka gets its token."""

    async def token(self) -> str:
        return unsigned_token("alice")


class PythonTokens(KafkaPythonTokens):
    """Where kafka-python does."""

    def token(self) -> str:
        return unsigned_token("alice")


@pytest.mark.parametrize("protocol", ["SSL", ONE_WAY])
def test_librdkafka_and_kafka_python_come_in_over_tls(
    secured: SecuredBroker, protocol: str
) -> None:
    topic = f"tls-{protocol}".lower()
    create(secured, topic)
    producer = confluent_kafka.Producer(secured.settings(protocol))
    producer.produce(topic, b"in")
    assert producer.flush(60) == 0
    how = {
        "bootstrap_servers": secured.address(protocol),
        "security_protocol": "SSL",
        "ssl_cafile": str(secured.ca),
    }
    if protocol == "SSL":
        how |= {
            "ssl_certfile": str(secured.directory / "client.pem"),
            "ssl_keyfile": str(secured.directory / "client.key"),
        }
    round_trip_of_kafka_python(topic, how)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_kafka_python_comes_in_with_a_bearer_token(secured: SecuredBroker, protocol: str) -> None:
    topic = f"bearer-{protocol}".lower()
    create(secured, topic)
    how = {
        "bootstrap_servers": secured.address(protocol),
        "security_protocol": protocol,
        "ssl_cafile": str(secured.ca),
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": PythonTokens(),
    }
    round_trip_of_kafka_python(topic, how)


def round_trip_of_kafka_python(topic: str, how: dict[str, Any]) -> None:
    producer = KafkaProducer(**how)
    sent = producer.send(topic, b"too").get(60)
    producer.close()
    consumer = KafkaConsumer(**how)
    consumer.assign([partition := TopicPartition(topic, 0)])
    consumer.seek(partition, sent.offset)
    assert next(consumer).value == b"too"
    consumer.close()


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_aiokafka_comes_in(secured: SecuredBroker, protocol: str, mechanism: str) -> None:
    context = ssl.create_default_context(cafile=str(secured.ca))
    if protocol == "SSL":
        context.load_cert_chain(secured.directory / "client.pem", secured.directory / "client.key")
    how: dict[str, Any] = {
        "bootstrap_servers": secured.address(protocol),
        "security_protocol": protocol_of(protocol),
        "ssl_context": context if protocol_of(protocol).endswith("SSL") else None,
    }
    if mechanism == "OAUTHBEARER":
        how |= {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": AioTokens()}
    elif mechanism:
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
