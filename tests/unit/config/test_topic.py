"""A topic's settings: what may be written, what follows the broker, what is refused and how."""

import pytest

from penstock.config.broker import load
from penstock.config.topic import (
    TOPIC_SETTINGS,
    canonical_overrides,
    effective_topic_config,
    log_settings,
    parse_topic_config,
)
from penstock.errors import ConfigError
from penstock.storage.log.config import LogConfig

DEFAULTS = load(None, {})


def test_a_topic_that_says_nothing_has_the_defaults_of_kafka() -> None:
    effective = effective_topic_config({}, DEFAULTS)
    assert effective == TOPIC_SETTINGS.defaults()


def test_what_a_topic_does_not_say_follows_the_broker() -> None:
    broker = load(None, {"log.retention.minutes": "3", "log.roll.hours": "1"})
    effective = effective_topic_config({"retention.bytes": "1048"}, broker)
    assert effective["retention.ms"] == 180_000
    assert effective["segment.ms"] == 3_600_000
    assert effective["retention.bytes"] == 1048
    moved = broker.with_dynamic({"log.retention.ms": "5"}, {})
    assert effective_topic_config({}, moved)["retention.ms"] == 5
    assert effective_topic_config({"retention.ms": "72000"}, moved)["retention.ms"] == 72_000


def test_what_a_topic_says_is_typed() -> None:
    stated = {"retention.ms": " 360000", "cleanup.policy": "compact, delete", "preallocate": "true"}
    assert parse_topic_config(stated, DEFAULTS) == {
        "retention.ms": 360_000,
        "cleanup.policy": ("compact", "delete"),
        "preallocate": True,
    }


def test_the_cleanup_policy_is_also_taken_under_the_name_of_the_tutorials() -> None:
    stated = {"log.cleanup.policy": "compact"}
    assert parse_topic_config(stated, DEFAULTS) == {"cleanup.policy": ("compact",)}
    assert effective_topic_config(stated, DEFAULTS)["cleanup.policy"] == ("compact",)
    assert canonical_overrides(stated) == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("x", "1", "Unknown topic config name: x"),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "retention.ms",
            "-2",
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            "segment.bytes",
            "1048575",
            "Invalid value 1048575 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "compression.zstd.level",
            "23",
            "Invalid value 23 for configuration compression.zstd.level:"
            " Value must be no more than 22",
        ),
        (
            "cleanup.policy",
            "delete,forget",
            "Invalid value delete,forget for configuration cleanup.policy:"
            " String must be one of: compact, delete",
        ),
        (
            "message.timestamp.type",
            "createtime",
            "Invalid value createtime for configuration message.timestamp.type:"
            " String must be one of: CreateTime, LogAppendTime",
        ),
        (
            "remote.storage.enable",
            "true",
            "Tiered Storage functionality is disabled in the broker."
            " Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_a_refusal_is_worded_as_kafka_words_it(name: str, text: str | None, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_topic_config({name: text}, DEFAULTS)
    assert str(caught.value) == sentence


def test_lags_of_compaction_must_not_cross_also_with_the_brokers() -> None:
    with pytest.raises(ConfigError, match=r"min.compaction.lag.ms \(5\) > max.compaction.lag.ms"):
        parse_topic_config({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, DEFAULTS)
    broker = load(None, {"log.cleaner.max.compaction.lag.ms": "4"})
    with pytest.raises(ConfigError, match=r"> max.compaction.lag.ms \(4\)"):
        parse_topic_config({"min.compaction.lag.ms": "5"}, broker)


@pytest.mark.parametrize(
    ("text", "fine"), [("*", True), ("0:1,1:2", True), ("", True), ("0", False)]
)
def test_throttled_replicas_are_pairs_or_all(text: str, fine: bool) -> None:
    stated = {"leader.replication.throttled.replicas": text}
    if fine:
        parse_topic_config(stated, DEFAULTS)
    else:
        with pytest.raises(ConfigError, match=r"must be the literal '\*' or a list of replicas"):
            parse_topic_config(stated, DEFAULTS)


def test_an_empty_cleanup_policy_keeps_everything() -> None:
    assert parse_topic_config({"cleanup.policy": ""}, DEFAULTS) == {"cleanup.policy": ()}


def test_a_stored_setting_of_a_later_version_does_not_hurt() -> None:
    stored = {"not.yet.known": "1", "flush.ms": "3", "segment.bytes": "1G"}
    effective = effective_topic_config(stored, DEFAULTS)
    assert effective["flush.ms"] == 3
    assert effective["segment.bytes"] == 1 << 30
    assert "not.yet.known" not in effective


def test_the_difference_of_old_stands_for_both_bounds_of_timestamps() -> None:
    stated = {"message.timestamp.difference.max.ms": "7", "message.timestamp.after.max.ms": "9"}
    effective = effective_topic_config(stated, DEFAULTS)
    assert effective["message.timestamp.before.max.ms"] == 7
    assert effective["message.timestamp.after.max.ms"] == 9


def test_a_test_may_have_segments_below_all_bounds() -> None:
    effective = effective_topic_config({"internal.segment.bytes": "3"}, DEFAULTS)
    assert effective["segment.bytes"] == 3
    broker = load(None, {"internal.segment.bytes": "5"})
    assert effective_topic_config({}, broker)["segment.bytes"] == 5


def test_a_small_segment_of_an_earlier_version_stays_small() -> None:
    assert effective_topic_config({"segment.bytes": "14"}, DEFAULTS)["segment.bytes"] == 14


def test_the_log_engine_takes_the_settings_as_they_are() -> None:
    broker = load(None, {"producer.id.expiration.ms": "77"})
    settings = log_settings({"cleanup.policy": "compact", "segment.bytes": "100"}, broker)
    log_config = LogConfig.from_settings(settings)
    assert log_config.cleanup_policy == {"compact"}
    assert log_config.segment_bytes == 100
    assert log_config.producer_id_expiration_ms == 77
    assert LogConfig.from_settings(log_settings({}, DEFAULTS)) == LogConfig()


@pytest.mark.parametrize(
    ("name", "value"),
    [("confluent.value.schema.validation", "true"), ("penstock.key.validation", "decode")],
)
def test_a_topic_checks_schemas_only_where_a_registry_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} needs a schema registry"):
        parse_topic_config({name: value}, DEFAULTS)
    assert parse_topic_config({name: TOPIC_TEXTS[name]}, DEFAULTS)
    named = load(None, {"confluent.schema.registry.url": "http://localhost:8081"})
    assert name in parse_topic_config({name: value}, named)


TOPIC_TEXTS = {"confluent.value.schema.validation": "false", "penstock.key.validation": "none"}


def test_a_strategy_is_named_with_or_without_its_package() -> None:
    name = "confluent.value.subject.name.strategy"
    for text in ("RecordNameStrategy", "io.confluent.kafka.serializers.subject.TopicNameStrategy"):
        assert parse_topic_config({name: text}, DEFAULTS) == {name: text}
    with pytest.raises(ConfigError, match="must be TopicNameStrategy"):
        parse_topic_config({name: "com.example.Mine"}, DEFAULTS)


def test_a_log_knows_what_its_topic_asks_of_schemas() -> None:
    def checks(**stated: str) -> list[tuple[bool, str, bool]]:
        overrides = {key.replace("_", "."): value for key, value in stated.items()}
        settings = log_settings(overrides, DEFAULTS)
        return [
            (is_key, strategy.rpartition(".")[2], decodes)
            for is_key, strategy, decodes in LogConfig.from_settings(settings).schema_checks
        ]

    by_topic = "TopicNameStrategy"
    assert checks() == []
    assert checks(confluent_value_schema_validation="true") == [(False, by_topic, False)]
    assert checks(penstock_value_validation="decode") == [(False, by_topic, True)]
    assert checks(
        confluent_key_schema_validation="true",
        confluent_key_subject_name_strategy="RecordNameStrategy",
        penstock_value_validation="decode",
    ) == [(True, "RecordNameStrategy", False), (False, by_topic, True)]
