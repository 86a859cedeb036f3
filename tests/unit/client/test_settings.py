"""Kafka's configuration names: each one acts, is renamed, is ours, or is refused with a reason."""

from typing import Any

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.settings import (
    Role,
    as_bool,
    as_int,
    as_list,
    known_keys,
    translate,
    unknown_key,
    unknown_key_error,
)
from penstock.errors import ConfigError


def librdkafka_settings(role: Role, **settings: object) -> dict[str, object]:
    return translate({k.replace("_", "."): v for k, v in settings.items()}, role).librdkafka


@pytest.mark.parametrize(
    ("role", "key", "value", "expected"),
    [
        ("producer", "buffer.memory", 67108864, {"queue.buffering.max.kbytes": 65536}),
        ("producer", "buffer.memory", "100", {"queue.buffering.max.kbytes": 1}),
        ("producer", "batch.size", "32768", {"batch.size": 32768}),
        ("producer", "batch.size", 0, {"batch.num.messages": 1}),
        ("producer", "max.request.size", 5000, {"message.max.bytes": 5000}),
        ("producer", "linger.ms", 200, {"linger.ms": 200}),
        ("producer", "acks", "ALL", {"acks": "all"}),
        ("producer", "acks", -1, {"acks": "-1"}),
        ("producer", "compression.zstd.level", 3, {"compression.level": 3}),
        ("producer", "send.buffer.bytes", -1, {"socket.send.buffer.bytes": 0}),
        (
            "producer",
            "request.timeout.ms",
            15000,
            {"request.timeout.ms": 15000, "socket.timeout.ms": 15000},
        ),
        ("producer", "timeout.ms", 500, {"request.timeout.ms": 500}),
        ("consumer", "fetch.max.wait.ms", 7, {"fetch.wait.max.ms": 7}),
        ("consumer", "auto.offset.reset", "none", {"auto.offset.reset": "error"}),
        ("consumer", "auto.offset.reset", "EARLIEST", {"auto.offset.reset": "earliest"}),
        (
            "consumer",
            "partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.RangeAssignor,"
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
            {"partition.assignment.strategy": "range"},
        ),
        (
            "consumer",
            "partition.assignment.strategy",
            ["org.apache.kafka.clients.consumer.CooperativeStickyAssignor"],
            {"partition.assignment.strategy": "cooperative-sticky"},
        ),
        (
            "consumer",
            "sasl.jaas.config",
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="al" '
            'password="p w";',
            {"sasl.username": "al", "sasl.password": "p w"},
        ),
        ("consumer", "ssl.truststore.location", "/ca.pem", {"ssl.ca.location": "/ca.pem"}),
    ],
)
def test_a_setting_gets_librdkafkas_name_and_unit(
    role: Role, key: str, value: object, expected: dict[str, object]
) -> None:
    found = translate({key: value}, role).librdkafka
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("role", "key", "value", "words"),
    [
        ("producer", "acks", "2", "all, -1, 0 and 1"),
        ("producer", "buffer.memory", "much", "not a whole number"),
        ("producer", "key.deserializer", "x", "write 'key.serializer'"),
        ("consumer", "key.serializer", "x", "write 'key.deserializer'"),
        ("producer", "group.id", "g", "setting of a consumer"),
        ("consumer", "acks", "1", "setting of a producer"),
        ("consumer", "zookeeper.connect", "z", "write 'bootstrap.servers'"),
        ("consumer", "auto.offset.reset", "largest", "earliest, latest and none"),
        ("consumer", "partition.assignment.strategy", "sticky", "choose from"),
        ("consumer", "sasl.jaas.config", "nothing", "username"),
        ("consumer", "ssl.truststore.location", "/a/trust.jks", "PEM"),
    ],
)
def test_a_mistake_is_told_with_what_to_write(
    role: Role, key: str, value: object, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        translate({key: value}, role)
    assert key in str(caught.value)


def test_idempotence_is_on_unless_another_setting_rules_it_out() -> None:
    assert librdkafka_settings("producer")["enable.idempotence"] is True
    assert librdkafka_settings("producer", acks=1)["enable.idempotence"] is False
    assert librdkafka_settings("producer", retries=0)["enable.idempotence"] is False
    six = librdkafka_settings("producer", max_in_flight_requests_per_connection=6)
    assert six["enable.idempotence"] is False
    asked = librdkafka_settings("producer", acks=1, enable_idempotence="true")
    assert asked["enable.idempotence"] == "true"


def test_a_transaction_outlives_its_deliveries() -> None:
    found = librdkafka_settings("producer", transactional_id="t", transaction_timeout_ms=5000)
    assert found["delivery.timeout.ms"] == 5000
    assert librdkafka_settings("producer")["delivery.timeout.ms"] == 120_000


def test_settings_of_the_java_machine_are_taken_and_left_aside() -> None:
    found = translate({"ssl.protocol": "TLS", "metric.reporters": ""}, "consumer")
    assert found.without_effect == ("ssl.protocol", "metric.reporters")
    assert "ssl.protocol" not in found.librdkafka


def test_what_is_ours_does_not_reach_librdkafka() -> None:
    found = translate({"max.poll.records": 5, "value.deserializer": "string"}, "consumer")
    assert found.ours["max.poll.records"] == 5
    assert "max.poll.records" not in found.librdkafka
    assert found.given == {"max.poll.records": 5, "value.deserializer": "string"}


def test_a_serializers_own_settings_stay_with_it() -> None:
    found = translate({"key.serializer.encoding": "latin-1"}, "producer")
    assert "key.serializer.encoding" not in found.librdkafka


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_librdkafka_knows_every_name_we_hand_to_it(role: Role) -> None:
    """Each known key is translated with a plausible value and offered to librdkafka."""
    values: dict[str, Any] = {
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "range",
        "sasl.jaas.config": 'username="a" password="b"',
        "acks": "all",
    }
    kind = confluent_kafka.Producer if role == "producer" else confluent_kafka.Consumer
    for key in sorted(known_keys(role)):
        found = translate({key: values.get(key, "1")}, role).librdkafka
        try:
            kind({**found, "group.id": "g"} if role == "consumer" else found)
        except confluent_kafka.KafkaException as error:
            assert unknown_key(error.args[0].str()) is None, key


def test_the_nearest_name_is_offered_for_an_unknown_one() -> None:
    text = str(unknown_key_error("linger.mss", "producer"))
    assert text == "'linger.mss' is not a setting of a producer. Did you mean 'linger.ms'?"
    assert "Did you mean" not in str(unknown_key_error("importantStocks", "producer"))


@given(st.integers())
def test_numbers_are_read_however_they_are_written(number: int) -> None:
    assert as_int("k", number) == as_int("k", str(number)) == number


def test_words_are_read_as_booleans_and_lists() -> None:
    assert as_bool("k", "True") is as_bool("k", True) is True
    with pytest.raises(ConfigError, match="k=yes"):
        as_bool("k", "yes")
    assert as_list("a, b,") == ["a", "b"]
    assert as_list(("a", 1)) == ["a", 1]
    assert as_list(int) == [int]


def test_a_login_by_kerberos_gets_librdkafkas_names() -> None:
    module = "com.sun.security.auth.module.Krb5LoginModule"
    line = f'{module} required useKeyTab=true keyTab="/k" principal="alice@R";'
    found = librdkafka_settings("producer", **{"sasl.jaas.config": line})
    kerberos = {name: value for name, value in found.items() if "kerberos" in name}
    assert kerberos == {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "alice@R"}
