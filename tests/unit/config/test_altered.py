"""Changes of settings: what they make of what is stored, and how a bad one is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.altered import (
    Change,
    Operation,
    alter_broker,
    alter_group,
    alter_loggers,
    alter_topic,
    replace_broker,
    replace_group,
    replace_topic,
)
from penstock.config.broker import load
from penstock.errors import InvalidConfiguration, InvalidRequest, ProtocolError

CONFIG = load(None, {})
SET, DELETE, APPEND, SUBTRACT = Operation


def test_set_and_delete_change_only_what_they_name() -> None:
    current = {"retention.ms": "1", "flush.ms": "2"}
    changes = [Change("retention.ms", SET, "3"), Change("flush.ms", DELETE, None)]
    assert alter_topic(current, changes, CONFIG) == {"retention.ms": "3"}
    assert current == {"retention.ms": "1", "flush.ms": "2"}


def test_deleting_what_is_not_there_is_fine() -> None:
    assert alter_topic({}, [Change("retention.ms", DELETE, None)], CONFIG) == {}


@pytest.mark.parametrize(
    ("current", "operation", "value", "new"),
    [
        ("compact", APPEND, "delete", "compact,delete"),
        ("compact", APPEND, "compact", "compact"),
        (None, APPEND, "compact", "delete,compact"),
        ("compact,delete", SUBTRACT, "delete", "compact"),
        ("compact", SUBTRACT, "delete", "compact"),
        ("compact", SUBTRACT, "compact", ""),
        (None, SUBTRACT, "delete", ""),
        ("", APPEND, "compact, delete", "compact,delete"),
    ],
)
def test_lists_grow_and_shrink_from_what_holds(
    current: str | None, operation: Operation, value: str, new: str
) -> None:
    stored = {} if current is None else {"cleanup.policy": current}
    changes = [Change("cleanup.policy", operation, value)]
    assert alter_topic(stored, changes, CONFIG) == {"cleanup.policy": new}


@given(st.lists(st.sampled_from(["0:1", "0:2", "1:1", "2:3"]), unique=True), st.data())
def test_appending_and_subtracting_the_same_leaves_the_rest(
    items: list[str], data: st.DataObject
) -> None:
    name = "leader.replication.throttled.replicas"
    some = data.draw(st.lists(st.sampled_from(["0:1", "0:2", "1:1", "2:3"]), min_size=1))
    grown = alter_topic({name: ",".join(items)}, [Change(name, APPEND, ",".join(some))], CONFIG)
    assert set(grown[name].split(",")) == {*items, *some}
    back = alter_topic(grown, [Change(name, SUBTRACT, ",".join(some))], CONFIG)
    assert [i for i in back[name].split(",") if i] == [i for i in items if i not in some]


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        (
            [Change("retention.ms", APPEND, "1")],
            InvalidConfiguration,
            "Config value append is not allowed for config key: retention.ms",
        ),
        (
            [Change("retention.ms", SUBTRACT, "1")],
            InvalidConfiguration,
            "Config value subtract is not allowed for config key: retention.ms",
        ),
        ([Change("x", APPEND, "1")], InvalidConfiguration, "Unknown config name: x"),
        ([Change("x", SET, "1")], InvalidConfiguration, "Unknown topic config name: x"),
        (
            [Change("retention.ms", SET, "abc")],
            InvalidConfiguration,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            [Change("flush.ms", SET, None), Change("segment.ms", APPEND, None)],
            InvalidRequest,
            "Null value not supported for : flush.ms, segment.ms",
        ),
        (
            [Change("flush.ms", SET, "1"), Change("flush.ms", DELETE, None)],
            InvalidRequest,
            "Error due to duplicate config keys",
        ),
        (
            [Change("cleanup.policy", SET, "delete"), Change("log.cleanup.policy", SET, "compact")],
            InvalidRequest,
            "Error due to duplicate config keys",
        ),
        ([Change("flush.ms", 7, "1")], InvalidRequest, "Unknown operations type 7"),
    ],
)
def test_a_bad_change_of_a_topic_is_refused(
    changes: list[Change], error: type[ProtocolError], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        alter_topic({}, changes, CONFIG)
    assert str(caught.value) == sentence


def test_a_request_that_states_everything_replaces_everything() -> None:
    assert replace_topic([("log.cleanup.policy", "compact")], CONFIG) == {
        "cleanup.policy": "compact"
    }
    with pytest.raises(InvalidRequest, match=r"duplicate config keys"):
        replace_topic([("flush.ms", "1"), ("flush.ms", "2")], CONFIG)
    with pytest.raises(InvalidRequest, match=r"Null value not supported for : flush.ms"):
        replace_topic([("flush.ms", None)], CONFIG)
    with pytest.raises(InvalidConfiguration, match=r"Unknown topic config name: x"):
        replace_topic([("x", "1")], CONFIG)


def test_groups_change_within_the_brokers_bounds() -> None:
    name = "consumer.session.timeout.ms"
    assert alter_group({}, [Change(name, SET, "50000")], CONFIG) == {name: "50000"}
    assert replace_group([(name, "50000")], CONFIG) == {name: "50000"}
    with pytest.raises(InvalidConfiguration, match=r"must be greater than or equal to group.cons"):
        alter_group({}, [Change(name, SET, "1")], CONFIG)


def test_a_brokers_dynamic_settings_change() -> None:
    stored = {"log.roll.ms": "5"}
    changed = alter_broker(
        stored, [Change("message.max.bytes", SET, "9")], CONFIG, cluster_wide=True
    )
    assert changed == {"log.roll.ms": "5", "message.max.bytes": "9"}
    assert replace_broker([("log.roll.ms", "6")], CONFIG, cluster_wide=False) == {
        "log.roll.ms": "6"
    }


@pytest.mark.parametrize(
    ("name", "value", "cluster_wide", "sentence"),
    [
        ("broker.id", "3", False, "Cannot update these configs dynamically: Set(broker.id)"),
        ("no.such", "3", True, "Cannot update these configs dynamically: Set(no.such)"),
        ("listeners", "PLAINTEXT://:1", False, "Cannot update these configs dynamically: Set(list"),
        (
            "sasl.enabled.mechanisms",
            "PLAIN",
            True,
            "Cannot update these configs at default cluster level, broker id must be specified:"
            " Set(sasl.enabled.mechanisms)",
        ),
        (
            "listener.name.plaintext.ssl.keystore.location",
            "/k",
            True,
            "Cannot update these configs at default cluster level, broker id must be specified:",
        ),
        (
            "ssl.keystore.location",
            "/k",
            False,
            "These security configs can be dynamically updated only per-listener using the listener"
            " prefix: Set(ssl.keystore.location)",
        ),
        (
            "log.cleaner.threads",
            "-1",
            True,
            "Invalid value -1 for configuration log.cleaner.threads: Value must be at least 0",
        ),
        ("log.cleaner.threads", "1000", True, "log.cleaner.dedupe.buffer.size is 134217728"),
        ("log.retention.ms", "0", False, "it must be at least 1, or -1"),
    ],
)
def test_a_bad_change_of_a_broker_is_an_invalid_request(
    name: str, value: str, cluster_wide: bool, sentence: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        alter_broker({}, [Change(name, SET, value)], CONFIG, cluster_wide=cluster_wide)
    assert sentence in str(caught.value)


def test_several_settings_that_cannot_change_are_named_together() -> None:
    changes = [Change("port", SET, "1"), Change("broker.id", SET, "1")]
    with pytest.raises(InvalidRequest, match=r"Set\(broker.id, port\)"):
        alter_broker({}, changes, CONFIG, cluster_wide=False)


@pytest.mark.parametrize(
    ("name", "cluster_wide"),
    [
        ("listener.name.plaintext.max.connections", True),
        ("listener.name.plaintext.ssl.keystore.location", False),
        ("leader.replication.throttled.rate", True),
        ("leader.replication.throttled.rate", False),
    ],
)
def test_settings_of_listeners_and_throttles_can_change(name: str, cluster_wide: bool) -> None:
    changed = alter_broker({}, [Change(name, SET, "7")], CONFIG, cluster_wide=cluster_wide)
    assert changed == {name: "7"}


def test_a_change_for_one_broker_is_judged_with_what_is_set_for_all() -> None:
    config = CONFIG.with_dynamic({"log.cleaner.dedupe.buffer.size": "2097153"}, {})
    alter_broker({}, [Change("log.cleaner.threads", SET, "1")], config, cluster_wide=False)
    with pytest.raises(InvalidRequest, match=r"1 MiB for each"):
        alter_broker({}, [Change("log.cleaner.threads", SET, "3")], config, cluster_wide=False)


def test_levels_of_loggers_change() -> None:
    changes = [Change("kafka", SET, "DEBUG"), Change("kafka.log", DELETE, None)]
    assert alter_loggers(changes, ["root", "kafka", "kafka.log"]) == {
        "kafka": "DEBUG",
        "kafka.log": None,
    }


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (Change("x", SET, "DEBUG"), InvalidConfiguration, "Logger x does not exist!"),
        (Change("root", SET, "LOUD"), InvalidConfiguration, "Cannot set the log level of root to"),
        (Change("root", DELETE, None), InvalidRequest, "Removing the log level of the root"),
        (Change("root", APPEND, "DEBUG"), InvalidRequest, "Append operation is not allowed"),
    ],
)
def test_a_bad_level_is_refused(change: Change, error: type[ProtocolError], sentence: str) -> None:
    with pytest.raises(error) as caught:
        alter_loggers([change], ["root"])
    assert sentence in str(caught.value)
