"""Clients of all kinds over TLS, and those that must not come in."""

import contextlib
import os
import socket
import ssl
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from tests.integration.security.secured_broker import ONE_WAY, SecuredBroker
from tests.support.key_stores import make_identity, revocation_list
from tests.support.processes import HOST
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.consumer.consumer import Consumer
from penstock.client.errors import AuthenticationError, BrokerUnreachableError
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer


def test_our_admin_producer_and_consumer_come_in(secured: SecuredBroker) -> None:
    settings = secured.settings("SSL")
    with Admin(settings) as admin:
        admin.create_topics([NewTopic(name="ours", partitions=1)])
    large = os.urandom(700_000)
    with Producer(settings) as producer:
        assert producer.send("ours", value=large).result(120).offset == 0
    with Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["ours"])
        assert [record.value for record in eventually(lambda: consumer.poll(0.5))] == [large]


def test_librdkafka_comes_in(secured: SecuredBroker) -> None:
    settings = secured.settings("SSL")
    producer = confluent_kafka.Producer(settings)
    values = [os.urandom(100_000) for _ in range(30)]
    for value in values:
        producer.produce("confluent", value)
    assert producer.flush(60) == 0
    reading = {"group.id": "confluent", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, **reading})
    consumer.subscribe(["confluent"])
    found: list[bytes | None] = []
    while len(found) < len(values):
        found += [message.value() for message in consumer.consume(30, 1) if not message.error()]
    consumer.close()
    assert found == values


def test_kafka_python_comes_in(secured: SecuredBroker) -> None:
    how = {
        "bootstrap_servers": secured.address("SSL"),
        "security_protocol": "SSL",
        "ssl_cafile": str(secured.ca),
        "ssl_certfile": str(secured.directory / "client.pem"),
        "ssl_keyfile": str(secured.directory / "client.key"),
    }
    producer = KafkaProducer(**how)
    producer.send("kafka-python", b"in").get(60)
    producer.close()
    consumer = KafkaConsumer("kafka-python", auto_offset_reset="earliest", **how)
    assert next(consumer).value == b"in"
    consumer.close()


def test_a_client_without_a_certificate_is_refused_where_one_is_asked_for(
    secured: SecuredBroker,
) -> None:
    settings = secured.settings("SSL")
    del settings["ssl.certificate.location"], settings["ssl.key.location"]
    with Admin(settings) as admin, pytest.raises(AuthenticationError, match="certificate"):
        admin.list_topics()
    eventually(lambda: "did not return a certificate" in secured.broker.log)


def test_a_certificate_that_expired_or_came_from_somebody_else_is_refused(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    strangers = {
        "certificate has expired": make_identity("late", issuer=secured.authority, days=-1),
        "self-signed certificate in certificate chain": make_identity(
            "alice", issuer=make_identity("other")
        ),
    }
    for words, stranger in strangers.items():
        (tmp_path / "client.pem").write_bytes(stranger.chain_pem)
        (tmp_path / "client.key").write_bytes(stranger.key_pem())
        settings = secured.settings("SSL") | {
            "ssl.certificate.location": str(tmp_path / "client.pem"),
            "ssl.key.location": str(tmp_path / "client.key"),
        }
        with Admin(settings) as admin, pytest.raises((AuthenticationError, BrokerUnreachableError)):
            admin.list_topics()
        eventually(lambda words=words: words in secured.broker.log)


def test_a_client_with_a_list_of_revoked_certificates_does_not_believe_those(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    revoked = tmp_path / "crl.pem"
    settings = secured.settings(ONE_WAY) | {"ssl.crl.location": str(revoked)}
    revoked.write_bytes(revocation_list(secured.authority, secured.client))
    with Admin(settings) as admin:
        admin.list_topics()
    revoked.write_bytes(revocation_list(secured.authority, secured.server))
    with Admin(settings) as admin, pytest.raises(AuthenticationError, match="revoked"):
        admin.list_topics()


def test_a_plaintext_client_is_told_of_in_one_line(secured: SecuredBroker) -> None:
    before = secured.broker.log.count("does not speak TLS")
    with socket.create_connection((HOST, secured.ports["SSL"])) as plain:
        plain.sendall(bytes.fromhex("0000000e") + bytes(14))
        with contextlib.suppress(ConnectionResetError):
            assert plain.recv(1) == b""
    eventually(lambda: secured.broker.log.count("does not speak TLS") == before + 1)


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_both_versions_of_tls_are_spoken_and_a_session_is_resumed(
    secured: SecuredBroker, version: str
) -> None:
    context = ssl.create_default_context(cafile=str(secured.ca))
    context.load_cert_chain(secured.directory / "client.pem", secured.directory / "client.key")
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    session = None
    for _ in range(2):
        with (
            socket.create_connection((HOST, secured.ports["SSL"])) as plain,
            context.wrap_socket(plain, server_hostname=HOST, session=session) as tls,
        ):
            tls.sendall(bytes.fromhex("0000000a" + "00120000" + "00000001" + "ffff"))
            assert tls.recv(1)
            session = tls.session


def test_a_server_with_another_name_is_not_believed(secured: SecuredBroker) -> None:
    settings = secured.settings("SSL") | {
        "bootstrap.servers": f"localhost:{secured.ports['SSL']}",
        "socket.timeout.ms": 5000,
    }
    with pytest.raises(confluent_kafka.KafkaException):
        AdminClient(settings).list_topics(timeout=5)
