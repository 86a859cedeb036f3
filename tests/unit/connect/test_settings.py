"""The settings of a worker."""

import pytest

from penstock.connect.settings import WorkerSettings
from penstock.errors import ConfigError

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
GIVEN = {
    "bootstrap.servers": "b:9092",
    "group.id": "g",
    "key.converter": STRINGS,
    "value.converter": STRINGS,
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}


def test_a_worker_listens_on_loopback_unless_told() -> None:
    settings = WorkerSettings.distributed(GIVEN)
    assert settings.listeners == (("http", "127.0.0.1", 8083),)
    old = WorkerSettings.distributed({**GIVEN, "rest.port": "9000"})
    assert old.listeners == (("http", "127.0.0.1", 9000),)


@pytest.mark.parametrize("name", sorted(set(GIVEN) - {"bootstrap.servers"}))
def test_what_is_missing_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        WorkerSettings.distributed({k: v for k, v in GIVEN.items() if k != name})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("exactly.once.source.support", "maybe"),
        ("offset.flush.interval.ms", "often"),
        ("offset.flush.interval.ms", "0"),
        ("topic.tracking.enable", "perhaps"),
        ("listeners", "tcp://x:1"),
        ("connector.client.config.override.policy", "Some"),
    ],
)
def test_what_is_wrong_is_named(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=name):
        WorkerSettings.distributed({**GIVEN, name: text})


def test_a_connector_overrides_what_the_worker_says_of_its_clients() -> None:
    settings = WorkerSettings.distributed(
        {**GIVEN, "producer.linger.ms": "1", "producer.acks": "all", "sasl.mechanism": "PLAIN"}
    )
    own = {"producer.override.linger.ms": "9"}
    made = settings.client_for("producer", own, "producer")
    assert made == {
        "bootstrap.servers": "b:9092",
        "sasl.mechanism": "PLAIN",
        "linger.ms": "9",
        "acks": "all",
    }
    strict = {**GIVEN, "connector.client.config.override.policy": "None"}
    kept = WorkerSettings.distributed(strict).client_for("producer", own, "producer")
    assert "linger.ms" not in kept


def test_a_standalone_worker_needs_a_file_and_no_topics() -> None:
    converters = {name: GIVEN[name] for name in ("key.converter", "value.converter")}
    with pytest.raises(ConfigError, match=r"offset\.storage\.file\.filename"):
        WorkerSettings.standalone(converters)
    settings = WorkerSettings.standalone({**converters, "offset.storage.file.filename": "/x"})
    assert not settings.is_distributed
    assert not settings.exactly_once_sources


def test_a_setting_nobody_knows_is_told() -> None:
    settings = WorkerSettings.distributed({**GIVEN, "group.idd": "x", "value.converter.a": "b"})
    assert settings.warnings == (
        "group.idd is not a setting this worker knows: it is ignored, did you mean group.id?",
    )


def test_a_policy_for_principals_lets_logins_through_alone() -> None:
    policy = {"connector.client.config.override.policy": "Principal"}
    settings = WorkerSettings.distributed({**GIVEN, **policy})
    connector = {"admin.override.security.protocol": "SSL", "admin.override.retries": "1"}
    made = settings.client_for("admin", connector, "admin")
    assert made["security.protocol"] == "SSL" and "retries" not in made
