"""Settings of single groups stay within what the broker allows."""

import pytest

from penstock.config.broker import load
from penstock.config.group import broker_name, effective_group_config, parse_group_config
from penstock.errors import ConfigError

DEFAULTS = load(None, {})


def test_what_a_group_does_not_say_follows_the_broker() -> None:
    broker = load(None, {"group.consumer.session.timeout.ms": "50000"})
    effective = effective_group_config({"consumer.heartbeat.interval.ms": "6000"}, broker)
    assert effective["consumer.session.timeout.ms"] == 50_000
    assert effective["consumer.heartbeat.interval.ms"] == 6000
    assert effective["share.auto.offset.reset"] == "latest"
    assert len(effective) == 17


def test_a_stored_setting_of_a_later_version_does_not_hurt() -> None:
    stored = {"not.yet.known": "1", "share.isolation.level": "dirty"}
    assert effective_group_config(stored, DEFAULTS) == effective_group_config({}, DEFAULTS)


def test_settings_without_a_counterpart_on_the_broker_have_none() -> None:
    assert broker_name("consumer.session.timeout.ms") == "group.consumer.session.timeout.ms"
    assert broker_name("share.isolation.level") is None


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("x", "1", "Unknown group config name: x"),
        ("share.isolation.level", None, "Null value not supported for group configs"),
        ("share.isolation.level", "none", "String must be one of: read_committed, read_uncommit"),
        (
            "consumer.session.timeout.ms",
            "10",
            "consumer.session.timeout.ms must be greater than or equal to"
            " group.consumer.min.session.timeout.ms",
        ),
        (
            "share.session.timeout.ms",
            "60001",
            "share.session.timeout.ms must be less than or equal to"
            " group.share.max.session.timeout.ms",
        ),
        (
            "streams.num.standby.replicas",
            "3",
            "streams.num.standby.replicas must be less than or equal to"
            " group.streams.max.standby.replicas",
        ),
        ("share.auto.offset.reset", "by_duration:P", "must be one of: latest, earliest, by_dur"),
        ("share.auto.offset.reset", "by_duration:5m", "must be one of: latest, earliest, by_dur"),
    ],
)
def test_a_refusal_names_the_setting_and_the_bound(
    name: str, text: str | None, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_group_config({name: text}, DEFAULTS)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "text", ["latest", "earliest", "by_duration:P1DT2H3M4.5S", "by_duration:PT1H"]
)
def test_a_share_group_begins_somewhere(text: str) -> None:
    stated = {"share.auto.offset.reset": text}
    assert parse_group_config(stated, DEFAULTS) == stated


def test_heartbeats_are_shorter_than_sessions() -> None:
    broker = load(
        None,
        {
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.min.heartbeat.interval.ms": "1",
        },
    )
    stated = {"consumer.session.timeout.ms": "2000", "consumer.heartbeat.interval.ms": "2000"}
    with pytest.raises(ConfigError, match=r"must be greater than consumer.heartbeat.interval.ms"):
        parse_group_config(stated, broker)
