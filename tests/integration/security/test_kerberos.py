"""Kerberos at a broker and between brokers, against a ticket service of our own on the loopback.

Both sides are `localhost` in their tickets. The clients are ours, kafka-python and aiokafka (on
the same library), Java's (an implementation of its own) and, with its plug-in, librdkafka by kcat.
"""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer
from tests.support.broker import BrokerProcess
from tests.support.cluster import Cluster
from tests.support.java import compiled, run_java
from tests.support.kdc import KeyCentre, running_centre
from tests.support.outside import needs
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.errors import AuthenticationError
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer
from penstock.client.wire.connection import BrokerConnection
from penstock.client.wire.security import Security
from penstock.errors import ConfigError
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest
from penstock.security.sasl.gssapi_client import kerberos_tokens
from penstock.security.sasl.kerberos_login import KerberosLogin

gssapi = pytest.importorskip("gssapi", reason='needs `pip install "penstock[kerberos]"`')

HERE = Path(__file__).parent
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
BROKER = "kafka/localhost"
RULES = "RULE:[1:$1](carol)s/carol/caroline/,DEFAULT"


class Kerberized:
    """A broker that takes tickets, and the keys of its users."""

    def __init__(self, centre: KeyCentre, broker: BrokerProcess, port: int) -> None:
        self.centre = centre
        self.broker = broker
        self.address = f"localhost:{port}"
        self.keytabs = {name: centre.add(name) for name in ("alice", "carol")}

    def line(self, user: str) -> str:
        return f'{MODULE} required useKeyTab=true keyTab="{self.keytabs[user]}" principal="{user}";'

    def settings(self, user: str) -> dict[str, object]:
        """Under Kafka's names."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": self.line(user),
        }


@pytest.fixture(scope="module")
def kerberized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberized]:
    """A broker alone. It replicates to nobody, but comes to itself by Kerberos where it must."""
    directory = tmp_path_factory.mktemp("kerberos")
    with running_centre(directory) as centre, pytest.MonkeyPatch.context() as patch:
        for name, value in centre.environment.items():
            patch.setenv(name, value)
        keytab = centre.add(BROKER)
        port, inside = free_port(), free_port()
        settings = broker_settings(keytab, port, inside)
        with BrokerProcess(directory / "broker", settings, port=inside) as broker:
            broker.start()
            made = Kerberized(centre, broker, port)
            with Admin({"bootstrap.servers": f"{HOST}:{inside}"}) as admin:
                admin.create_topics([NewTopic(name="t", partitions=1)])
            yield made
            assert broker.tracebacks() == {}
            broker.stop()


def broker_settings(keytab: Path, port: int, inside: int) -> dict[str, str]:
    line = f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{BROKER}";'
    return {
        "listeners": f"SASL_PLAINTEXT://{HOST}:{port},PLAINTEXT://{HOST}:{inside}",
        "advertised.listeners": f"SASL_PLAINTEXT://localhost:{port},PLAINTEXT://{HOST}:{inside}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": RULES,
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": line,
        "delegation.token.secret.key": "the key of all tokens",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


@pytest.mark.parametrize(("user", "known_as"), [("alice", "alice"), ("carol", "caroline")])
def test_our_client_comes_in_with_a_keytab(
    kerberized: Kerberized, user: str, known_as: str
) -> None:
    with Admin(kerberized.settings(user)) as admin:
        assert "t" in [listing.name for listing in admin.list_topics()]
        token = admin.create_delegation_token()  # It says who the broker takes us for.
    assert str(token.information.owner) == f"User:{known_as}"


def test_our_client_comes_in_with_the_tickets_of_kinit(kerberized: Kerberized) -> None:
    tickets = kerberized.centre.tickets(kerberized.keytabs["alice"], "alice")
    settings = kerberized.settings("alice")
    settings["sasl.jaas.config"] = f'{MODULE} required useTicketCache=true ticketCache="{tickets}";'
    with Admin(settings) as admin:
        assert "t" in [listing.name for listing in admin.list_topics()]


def test_who_has_no_key_does_not_come_in(kerberized: Kerberized) -> None:
    settings = kerberized.settings("alice")
    line = kerberized.line("alice").replace('principal="alice"', 'principal="mallory"')
    with (
        Admin({**settings, "sasl.jaas.config": line}) as admin,
        pytest.raises(AuthenticationError, match="no ticket of mallory"),
    ):
        admin.list_topics()
    with (
        Admin({**settings, "sasl.kerberos.service.name": "other"}) as admin,
        pytest.raises(AuthenticationError, match="other/localhost"),
    ):
        admin.list_topics()


def test_librdkafka_says_that_it_was_built_without_kerberos(kerberized: Kerberized) -> None:
    try:
        producer = Producer(kerberized.settings("alice"))
    except ConfigError as error:
        assert "GSSAPI" in str(error)
        return
    with producer:  # This one was built with it.
        producer.send("t", value=b"in").result(120)


def tokens_of(kerberized: Kerberized) -> list[bytes]:
    """What alice sends; the broker's answers are real, its conversation is broken off."""
    login = KerberosLogin(
        service="kafka", principal="alice", keytab=str(kerberized.keytabs["alice"])
    )
    return [next(kerberos_tokens(login, host="localhost"))]


def answer_to(kerberized: Kerberized, *tokens: bytes) -> list[tuple[int, str | None]]:
    port = int(kerberized.address.rpartition(":")[2])
    with BrokerConnection(HOST, port, timeout_s=120, security=Security()) as connection:
        connection.request(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
        found = []
        for token in tokens:
            answer = connection.request(SaslAuthenticateRequest(auth_bytes=token), 2)
            found.append((answer.error_code, answer.error_message))  # type: ignore[attr-defined]
        return found


def test_a_ticket_that_is_sent_again_or_spoiled_is_refused(kerberized: Kerberized) -> None:
    (ticket,) = tokens_of(kerberized)
    words = "Authentication failed during authentication due to invalid credentials"
    refused = (58, f"{words} with SASL mechanism GSSAPI")
    assert answer_to(kerberized, ticket) == [(0, "")]
    assert answer_to(kerberized, ticket) == [refused]
    eventually(lambda: "GSSAPI: Request is a replay" in kerberized.broker.log)
    (another,) = tokens_of(kerberized)
    for spoiled in (
        b"",
        b"junk",
        another[:-1],
        another[: len(another) // 2],
        another[:-4] + b"abc",
    ):
        assert answer_to(kerberized, spoiled) == [refused]
    (good,) = tokens_of(kerberized)
    assert answer_to(kerberized, good, b"", b"no layer at all")[-1] == refused
    (good,) = tokens_of(kerberized)
    assert answer_to(kerberized, good, b"not empty")[-1] == refused


def with_tickets(kerberized: Kerberized, patch: pytest.MonkeyPatch) -> None:
    """Other people's clients look where `kinit` leaves tickets."""
    tickets = kerberized.centre.tickets(kerberized.keytabs["alice"], "alice")
    patch.setenv("KRB5CCNAME", f"FILE:{tickets}")


def test_kafka_python_comes_in(kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch) -> None:
    with_tickets(kerberized, monkeypatch)
    how = {
        "bootstrap_servers": kerberized.address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
        "sasl_kerberos_name": gssapi.Name(BROKER, gssapi.NameType.kerberos_principal),
    }
    producer = KafkaProducer(**how)
    sent = producer.send("t", b"of kafka-python").get(60)
    producer.close()
    consumer = KafkaConsumer(auto_offset_reset="earliest", **how)
    read_back(consumer, sent.offset)


def read_back(consumer: KafkaConsumer, offset: int) -> None:
    from kafka import TopicPartition

    partition = TopicPartition("t", 0)
    consumer.assign([partition])
    consumer.seek(partition, offset)
    assert next(consumer).value == b"of kafka-python"
    consumer.close()


def test_aiokafka_comes_in(kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch) -> None:
    with_tickets(kerberized, monkeypatch)
    how = {
        "bootstrap_servers": kerberized.address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
        "sasl_kerberos_domain_name": "localhost",
    }

    async def scenario() -> None:
        async with AIOKafkaProducer(**how) as producer:
            await producer.send_and_wait("t", b"of aiokafka")
        async with AIOKafkaConsumer("t", auto_offset_reset="earliest", **how) as consumer:
            while (await consumer.getone()).value != b"of aiokafka":
                pass

    asyncio.run(asyncio.wait_for(scenario(), 120))


@pytest.mark.kafka
@pytest.mark.parametrize("release", ["kafka-4.3.1", "clients-2.8.2", "clients-0.10.2.2"])
def test_java_clients_come_in(kerberized: Kerberized, release: str, tmp_path: Path) -> None:
    program = compiled(HERE / "java" / "SecuredRoundTrip.java", needs(release))
    file = tmp_path / "client.properties"
    file.write_text(
        "".join(f"{key}={value}\n" for key, value in kerberized.settings("alice").items())
    )
    options = [
        *kerberized.centre.java_options,
        # The oldest client asks for the realm by a class that Java has closed since.
        "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    ]
    printed = run_java(program, "SecuredRoundTrip", "t", str(file), options=options)
    assert printed.split("\n")[0] == "value 1"


def test_librdkafka_comes_in_by_kcat(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = needs("sasl-gssapi")
    kcat = needs("kcat")
    with_tickets(kerberized, monkeypatch)
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.kinit.cmd": "true",  # The tickets are there.
    }
    words = [word for key, value in given.items() for word in ("-X", f"{key}={value}")]
    done = subprocess.run(
        [str(kcat), "-b", kerberized.address, *words, "-P", "-t", "t"],
        input="of kcat",
        env={**os.environ, "SASL_PATH": str(plugins)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_brokers_come_to_each_other(kerberized: Kerberized, tmp_path: Path) -> None:
    """Records are acknowledged by both, and only who has the brokers' name may replicate."""
    keytab = kerberized.centre.directory / "kafka-localhost.keytab"
    line = f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{BROKER}";'
    settings = {
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.inside.gssapi.sasl.jaas.config": line,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:kafka;User:ANONYMOUS",
        "min.insync.replicas": "2",
    }
    cluster = Cluster(tmp_path, brokers=2, settings=settings)
    for broker in cluster.brokers:
        inside = free_port()
        clients = f"CLIENTS://{HOST}:{broker.port}"
        broker.settings["listeners"] = f"{clients},INSIDE://{HOST}:{inside}"
        broker.settings["advertised.listeners"] = f"{clients},INSIDE://localhost:{inside}"
    with cluster:
        with Admin({"bootstrap.servers": cluster.bootstrap}) as admin:
            admin.create_topics([NewTopic(name="t", partitions=2, replication_factor=2)])
        with Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"}) as producer:
            for partition in range(2):
                assert producer.send("t", value=b"in", partition=partition).result(120).offset == 0
        assert [broker.tracebacks() for broker in cluster.brokers] == [{}, {}]
        assert not any("need an ACL for" in broker.log for broker in cluster.brokers)
