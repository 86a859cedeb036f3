"""A broker's configuration: its sources, which wins, what is refused, what is printed."""

from pathlib import Path

import pytest

from penstock.config.broker import BrokerConfig, describe_values, load, setting_of
from penstock.errors import ConfigError


def config(**given: str) -> BrokerConfig:
    """A configuration from names written with underscores."""
    static = {name.replace("_", "."): text for name, text in given.items()}
    return BrokerConfig(static, host_name=lambda: "this.machine")


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nmessage.max.bytes=2000\n")
    loaded = load(file, {"num.partitions": "5"})
    assert (loaded.num_partitions, loaded.message_max_bytes) == (5, 2000)
    assert loaded.static == {"num.partitions": "5", "message.max.bytes": "2000"}


def test_the_properties_file_of_the_tutorials_is_understood_without_a_warning(
    tmp_path: Path,
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "broker.id=0\nlisteners=PLAINTEXT://:9092\n"
        "advertised.listeners=PLAINTEXT://your.host.name:9092\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL\n"
        "num.network.threads=3\nnum.io.threads=8\nsocket.send.buffer.bytes=102400\n"
        "socket.receive.buffer.bytes=102400\nsocket.request.max.bytes=104857600\n"
        "log.dirs=/tmp/kafka-logs\nnum.partitions=1\nnum.recovery.threads.per.data.dir=1\n"
        "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
        "transaction.state.log.min.isr=1\nlog.flush.interval.messages=10000\n"
        "log.flush.interval.ms=1000\nlog.retention.hours=168\nlog.retention.bytes=1073741824\n"
        "log.segment.bytes=1073741824\nlog.retention.check.interval.ms=300000\n"
        "zookeeper.connect=localhost:2181\nzookeeper.connection.timeout.ms=18000\n"
        "group.initial.rebalance.delay.ms=0\n"
    )
    loaded = load(file, {})
    assert loaded.warnings == ()
    assert str(loaded.advertised_listeners[0]) == "PLAINTEXT://your.host.name:9092"
    assert loaded.listeners[0].host == ""
    assert loaded.zookeeper_connect == "localhost:2181"


def test_the_legacy_files_of_the_tutorials_are_understood() -> None:
    loaded = config(broker_id="1", port="9093", log_dirs="./logs/kafka-1")
    assert str(loaded.listeners[0]) == "PLAINTEXT://127.0.0.1:9093"
    assert loaded.log_dirs == (Path("logs/kafka-1"),)


def test_an_unknown_key_is_a_warning_that_names_a_close_one() -> None:
    loaded = load(None, {"log.segment.byte": "5", "process.roles": "broker"})
    assert loaded.warnings == (
        "log.segment.byte is not a setting this broker knows: it is ignored,"
        " did you mean log.segment.bytes?",
        "process.roles is not a setting this broker knows: it is ignored",
    )
    assert loaded.log_segment_bytes == 1 << 30


def test_a_throttle_in_the_file_is_a_warning() -> None:
    loaded = load(None, {"leader.replication.throttled.rate": "5"})
    assert "can only be set while the broker runs" in loaded.warnings[0]
    assert loaded.leader_replication_throttled_rate == 2**63 - 1


def test_a_configuration_does_not_change() -> None:
    loaded = config()
    with pytest.raises(AttributeError, match=r"does not change"):
        loaded.broker_id = 3
    with pytest.raises(AttributeError, match=r"does not change"):
        del loaded.broker_id


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 168 * 3_600_000),
        ({"log_retention_hours": "2"}, 7_200_000),
        ({"log_retention_hours": "2", "log_retention_minutes": "3"}, 180_000),
        ({"log_retention_minutes": "3", "log_retention_ms": "4"}, 4),
        ({"log_retention_hours": "-1"}, -1),
        ({"log_retention_minutes": "-1"}, -1),
        ({"log_retention_ms": "-1", "log_retention_minutes": "5"}, -1),
    ],
)
def test_the_finest_unit_of_retention_wins(given: dict[str, str], retention_ms: int) -> None:
    assert config(**given).log_retention_ms == retention_ms


def test_the_finest_unit_of_rolling_wins() -> None:
    assert config(log_roll_hours="1").log_roll_ms == 3_600_000
    assert config(log_roll_hours="1", log_roll_ms="9").log_roll_ms == 9
    assert config(log_roll_jitter_hours="1").log_roll_jitter_ms == 3_600_000
    assert config(log_roll_jitter_hours="1", log_roll_jitter_ms="2").log_roll_jitter_ms == 2


def test_flushing_follows_the_scheduler_unless_set() -> None:
    assert config(log_flush_scheduler_interval_ms="7").log_flush_interval_ms == 7
    given = config(log_flush_scheduler_interval_ms="7", log_flush_interval_ms="3")
    assert given.log_flush_interval_ms == 3


def test_log_dirs_win_over_log_dir() -> None:
    assert config(log_dir="/a").log_dirs == (Path("/a"),)
    assert config(log_dir="/a", log_dirs="/b, /c").log_dirs == (Path("/b"), Path("/c"))
    assert config(log_dirs="/b,/c").num_replica_alter_log_dirs_threads == 2


def test_the_difference_of_old_stands_for_both_bounds_of_timestamps() -> None:
    given = config(log_message_timestamp_difference_max_ms="5")
    assert given.log_message_timestamp_before_max_ms == 5
    assert given.log_message_timestamp_after_max_ms == 5
    both = config(
        log_message_timestamp_difference_max_ms="5", log_message_timestamp_after_max_ms="9"
    )
    assert both.log_message_timestamp_before_max_ms == 5
    assert both.log_message_timestamp_after_max_ms == 9


def test_listeners_win_over_port_and_host_name() -> None:
    assert str(config(port="1", host_name="a").listeners[0]) == "PLAINTEXT://a:1"
    assert str(config(host_name="::1").listeners[0]) == "PLAINTEXT://[::1]:9092"
    given = config(listeners="PLAINTEXT://b:2", port="1", host_name="a")
    assert str(given.listeners[0]) == "PLAINTEXT://b:2"


def test_what_is_advertised_falls_back_to_listeners_and_then_to_the_machine() -> None:
    def told(**given: str) -> str:
        return str(config(**given).advertised_listeners[0])

    assert told() == "PLAINTEXT://127.0.0.1:9092"
    assert told(listeners="PLAINTEXT://a:1") == "PLAINTEXT://a:1"
    assert told(listeners="PLAINTEXT://:1") == "PLAINTEXT://this.machine:1"
    assert told(listeners="PLAINTEXT://:1", advertised_host_name="b") == "PLAINTEXT://b:1"
    assert told(advertised_port="7") == "PLAINTEXT://127.0.0.1:7"
    assert told(advertised_listeners="PLAINTEXT://c:3", advertised_port="7") == "PLAINTEXT://c:3"


def test_brokers_reach_each_other_on_the_listener_that_is_named() -> None:
    two = {
        "listeners": "IN://127.0.0.1:1,OUT://127.0.0.1:2",
        "listener_security_protocol_map": "IN:PLAINTEXT,OUT:PLAINTEXT",
    }
    assert config(**two, inter_broker_listener_name="in").inter_broker_listener_name == "IN"
    with pytest.raises(ConfigError, match=r"set inter.broker.listener.name to IN or OUT"):
        config(**two)
    alone = config(listeners="IN://:1", listener_security_protocol_map="IN:PLAINTEXT")
    assert alone.inter_broker_listener_name == "IN"


def test_the_two_names_of_a_broker_number_are_one() -> None:
    assert config(node_id="4").broker_id == 4
    assert config(broker_id="4").node_id == 4
    with pytest.raises(ConfigError, match=r"node.id and broker.id differ"):
        config(node_id="4", broker_id="5")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"log_segment_bytes": "12"}, "log.segment.bytes is 12: it must be at least 1048576"),
        ({"num_partitions": "0"}, "num.partitions is 0: it must be at least 1"),
        ({"num_partitions": "many"}, "num.partitions is many: it must be a whole number"),
        ({"auto_create_topics_enable": "1"}, "auto.create.topics.enable is 1: it must be true or"),
        (
            {"compression_type": "zip"},
            "compression.type is zip: it must be one of uncompressed, zs",
        ),
        ({"log_cleanup_policy": "keep"}, "log.cleanup.policy is keep: it must be some of compact,"),
        ({"broker_id": "1001"}, "broker.id is 1001: it must be from -1 to 1000"),
        (
            {"broker_id": "-1", "broker_id_generation_enable": "false"},
            "broker.id is -1: write a number from 0",
        ),
        ({"log_retention_ms": "0"}, "it must be at least 1, or -1 to keep records for ever"),
        ({"log_dirs": ""}, "log.dirs has an empty entry"),
        ({"log_dirs": "/a,/a"}, "log.dirs is /a,/a: a directory is named twice"),
        ({"listeners": ""}, "listeners is empty: write at least one"),
        ({"listeners": "PLAINTEXT://0.0.0.0:1"}, "no client can connect to it"),
        ({"advertised_listeners": "SSL://a:1"}, "no listener is named SSL"),
        (
            {"inter_broker_listener_name": "A", "security_inter_broker_protocol": "PLAINTEXT"},
            "are both set: remove one of them",
        ),
        ({"max_connections_per_ip": "0"}, "nobody could connect"),
        ({"max_connections_per_ip_overrides": "a"}, "has a: write host:count"),
        (
            {"replica_fetch_wait_max_ms": "40000"},
            "replica.fetch.wait.max.ms is 40000: it must be at most replica.socket.timeout.ms",
        ),
        (
            {"group_min_session_timeout_ms": "2000000"},
            "it must be at most group.max.session.timeout.ms, which is 1800000",
        ),
        (
            {"group_consumer_session_timeout_ms": "5"},
            "group.consumer.min.session.timeout.ms is 45000: it must be at most",
        ),
        (
            {
                "group_share_heartbeat_interval_ms": "50000",
                "group_share_max_heartbeat_interval_ms": "60000",
            },
            "it must be less than group.share.session.timeout.ms",
        ),
        ({"log_cleaner_dedupe_buffer_size": "1048576"}, "1 MiB for each of log.cleaner.threads"),
        (
            {"log_cleaner_min_compaction_lag_ms": "5", "log_cleaner_max_compaction_lag_ms": "4"},
            "at",
        ),
        ({"metrics_listeners": "9404"}, "metrics.listeners has 9404: write http://host:port"),
    ],
)
def test_a_bad_value_is_a_sentence_that_names_the_key(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**given)
    assert sentence in str(caught.value)


def test_limits_of_single_addresses_are_a_map() -> None:
    given = config(max_connections_per_ip_overrides="10.0.0.1:5, [::1]:6")
    assert given.max_connections_per_ip_overrides == {"10.0.0.1": 5, "::1": 6}


def test_settings_of_one_listener_win_for_it() -> None:
    loaded = load(None, {"listener.name.plaintext.max.connections": "7", "max.connections": "9"})
    assert loaded.warnings == ()
    assert loaded.for_listener("PLAINTEXT", "max.connections") == 7
    assert loaded.for_listener("OTHER", "max.connections") == 9
    with pytest.raises(ConfigError, match=r"max.connections is x"):
        load(None, {"listener.name.plaintext.max.connections": "x"})


def test_a_sasl_setting_of_one_listener_may_name_its_mechanism() -> None:
    name = "listener.name.inside.scram-sha-256.sasl.jaas.config"
    known = setting_of(name)
    assert known is not None and known.name == "sasl.jaas.config"
    assert setting_of("listener.name.inside.plain.num.partitions") is None


def test_dynamic_settings_win_over_static_ones_and_the_brokers_own_over_the_clusters() -> None:
    static = config(log_retention_hours="1", message_max_bytes="100")
    dynamic = static.with_dynamic(
        {"message.max.bytes": "200", "log.retention.ms": "5"}, {"message.max.bytes": "300"}
    )
    assert dynamic.message_max_bytes == 300
    assert dynamic.log_retention_ms == 5
    assert static.message_max_bytes == 100
    gone = dynamic.with_dynamic({}, {})
    assert (gone.message_max_bytes, gone.log_retention_ms) == (100, 3_600_000)
    assert dynamic.with_dynamic({"message.max.bytes": "200"}, {}).message_max_bytes == 200


def test_a_bad_entry_in_the_store_is_a_warning_and_the_others_hold() -> None:
    stored = {"broker.id": "7", "message.max.bytes": "-5", "log.roll.ms": "9"}
    dynamic = config(broker_id="1").with_dynamic(stored, {})
    assert (dynamic.broker_id, dynamic.log_roll_ms) == (1, 9)
    assert dynamic.message_max_bytes == 1_048_588
    assert [warning.partition(": ")[0] for warning in dynamic.warnings] == [
        "a dynamic setting is left out"
    ] * 2


def test_a_setting_nobody_knows_stays_in_its_layer_and_is_warned_of() -> None:
    dynamic = config().with_dynamic({"log.segment.byte": "1"}, {"no.such": "2", "log.roll.ms": "9"})
    assert dynamic.log_roll_ms == 9
    assert dynamic.cluster_wide == {"log.segment.byte": "1"}
    assert dynamic.per_broker == {"no.such": "2", "log.roll.ms": "9"}
    assert dynamic.warnings == (
        "log.segment.byte is not a setting this broker knows: it is ignored,"
        " did you mean log.segment.bytes?",
        "no.such is not a setting this broker knows: it is ignored",
    )


def test_only_what_was_given_last_is_warned_of() -> None:
    loaded = load(None, {"no.such": "1"})
    assert len(loaded.warnings) == 1
    dynamic = loaded.with_dynamic({"log.roll.ms": "9"}, {})
    assert dynamic.warnings == ()
    assert dynamic.with_static({"broker.id": "1"}).warnings == loaded.warnings


def test_what_the_store_held_before_makes_no_new_value() -> None:
    loaded = config()
    assert loaded.with_dynamic({}, {}) is loaded
    stored = {"log.roll.ms": "9", "no.such": "1"}
    dynamic = loaded.with_dynamic(stored, {})
    assert dynamic.with_dynamic(dict(stored), {}) is dynamic
    assert dynamic.with_dynamic({"log.roll.ms": "9"}, {}) is not dynamic


def test_dynamic_settings_that_contradict_the_rest_are_left_out_as_a_whole() -> None:
    dynamic = config().with_dynamic({"log.roll.ms": "9"}, {"log.cleaner.threads": "1000"})
    assert (dynamic.log_roll_ms, dynamic.log_cleaner_threads) == (9, 1)
    assert "log.cleaner.dedupe.buffer.size" in dynamic.warnings[0]
    nothing = config().with_dynamic({"log.cleaner.threads": "1000"}, {})
    assert nothing.log_cleaner_threads == 1


def test_a_broker_that_gets_its_number_later_keeps_everything_else() -> None:
    loaded = config(num_partitions="3").with_dynamic({"log.roll.ms": "9"}, {})
    numbered = loaded.with_static({"broker.id": "5"})
    assert (numbered.broker_id, numbered.num_partitions, numbered.log_roll_ms) == (5, 3, 9)


def test_all_settings_are_printed_as_kafka_prints_them() -> None:
    given = config(ssl_key_password="hunter2", log_dirs="/a,/b", broker_id="0", no_such="1")
    text = describe_values(given)
    lines = text.split("\n")
    assert lines[0] == "KafkaConfig values: "
    assert lines[-1] == ""
    assert lines[1:-1] == sorted(lines[1:-1], key=lambda line: line.partition(" = ")[0])
    for line in (
        "\tadvertised.host.name = null",
        "\tauthorizer.class.name = ",
        "\tauto.create.topics.enable = true",
        "\tbroker.id = 0",
        "\tlog.cleaner.io.max.bytes.per.second = 1.7976931348623157E308",
        "\tlog.dirs = [/a, /b]",
        "\tlog.retention.ms = null",
        "\tssl.key.password = [hidden]",
    ):
        assert line in lines
    assert "hunter2" not in text
    assert "throttled" not in text
