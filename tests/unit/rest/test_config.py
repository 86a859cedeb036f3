"""The proxy's settings under Confluent's names."""

import pytest

from penstock.errors import ConfigError
from penstock.rest.config import RestConfig

LEAST = {"bootstrap.servers": "PLAINTEXT://here:9092,there:9093"}


def test_it_listens_on_loopback_and_8082_unless_told_otherwise() -> None:
    assert RestConfig.of(LEAST).listeners == (("http", "127.0.0.1", 8082),)


def test_protocols_in_front_of_brokers_are_not_for_clients() -> None:
    config = RestConfig.of(LEAST)
    for client in (config.producer, config.consumer, config.admin):
        assert client["bootstrap.servers"] == "here:9092,there:9093"


def test_a_family_reaches_its_client_alone_and_client_reaches_all() -> None:
    config = RestConfig.of(
        {
            **LEAST,
            "client.security.protocol": "SSL",
            "producer.acks": "1",
            "consumer.fetch.min.bytes": "5",
            "admin.request.timeout.ms": "7",
        }
    )
    assert config.producer["acks"] == "1"
    assert "acks" not in config.consumer
    assert config.consumer["fetch.min.bytes"] == "5"
    assert config.admin["request.timeout.ms"] == "7"
    clients = (config.producer, config.consumer, config.admin)
    assert all(one["security.protocol"] == "SSL" for one in clients)


def test_the_proxys_own_settings_are_not_handed_to_clients() -> None:
    config = RestConfig.of(
        {**LEAST, "consumer.instance.timeout.ms": "2000", "consumer.threads": "5"}
    )
    assert config.consumer_timeout_s == 2.0
    assert not {"instance.timeout.ms", "threads"} & set(config.consumer)


def test_what_belongs_to_the_registry_goes_to_the_registry() -> None:
    config = RestConfig.of(
        {
            **LEAST,
            "schema.registry.url": "http://localhost:8081",
            "schema.registry.basic.auth.user.info": "a:b",
        }
    )
    assert config.registry_url == "http://localhost:8081"
    assert config.registry == {"basic.auth.user.info": "a:b"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "bootstrap.servers is missing"),
        ({**LEAST, "listeners": "ftp://here:1"}, "https://host:port"),
        ({**LEAST, "listeners": " , "}, "listeners is empty"),
        ({**LEAST, "listeners": "ftp://here:1"}, "write http://host:port"),
        ({**LEAST, "consumer.instance.timeout.ms": "soon"}, "not a whole number"),
        ({**LEAST, "streams.max": "0"}, "streams.max=0 is less than 1"),
        ({**LEAST, "api.v2.enable": "maybe"}, "neither true nor false"),
        ({**LEAST, "advertised.listeners": "here"}, "write http://host:port"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        RestConfig.of(given)


def test_what_is_not_known_is_ignored_and_told() -> None:
    config = RestConfig.of({**LEAST, "listenrs": "http://here:1", "zookeeper.connect": "z:2181"})
    assert config.warnings == (
        "listenrs is not a setting this proxy knows: it is ignored, did you mean listeners?",
        "zookeeper.connect does nothing here: this proxy has no such part",
    )
