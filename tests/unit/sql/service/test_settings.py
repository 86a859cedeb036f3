"""ksqlDB's settings, understood or refused by name."""

import pytest

from penstock.errors import ConfigError
from penstock.sql.service.settings import (
    ProcessingLogConfig,
    SqlConfig,
    is_property,
    query_settings,
)

BROKERS = {"bootstrap.servers": "PLAINTEXT://a:1, b:2"}


def test_settings_are_taken_apart_by_what_they_are_for() -> None:
    config = SqlConfig.of(
        {
            **BROKERS,
            "ksql.service.id": "x_",
            "ksql.streams.state.dir": "/state",
            "ksql.streams.commit.interval.ms": "200",
            "ksql.schema.registry.url": "http://r:8081",
            "ksql.schema.registry.basic.auth.user.info": "u:p",
            "ksql.extension.dir": "/functions",
            "ksql.query.pull.table.scan.enabled": "false",
            "sasl.mechanism": "PLAIN",
            "penstock.sql.spark.conf.spark.driver.memory": "1g",
        }
    )
    assert config.client == {
        "client.id": "ksql-server",
        "bootstrap.servers": "a:1,b:2",
        "sasl.mechanism": "PLAIN",
    }
    assert str(config.state_dir) == "/state/x_"
    assert config.streams == {"commit.interval.ms": "200"}
    assert config.registry == {"basic.auth.user.info": "u:p"}
    assert config.properties == {"ksql.query.pull.table.scan.enabled": "false"}
    assert config.spark_conf == {"spark.driver.memory": "1g"}
    assert config.dead_letters == "x_ksql_dead_letters"
    assert config.processing_log.topic == "x_ksql_processing_log"
    assert config.processing_log.creates_topic and config.processing_log.stream is None
    assert "u:p" not in str(config.shown)
    assert config.warnings == ()


def test_a_listener_is_on_loopback_unless_it_is_configured() -> None:
    (listener,) = SqlConfig.of(BROKERS).listeners
    assert (listener.host, listener.port) == ("127.0.0.1", 8088)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "bootstrap.servers is missing"),
        ({**BROKERS, "ksql.service.id": "a b"}, "ksql.service.id=a b must be of letters"),
        ({**BROKERS, "ksql.max.push.queries": "0"}, "ksql.max.push.queries=0 is less than 1"),
        ({**BROKERS, "listeners": "ftp://x:1"}, "listeners has ftp://x:1"),
        ({**BROKERS, "ksql.logging.processing.stream.name": "a;b"}, "a;b is no name"),
        ({**BROKERS, "ksql.logging.processing.rows.include": "yes"}, "neither true nor false"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        SqlConfig.of(given)


def test_what_does_nothing_is_told() -> None:
    given = {**BROKERS, "ksql.heartbeat.enable": "true", "ksql.service.idd": "x"}
    first, second = SqlConfig.of(given).warnings
    assert "does nothing here" in first
    assert "did you mean ksql.service.id?" in second


def test_queries_are_told_kafka_streams_settings() -> None:
    given = {
        "ksql.streams.auto.offset.reset": "earliest",
        "commit.interval.ms": "5",
        "ksql.output.topic.name.prefix": "p",
    }
    assert query_settings(given) == {"auto.offset.reset": "earliest", "commit.interval.ms": "5"}
    assert is_property("ksql.streams.auto.offset.reset")
    assert not is_property("nonsense")


def test_a_record_that_cannot_be_read_stops_a_query_only_where_that_is_wanted() -> None:
    own = {"ksql.streams.errors.dead.letter.queue.topic.name": "mine"}
    assert SqlConfig.of({**BROKERS, **own}).dead_letters == "mine"
    stops = {**BROKERS, **own, "ksql.fail.on.deserialization.error": "true"}
    assert SqlConfig.of(stops).dead_letters is None


def test_the_processing_log_has_ksqldbs_settings() -> None:
    told = {
        "topic.name": "log",
        "topic.partitions": "3",
        "topic.replication.factor": "2",
        "topic.auto.create": "false",
        "stream.auto.create": "true",
        "stream.name": "MY_LOG",
        "rows.include": "true",
    }
    given = {f"ksql.logging.processing.{name}": text for name, text in told.items()}
    config = SqlConfig.of({**BROKERS, **given})
    assert config.processing_log == ProcessingLogConfig(
        topic="log", partitions=3, replicas=2, creates_topic=False, stream="MY_LOG", shows_rows=True
    )
    assert config.warnings == ()
