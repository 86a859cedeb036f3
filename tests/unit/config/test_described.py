"""DescribeConfigs: values, where they come from, and what stands behind them, as Kafka shows it."""

from penstock.config.broker import BrokerConfig, load
from penstock.config.described import (
    DescribedSetting,
    SettingSource,
    Synonym,
    describe_broker,
    describe_broker_default,
    describe_group,
    describe_loggers,
    describe_topic,
)

DEFAULTS = load(None, {})


def topic_entry(
    name: str, overrides: dict[str, str], config: BrokerConfig = DEFAULTS
) -> DescribedSetting:
    (entry,) = describe_topic(overrides, config, [name])
    return entry


def broker_entry(name: str, config: BrokerConfig) -> DescribedSetting:
    (entry,) = describe_broker(config, [name])
    return entry


def test_all_settings_of_a_topic_are_described_in_order() -> None:
    names = [entry.name for entry in describe_topic({}, DEFAULTS)]
    assert names == sorted(names)
    assert len(names) == 43
    assert [entry.name for entry in describe_topic({}, DEFAULTS, [])] == names


def test_a_name_nobody_knows_is_left_out() -> None:
    assert describe_topic({}, DEFAULTS, ["no.such"]) == []
    assert describe_broker(DEFAULTS, ["no.such"]) == []


def test_a_default_is_described_with_the_brokers_name() -> None:
    entry = topic_entry("segment.bytes", {})
    assert entry == DescribedSetting(
        name="segment.bytes",
        value="1073741824",
        source=SettingSource.DEFAULT,
        is_sensitive=False,
        is_read_only=False,
        type=3,
        documentation="The size at which a segment is full and the next begins.",
        synonyms=(Synonym("log.segment.bytes", "1073741824", SettingSource.DEFAULT),),
    )


def test_an_override_stands_before_the_brokers_value() -> None:
    config = load(None, {"log.segment.bytes": "2000000"})
    entry = topic_entry("segment.bytes", {"segment.bytes": " 1000"}, config)
    assert (entry.value, entry.source) == ("1000", SettingSource.TOPIC)
    assert entry.synonyms == (
        Synonym("segment.bytes", "1000", SettingSource.TOPIC),
        Synonym("log.segment.bytes", "2000000", SettingSource.STATIC_BROKER),
        Synonym("log.segment.bytes", "1073741824", SettingSource.DEFAULT),
    )


def test_every_layer_of_the_broker_is_a_synonym_the_strongest_first() -> None:
    config = load(None, {"log.segment.bytes": "2000000"})
    config = config.with_dynamic({"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"})
    entry = topic_entry("segment.bytes", {}, config)
    assert (entry.value, entry.source) == ("4000000", SettingSource.DYNAMIC_BROKER)
    assert [(s.value, s.source) for s in entry.synonyms] == [
        ("4000000", SettingSource.DYNAMIC_BROKER),
        ("3000000", SettingSource.DYNAMIC_DEFAULT_BROKER),
        ("2000000", SettingSource.STATIC_BROKER),
        ("1073741824", SettingSource.DEFAULT),
    ]


def test_retention_in_hours_alone_is_no_synonym_of_retention_in_ms() -> None:
    entry = topic_entry("retention.ms", {}, load(None, {"log.retention.hours": "2"}))
    assert (entry.value, entry.source, entry.synonyms) == ("7200000", SettingSource.DEFAULT, ())


def test_once_ms_are_set_the_other_units_follow_them() -> None:
    config = load(None, {"log.retention.hours": "2", "log.retention.ms": "5"})
    assert topic_entry("retention.ms", {}, config).synonyms == (
        Synonym("log.retention.ms", "5", SettingSource.STATIC_BROKER),
        Synonym("log.retention.hours", "2", SettingSource.STATIC_BROKER),
        Synonym("log.retention.hours", "168", SettingSource.DEFAULT),
    )


def test_an_override_under_the_name_of_the_tutorials_is_described_under_kafkas() -> None:
    entry = topic_entry("cleanup.policy", {"log.cleanup.policy": "compact"})
    assert (entry.value, entry.source, entry.type) == ("compact", SettingSource.TOPIC, 7)


def test_settings_without_a_counterpart_have_no_synonyms() -> None:
    entry = topic_entry("remote.storage.enable", {})
    assert (entry.value, entry.source, entry.synonyms) == ("false", SettingSource.DEFAULT, ())


def test_hidden_settings_show_only_when_set() -> None:
    assert describe_topic({}, DEFAULTS, ["internal.segment.bytes"]) == []
    assert topic_entry("internal.segment.bytes", {"internal.segment.bytes": "9"}).value == "9"


def test_a_broker_says_what_can_change_while_it_runs() -> None:
    assert broker_entry("broker.id", DEFAULTS).is_read_only
    assert broker_entry("listeners", DEFAULTS).is_read_only
    assert not broker_entry("log.segment.bytes", DEFAULTS).is_read_only
    assert not broker_entry("ssl.cipher.suites", DEFAULTS).is_read_only


def test_a_value_that_is_not_set_is_null_and_has_no_synonym() -> None:
    entry = broker_entry("log.retention.ms", DEFAULTS)
    assert (entry.value, entry.source, entry.synonyms) == (None, SettingSource.DEFAULT, ())


def test_secrets_never_leave() -> None:
    config = load(None, {"ssl.key.password": "hunter2"})
    entry = broker_entry("ssl.key.password", config)
    assert entry.is_sensitive and entry.value is None and entry.type == 9
    assert entry.synonyms == (Synonym("ssl.key.password", None, SettingSource.STATIC_BROKER),)
    assert "hunter2" not in repr(describe_broker(config))


def test_what_somebody_set_that_nobody_knows_may_be_a_secret() -> None:
    entry = broker_entry("my.plugin.token", load(None, {"my.plugin.token": "abc"}))
    assert entry.is_sensitive and entry.value is None and entry.type == 0
    assert entry.synonyms == (Synonym("my.plugin.token", None, SettingSource.STATIC_BROKER),)


def test_throttles_show_only_while_they_are_set() -> None:
    name = "leader.replication.throttled.rate"
    assert describe_broker(DEFAULTS, [name]) == []
    entry = broker_entry(name, DEFAULTS.with_dynamic({}, {name: "1000"}))
    assert (entry.value, entry.source) == ("1000", SettingSource.DYNAMIC_BROKER)


def test_a_setting_of_one_listener_has_the_plain_one_behind_it() -> None:
    name = "listener.name.plaintext.max.connections"
    entry = broker_entry(name, load(None, {name: "7", "max.connections": "9"}))
    assert (entry.value, entry.type) == ("7", 3)
    assert [(s.name, s.value) for s in entry.synonyms] == [
        (name, "7"),
        ("max.connections", "9"),
        ("max.connections", "2147483647"),
    ]


def test_the_brokers_default_is_what_is_set_for_all() -> None:
    config = load(None, {"log.roll.ms": "1"}).with_dynamic(
        {"log.roll.ms": "2", "message.max.bytes": "3"}, {"log.roll.ms": "4"}
    )
    first, second = describe_broker_default(config)
    assert (first.name, first.value, first.source) == (
        "log.roll.ms",
        "2",
        SettingSource.DYNAMIC_DEFAULT_BROKER,
    )
    assert first.synonyms == (Synonym("log.roll.ms", "2", SettingSource.DYNAMIC_DEFAULT_BROKER),)
    assert (second.name, second.value) == ("message.max.bytes", "3")
    assert describe_broker_default(DEFAULTS) == []


def test_a_group_is_described_with_the_brokers_bounds_behind_it() -> None:
    overrides = {"consumer.session.timeout.ms": "50000"}
    (entry,) = describe_group(overrides, DEFAULTS, ["consumer.session.timeout.ms"])
    assert (entry.value, entry.source) == ("50000", SettingSource.GROUP)
    assert entry.synonyms[1] == Synonym(
        "group.consumer.session.timeout.ms", "45000", SettingSource.DEFAULT
    )
    (alone,) = describe_group({}, DEFAULTS, ["share.isolation.level"])
    assert alone.synonyms == (
        Synonym("share.isolation.level", "read_uncommitted", SettingSource.DEFAULT),
    )
    assert len(describe_group({}, DEFAULTS)) == 17


def test_loggers_are_described_with_their_levels() -> None:
    first, second = describe_loggers({"root": "INFO", "kafka": "DEBUG"})
    assert (first.name, first.value, first.source) == (
        "kafka",
        "DEBUG",
        SettingSource.DYNAMIC_BROKER_LOGGER,
    )
    assert second.name == "root"


def test_of_a_dynamic_setting_nobody_knows_nothing_but_its_name_and_place_is_told() -> None:
    config = DEFAULTS.with_dynamic(
        {"no.such": "1"}, {"no.such": "2", "listener.name.x.no.such": "3"}
    )
    entry = broker_entry("no.such", config)
    assert (entry.value, entry.is_sensitive, entry.is_read_only) == (None, True, True)
    assert (entry.source, entry.type) == (SettingSource.DYNAMIC_BROKER, 0)
    places = [SettingSource.DYNAMIC_BROKER, SettingSource.DYNAMIC_DEFAULT_BROKER]
    assert entry.synonyms == tuple(Synonym("no.such", None, place) for place in places)
    listener = broker_entry("listener.name.x.no.such", config)
    own = Synonym("listener.name.x.no.such", None, SettingSource.DYNAMIC_BROKER)
    assert listener.synonyms == (own, *entry.synonyms)
    (for_all,) = describe_broker_default(config)
    assert (for_all.name, for_all.value, for_all.is_sensitive) == ("no.such", None, True)
