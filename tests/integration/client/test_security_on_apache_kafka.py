"""Our clients and commands at the secured listeners of an Apache Kafka."""

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.certificates import Certificates, make_certificates
from tests.support.outside import needs
from tests.support.processes import HOST, ROOT, free_port, python
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.consumer.consumer import Consumer
from penstock.client.errors import AuthenticationError
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer
from penstock.client.wire.cluster import ClusterClient
from penstock.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.kafka
PASSWORD = 'pen"cil, =1'
SALT = b"salt for the tests"
ITERATIONS = 8192
HASHES = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
JAAS = 'org.apache.kafka.common.security.{}LoginModule required username="alice" password="{}";'


class Secured:
    """A Kafka with a listener of each kind, and what a client must say at each."""

    def __init__(self, kafka: KafkaProcess, world: Certificates, ports: Mapping[str, int]) -> None:
        self.kafka = kafka
        self.world = world
        self.ports = ports

    def settings(self, protocol: str, mechanism: str = "", **more: object) -> dict[str, object]:
        """Ours under librdkafka's names; `more` with underscores for dots."""
        found: dict[str, object] = {
            "bootstrap.servers": f"{HOST}:{self.ports[protocol]}",
            "security.protocol": protocol,
        }
        if protocol.endswith("SSL"):
            found["ssl.ca.location"] = str(self.world.ca)
        if protocol == "SSL":
            found["ssl.certificate.location"] = str(self.world.client)
            found["ssl.key.location"] = str(self.world.client_key)
        if mechanism:
            found |= {"sasl.mechanism": mechanism}
            found |= {"sasl.username": "alice", "sasl.password": PASSWORD}
        return found | {name.replace("_", "."): value for name, value in more.items()}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    jars = needs(CURRENT)
    world = make_certificates(tmp_path_factory.mktemp("certificates"))
    ports = {name: free_port() for name in ("SSL", "SASL_PLAINTEXT", "SASL_SSL")}
    with KafkaProcess(jars, tmp_path_factory.mktemp("kafka"), kafka_settings(world)) as kafka:
        for key in ("listeners", "advertised.listeners"):
            more = "".join(f",{name}://{HOST}:{port}" for name, port in ports.items())
            kafka.settings[key] += more
        kafka.start()
        add_scram_users(kafka.address)
        made = Secured(kafka, world, ports)
        eventually(lambda: knows_users(made))
        yield made


def kafka_settings(world: Certificates) -> dict[str, str]:
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    # In a properties file a backslash is written twice.
    users = f'user_alice="{PASSWORD}"'.replace('n"c', 'n\\\\"c')
    found = {
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}"
            for name, protocol in {
                "CONTROLLER": "PLAINTEXT",
                **{p: p for p in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")},
            }.items()
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "group.initial.rebalance.delay.ms": "0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(world.server_both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(world.ca),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        lead = f"listener.name.{listener}"
        found[f"{lead}.plain.sasl.jaas.config"] = f"{plain} required {users};"
        for mechanism in HASHES:
            found[f"{lead}.{mechanism.lower()}.sasl.jaas.config"] = f"{scram} required;"
    return found


def add_scram_users(address: str) -> None:
    """What `kafka-configs --alter --add-config 'SCRAM-SHA-256=[password=...]'` sends."""
    with ClusterClient(address) as cluster:
        for number, name in HASHES.values():  # Kafka takes one change per user and request.
            wanted = ScramCredentialUpsertion(
                name="alice",
                mechanism=number,
                iterations=ITERATIONS,
                salt=SALT,
                salted_password=hashlib.pbkdf2_hmac(name, PASSWORD.encode(), SALT, ITERATIONS),
            )
            request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[wanted])
            answer = cluster.ask_any(request, AlterUserScramCredentialsResponse)
            assert [one.error_code for one in answer.results] == [0], answer


def knows_users(secured: Secured) -> bool:
    """Kafka answers once its controller knows; its listeners hear of a user a moment later."""
    for mechanism in HASHES:
        try:
            with Admin(secured.settings("SASL_PLAINTEXT", mechanism)) as admin:
                admin.list_topics()
        except AuthenticationError:
            return False
    return True


WAYS = [
    ("SSL", ""),
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-512"),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-512"),
]


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_admin_producer_and_consumer_come_in(
    secured: Secured, protocol: str, mechanism: str
) -> None:
    settings = secured.settings(protocol, mechanism)
    topic = f"{protocol}-{mechanism}".lower()
    with Admin(settings) as admin:
        admin.create_topics([NewTopic(name=topic, partitions=1)])
        eventually(lambda: topic in [listing.name for listing in admin.list_topics()])
    with Producer(settings) as producer:
        assert producer.send(topic, value=b"in").result(120).offset == 0
    reading = {**settings, "group.id": topic, "auto.offset.reset": "earliest"}
    with Consumer(reading) as consumer:
        consumer.subscribe([topic])
        assert [record.value for record in eventually(lambda: consumer.poll(0.5))] == [b"in"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused_in_kafkas_words(secured: Secured, mechanism: str) -> None:
    settings = secured.settings("SASL_SSL", mechanism, sasl_password="pen")
    with (
        Admin(settings) as admin,
        pytest.raises(AuthenticationError, match=r"user 'alice' .*Authentication failed"),
    ):
        admin.list_topics()


def test_a_client_without_a_certificate_is_refused_where_one_is_asked_for(
    secured: Secured,
) -> None:
    settings = secured.settings("SSL")
    del settings["ssl.certificate.location"], settings["ssl.key.location"]
    with Admin(settings) as admin, pytest.raises(AuthenticationError, match="certificate"):
        admin.list_topics()


def test_javas_own_properties_serve_the_commands(secured: Secured, tmp_path: Path) -> None:
    quoted = PASSWORD.replace('"', '\\\\"')
    lines = [
        "security.protocol=SASL_SSL",
        "sasl.mechanism=SCRAM-SHA-512",
        "sasl.jaas.config=" + JAAS.format("scram.Scram", quoted),
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={secured.world.ca}",
    ]
    file = tmp_path / "client.properties"
    file.write_text("\n".join(lines) + "\n")
    topic = "by-command"
    run(secured, "topics", "--create", "--topic", topic, "--command-config", file)
    eventually(lambda: topic in run(secured, "topics", "--list", "--command-config", file))
    to_topic = ["--topic", topic, "--producer.config", file]
    run(secured, "console-producer", *to_topic, stdin="one\ntwo\n")
    words = ["--from-beginning", "--max-messages", "2", "--group", "by-command"]
    read = run(secured, "console-consumer", "--topic", topic, *words, "--consumer.config", file)
    assert read == "one\ntwo\n"
    shown = run(
        *(secured, "consumer-groups", "--describe", "--group", "by-command"),
        *("--command-config", file),
    )
    assert "by-command" in shown


def test_spark_comes_in_with_its_password_in_a_file(
    secured: Secured, spark: "SparkSession", tmp_path: Path
) -> None:
    (tmp_path / "password").write_text(PASSWORD + "\n")
    settings = secured.settings("SASL_SSL", "SCRAM-SHA-512")
    settings["sasl.password"] = f"file:{tmp_path / 'password'}"
    with Admin(settings) as admin:
        admin.create_topics([NewTopic(name="by-spark", partitions=2)])
        eventually(lambda: "by-spark" in [listing.name for listing in admin.list_topics()])
    options = {f"kafka.{name}": str(value) for name, value in settings.items()}
    rows = spark.range(50).selectExpr("string(id) key", "string(id) value")
    sink = rows.write.format("penstock").mode("append")
    sink.options(**options, topic="by-spark").save()
    found = spark.read.format("penstock").options(**options, subscribe="by-spark").load()
    assert sorted(int(row.value) for row in found.collect()) == list(range(50))
    plan = found._jdf.queryExecution().toString()
    assert PASSWORD not in plan


def test_a_command_says_in_one_sentence_why_it_may_not(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    lines = [
        "security.protocol=SASL_SSL",
        "sasl.mechanism=PLAIN",
        "sasl.username=alice",
        "sasl.password=env:A_WRONG_PASSWORD",
        f"ssl.ca.location={secured.world.ca}",
    ]
    file.write_text("\n".join(lines) + "\n")
    done = command(
        *(secured, "topics", "--list", "--command-config", file),
        environment={"A_WRONG_PASSWORD": "hush"},
    )
    assert done.returncode == 1
    assert "refused user 'alice' (PLAIN): Authentication failed" in done.stderr
    assert "hush" not in done.stderr
    assert "Traceback" not in done.stderr


def run(secured: Secured, tool: str, *words: object, stdin: str = "") -> str:
    done = command(secured, tool, *words, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(
    secured: Secured,
    tool: str,
    *words: object,
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    address = f"{HOST}:{secured.ports['SASL_SSL']}"
    whole = [python(), "-m", "penstock.cli.main", tool, "--bootstrap-server", address]
    return subprocess.run(
        [*whole, *map(str, words)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
    )
