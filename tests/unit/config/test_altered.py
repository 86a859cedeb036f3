"""Changes of settings: what they make of what is stored, and how a bad one is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.altered import (
    AlterConfigOp,
    AlterConfigOpType,
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
SET, DELETE, APPEND, SUBTRACT = AlterConfigOpType


def test_set_and_delete_change_only_what_they_name() -> None:
    current = {"retention.ms": "1", "flush.ms": "2"}
    changes = [AlterConfigOp("retention.ms", SET, "3"), AlterConfigOp("flush.ms", DELETE, None)]
    assert alter_topic(current, changes, CONFIG) == {"retention.ms": "3"}
    assert current == {"retention.ms": "1", "flush.ms": "2"}


def test_deleting_what_is_not_there_is_fine() -> None:
    assert alter_topic({}, [AlterConfigOp("retention.ms", DELETE, None)], CONFIG) == {}


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
    current: str | None, operation: AlterConfigOpType, value: str, new: str
) -> None:
    stored = {} if current is None else {"cleanup.policy": current}
    changes = [AlterConfigOp("cleanup.policy", operation, value)]
    assert alter_topic(stored, changes, CONFIG) == {"cleanup.policy": new}


@given(st.lists(st.sampled_from(["0:1", "0:2", "1:1", "2:3"]), unique=True), st.data())
def test_appending_and_subtracting_the_same_leaves_the_rest(
    items: list[str], data: st.DataObject
) -> None:
    name = "leader.replication.throttled.replicas"
    some = data.draw(st.lists(st.sampled_from(["0:1", "0:2", "1:1", "2:3"]), min_size=1))
    grown = alter_topic(
        {name: ",".join(items)}, [AlterConfigOp(name, APPEND, ",".join(some))], CONFIG
    )
    assert set(grown[name].split(",")) == {*items, *some}
    back = alter_topic(grown, [AlterConfigOp(name, SUBTRACT, ",".join(some))], CONFIG)
    assert [i for i in back[name].split(",") if i] == [i for i in items if i not in some]


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        (
            [AlterConfigOp("retention.ms", APPEND, "1")],
            InvalidConfiguration,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            [AlterConfigOp("retention.ms", SUBTRACT, "1")],
            InvalidConfiguration,
            "Can't SUBTRACT to key retention.ms because its type is not LIST.",
        ),
        (
            [AlterConfigOp("x", APPEND, "1")],
            InvalidConfiguration,
            "Can't APPEND to key x because its type is not LIST.",
        ),
        ([AlterConfigOp("x", SET, "1")], InvalidConfiguration, "Unknown topic config name: x"),
        (
            [AlterConfigOp("retention.ms", SET, "abc")],
            InvalidConfiguration,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            [AlterConfigOp("flush.ms", SET, None), AlterConfigOp("segment.ms", APPEND, None)],
            InvalidRequest,
            "Null value not supported for : flush.ms, segment.ms",
        ),
        (
            [AlterConfigOp("flush.ms", SET, "1"), AlterConfigOp("flush.ms", DELETE, None)],
            InvalidRequest,
            "Error due to duplicate config keys",
        ),
        (
            [
                AlterConfigOp("cleanup.policy", SET, "delete"),
                AlterConfigOp("log.cleanup.policy", SET, "compact"),
            ],
            InvalidRequest,
            "Error due to duplicate config keys",
        ),
        ([AlterConfigOp("flush.ms", 7, "1")], InvalidRequest, "Unknown operations type 7"),
    ],
)
def test_a_bad_change_of_a_topic_is_refused(
    changes: list[AlterConfigOp], error: type[ProtocolError], sentence: str
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
    assert alter_group({}, [AlterConfigOp(name, SET, "50000")], CONFIG) == {name: "50000"}
    assert replace_group([(name, "50000")], CONFIG) == {name: "50000"}
    with pytest.raises(InvalidConfiguration, match=r"must be greater than or equal to group.cons"):
        alter_group({}, [AlterConfigOp(name, SET, "1")], CONFIG)


def test_a_brokers_dynamic_settings_change() -> None:
    stored = {"log.roll.ms": "5"}
    changed = alter_broker(
        stored, [AlterConfigOp("message.max.bytes", SET, "9")], CONFIG, cluster_wide=True
    )
    assert changed == {"log.roll.ms": "5", "message.max.bytes": "9"}
    assert replace_broker(stored, [("log.roll.ms", "6")], CONFIG, cluster_wide=False) == {
        "log.roll.ms": "6"
    }


@pytest.mark.parametrize(
    ("name", "value", "cluster_wide", "sentence"),
    [
        ("broker.id", "3", False, "Cannot update these configs dynamically: [broker.id]"),
        ("listeners", "PLAINTEXT://:1", False, "Cannot update these configs dynamically: [list"),
        (
            "sasl.enabled.mechanisms",
            "PLAIN",
            True,
            "Cannot update these configs at default cluster level, broker id must be specified:"
            " [sasl.enabled.mechanisms]",
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
            " prefix: [ssl.keystore.location]",
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
        alter_broker({}, [AlterConfigOp(name, SET, value)], CONFIG, cluster_wide=cluster_wide)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("cluster_wide", [True, False])
def test_a_setting_nobody_knows_is_stored_as_it_is(cluster_wide: bool) -> None:
    changes = [
        AlterConfigOp("no.such", SET, "3"),
        AlterConfigOp("listener.name.x.no.such", SET, "4"),
    ]
    wanted = {"no.such": "3", "listener.name.x.no.such": "4"}
    assert alter_broker({}, changes, CONFIG, cluster_wide=cluster_wide) == wanted
    replaced = replace_broker({}, wanted.items(), CONFIG, cluster_wide=cluster_wide)
    assert replaced == wanted
    with pytest.raises(InvalidConfiguration, match=r"Unknown config name: no.such"):
        change = AlterConfigOp("no.such", APPEND, "3")
        alter_broker({}, [change], CONFIG, cluster_wide=cluster_wide)


def test_only_lists_of_a_broker_can_be_edited() -> None:
    changes = [AlterConfigOp("log.cleaner.threads", APPEND, "3")]
    with pytest.raises(InvalidConfiguration, match=r"append is not allowed for config key: log.cl"):
        alter_broker({}, changes, CONFIG, cluster_wide=True)


def test_the_number_that_eligible_leaders_rest_on_changes_for_all_brokers_alike() -> None:
    name = "min.insync.replicas"
    stored = {name: "1", "log.roll.ms": "5"}
    more = alter_broker(stored, [AlterConfigOp(name, SET, "2")], CONFIG, cluster_wide=True)
    assert more == {**stored, name: "2"}
    with pytest.raises(InvalidConfiguration, match=r"Cluster-level min.insync.replicas cannot be"):
        alter_broker(stored, [AlterConfigOp(name, DELETE, None)], CONFIG, cluster_wide=True)
    with pytest.raises(InvalidConfiguration, match=r"Cluster-level min.insync.replicas cannot be"):
        replace_broker(stored, [("log.roll.ms", "5")], CONFIG, cluster_wide=True)
    with pytest.raises(InvalidConfiguration, match=r"Broker-level min.insync.replicas cannot be"):
        alter_broker({}, [AlterConfigOp(name, SET, "2")], CONFIG, cluster_wide=False)
    with pytest.raises(InvalidConfiguration, match=r"Broker-level min.insync.replicas cannot be"):
        replace_broker({}, [(name, "2")], CONFIG, cluster_wide=False)


def test_what_one_broker_has_of_that_number_from_earlier_may_go() -> None:
    name = "min.insync.replicas"
    stored = {name: "2", "log.roll.ms": "5"}
    kept = alter_broker(
        stored, [AlterConfigOp("log.roll.ms", SET, "6")], CONFIG, cluster_wide=False
    )
    assert kept == {name: "2", "log.roll.ms": "6"}
    assert alter_broker(
        stored, [AlterConfigOp(name, DELETE, None)], CONFIG, cluster_wide=False
    ) == {"log.roll.ms": "5"}


def test_several_settings_that_cannot_change_are_named_together() -> None:
    changes = [AlterConfigOp("port", SET, "1"), AlterConfigOp("broker.id", SET, "1")]
    with pytest.raises(InvalidRequest, match=r"\[broker.id, port\]"):
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
    changed = alter_broker({}, [AlterConfigOp(name, SET, "7")], CONFIG, cluster_wide=cluster_wide)
    assert changed == {name: "7"}


def test_a_change_for_one_broker_is_judged_with_what_is_set_for_all() -> None:
    config = CONFIG.with_dynamic({"log.cleaner.dedupe.buffer.size": "2097153"}, {})
    alter_broker({}, [AlterConfigOp("log.cleaner.threads", SET, "1")], config, cluster_wide=False)
    with pytest.raises(InvalidRequest, match=r"1 MiB for each"):
        alter_broker(
            {}, [AlterConfigOp("log.cleaner.threads", SET, "3")], config, cluster_wide=False
        )


def test_levels_of_loggers_change() -> None:
    changes = [AlterConfigOp("kafka", SET, "DEBUG"), AlterConfigOp("kafka.log", DELETE, None)]
    assert alter_loggers(changes, ["root", "kafka", "kafka.log"]) == {
        "kafka": "DEBUG",
        "kafka.log": None,
    }


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (AlterConfigOp("x", SET, "DEBUG"), InvalidConfiguration, "Logger x does not exist!"),
        (
            AlterConfigOp("root", SET, "LOUD"),
            InvalidConfiguration,
            "Cannot set the log level of root to",
        ),
        (AlterConfigOp("root", DELETE, None), InvalidRequest, "Removing the log level of the root"),
        (AlterConfigOp("root", APPEND, "DEBUG"), InvalidRequest, "APPEND operation is not allowed"),
    ],
)
def test_a_bad_level_is_refused(
    change: AlterConfigOp, error: type[ProtocolError], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        alter_loggers([change], ["root"])
    assert sentence in str(caught.value)
