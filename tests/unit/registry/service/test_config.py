"""The registry's settings: Confluent's names, sentences for mistakes, warnings for the rest."""

import pytest

from penstock.errors import ConfigError
from penstock.registry.service.config import RegistryConfig
from penstock.schemas.compatibility.levels import CompatibilityLevel

SERVERS = {"kafkastore.bootstrap.servers": "PLAINTEXT://one:9092, two:9093"}


def test_without_listeners_only_this_machine_is_answered() -> None:
    config = RegistryConfig.of(SERVERS)
    assert config.listeners == (("http", "127.0.0.1", 8081),)
    assert (config.topic, config.level) == ("_schemas", CompatibilityLevel.BACKWARD)
    assert config.warnings == ()


def test_the_settings_of_the_store_become_a_clients() -> None:
    config = RegistryConfig.of(
        {
            **SERVERS,
            "kafkastore.security.protocol": "SASL_SSL",
            "kafkastore.sasl.mechanism": "PLAIN",
            "kafkastore.ssl.truststore.location": "ca.pem",
        }
    )
    assert config.client == {
        "bootstrap.servers": "one:9092,two:9093",
        "client.id": "schema-registry",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "ssl.truststore.location": "ca.pem",
    }
    assert config.warnings == ()


def test_listeners_times_and_the_level_are_read() -> None:
    config = RegistryConfig.of(
        {
            **SERVERS,
            "listeners": "http://0.0.0.0:8081,http://[::1]:0",
            "kafkastore.timeout.ms": "500",
            "kafkastore.init.timeout.ms": "1500",
            "kafkastore.topic": "schemas",
            "avro.compatibility.level": "full_transitive",
        }
    )
    assert config.listeners == (("http", "0.0.0.0", 8081), ("http", "::1", 0))
    assert (config.timeout_s, config.start_timeout_s) == (0.5, 1.5)
    assert (config.topic, config.level) == ("schemas", CompatibilityLevel.FULL_TRANSITIVE)


def test_the_settings_of_several_instances_are_read_under_old_and_new_names() -> None:
    config = RegistryConfig.of(
        {
            **SERVERS,
            "listeners": "https://here:8081",
            "schema.registry.group.id": "ours",
            "master.eligibility": "false",
            "kafkagroup.session.timeout.ms": "6000",
            "kafkagroup.heartbeat.interval.ms": "500",
            "inter.instance.headers.whitelist": "X-Trace, X-User",
        }
    )
    assert (config.group_id, config.is_eligible) == ("ours", False)
    assert (config.session_timeout_s, config.heartbeat_s) == (6.0, 0.5)
    assert config.forwarded_headers == ("X-Trace", "X-User")
    assert config.inter_instance_scheme == "https"  # As the first listener, where nothing is said.
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("kafkastore.bootstrap.servers", "", "kafkastore.bootstrap.servers is missing"),
        ("listeners", "ftp://here:8081", "write http://host:port or https://host:port"),
        ("leader.eligibility", "perhaps", "is neither true nor false"),
        ("inter.instance.protocol", "ftp", "is neither http nor https"),
        ("authentication.method", "DIGEST", "is none of NONE, BASIC and BEARER"),
        ("authentication.method", "BASIC", "authentication.users.file is missing"),
        ("ssl.client.auth", "perhaps", "is not one of none, requested, required"),
        ("listeners", "here:8081", "write http://host:port"),
        ("listeners", " ", "listeners is empty"),
        ("kafkastore.timeout.ms", "soon", "is not a whole number"),
        ("kafkastore.topic.replication.factor", "0", "is less than 1"),
        ("schema.compatibility.level", "SOME", "is not one of NONE, BACKWARD"),
    ],
)
def test_what_is_wrong_is_told(name: str, value: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        RegistryConfig.of({**SERVERS, name: value})


def test_what_is_not_known_is_ignored_and_told() -> None:
    given = {**SERVERS, "kafkastore.topics": "x", "host.name": "here", "zork": "1"}
    assert RegistryConfig.of(given).host_name == "here"
    assert RegistryConfig.of(given).warnings == (
        "kafkastore.topics is not a setting this registry knows: it is ignored, "
        "did you mean kafkastore.topic?",
        "zork is not a setting this registry knows: it is ignored",
    )
