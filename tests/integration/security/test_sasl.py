"""Clients of all kinds that prove who they are, and those that cannot."""

import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from tests.integration.security.secured_broker import (
    MECHANISMS,
    PASSWORD,
    SCRAM,
    SecuredBroker,
    add_scram_users,
    unsigned_token,
)
from tests.support.processes import HOST
from tests.support.waiting import eventually
from tests.support.wire import RawConnection, WireError

from penstock.cli.tools.configs import configs
from penstock.client.admin import Admin
from penstock.client.consumer.consumer import Consumer
from penstock.client.errors import AuthenticationError
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer

WAYS = [
    *(("SASL_PLAINTEXT", mechanism) for mechanism in MECHANISMS),
    *(("SASL_SSL", mechanism) for mechanism in MECHANISMS),
]


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_our_admin_producer_and_consumer_come_in(
    secured: SecuredBroker, protocol: str, mechanism: str
) -> None:
    settings = secured.settings(protocol, mechanism)
    topic = f"ours-{protocol}-{mechanism}".lower()
    with Admin(settings) as admin:
        admin.create_topics([NewTopic(name=topic, partitions=1)])
    with Producer(settings) as producer:
        assert producer.send(topic, value=b"in").result(120).offset == 0
    with Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([topic])
        assert [record.value for record in eventually(lambda: consumer.poll(0.5))] == [b"in"]


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_librdkafka_and_kafka_python_come_in(
    secured: SecuredBroker, protocol: str, mechanism: str
) -> None:
    topic = f"theirs-{protocol}-{mechanism}".lower()
    settings = secured.settings(protocol, mechanism)
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, b"in")
    assert producer.flush(60) == 0
    how = {
        "bootstrap_servers": secured.address(protocol),
        "security_protocol": protocol,
        "ssl_cafile": str(secured.ca),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }
    second = KafkaProducer(**how)
    second.send(topic, b"too").get(60)
    second.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", **how)
    assert [next(consumer).value for _ in range(2)] == [b"in", b"too"]
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_and_an_unknown_user_are_told_the_same(
    secured: SecuredBroker, mechanism: str
) -> None:
    told = []
    for more in ({"sasl_password": "pen"}, {"sasl_username": "nobody"}):
        settings = secured.settings("SASL_SSL", mechanism, **more)
        with Admin(settings) as admin, pytest.raises(AuthenticationError) as refused:
            admin.list_topics()
        told.append(str(refused.value).partition("Authentication failed")[2].rsplit("'")[-1])
    assert told[0] == told[1]
    assert PASSWORD not in secured.broker.log


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_librdkafka_comes_in_with_a_bearer_token(secured: SecuredBroker, protocol: str) -> None:
    settings = secured.settings(protocol) | {
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _config: (unsigned_token("bob"), time.time() + 3600),
    }
    producer = confluent_kafka.Producer(settings)
    producer.produce("by-bearer", b"in")
    assert producer.flush(60) == 0


def test_a_bearer_token_that_has_expired_is_refused(secured: SecuredBroker) -> None:
    expired = unsigned_token("bob", lives_s=-100)
    admin = AdminClient(
        secured.settings("SASL_SSL")
        | {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: (expired, time.time() + 3600)}
    )
    with pytest.raises(confluent_kafka.KafkaException):
        admin.list_topics(timeout=5)
    eventually(lambda: "OAUTHBEARER: the token was refused: it has expired" in secured.broker.log)


def test_nothing_is_served_before_somebody_is_known(secured: SecuredBroker) -> None:
    with RawConnection(secured.ports["SASL_PLAINTEXT"]) as raw, pytest.raises((WireError, OSError)):
        raw.create_topic("by-a-stranger")
    with Admin(secured.settings("PLAINTEXT")) as admin:
        assert "by-a-stranger" not in [listing.name for listing in admin.list_topics()]


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_changed_password_holds_for_who_comes_after(
    secured: SecuredBroker, mechanism: str
) -> None:
    address = f"{HOST}:{secured.ports['PLAINTEXT']}"
    for password in ("first", "second"):
        add_scram_users(address, "carol", password=password)
        more = {"sasl_username": "carol", "sasl_password": password}
        with Admin(secured.settings("SASL_SSL", mechanism, **more)) as admin:
            admin.list_topics()
    more = {"sasl_username": "carol", "sasl_password": "first"}
    with (
        Admin(secured.settings("SASL_SSL", mechanism, **more)) as admin,
        pytest.raises(AuthenticationError),
    ):
        admin.list_topics()


def test_kafka_configs_sets_and_shows_a_password(
    secured: SecuredBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--bootstrap-server", secured.address("PLAINTEXT")]
    users = ["--entity-type", "users", "--entity-name", "erin"]
    added = "SCRAM-SHA-256=[iterations=8192,password=a,b],producer_byte_rate=1024"
    assert configs.main([*where, *users, "--alter", "--add-config", added]) == 0
    assert configs.main([*where, *users, "--describe"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Completed updating config for user erin.",
        "Quota configs for user-principal 'erin' are producer_byte_rate=1024.0",
        "SCRAM credential configs for user-principal 'erin' are SCRAM-SHA-256=iterations=8192",
    ]
    more = {"sasl_username": "erin", "sasl_password": "a,b"}
    with Admin(secured.settings("SASL_SSL", "SCRAM-SHA-256", **more)) as admin:
        admin.list_topics()
    assert configs.main([*where, *users, "--alter", "--delete-config", "SCRAM-SHA-256"]) == 0
    with (
        Admin(secured.settings("SASL_SSL", "SCRAM-SHA-256", **more)) as admin,
        pytest.raises(AuthenticationError),
    ):
        admin.list_topics()
