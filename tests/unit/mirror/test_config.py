"""What a file says, and every mistake in it at once."""

import pytest

from penstock.config.properties import parse_properties
from penstock.errors import ConfigError
from penstock.mirror.config import MirrorConfig
from penstock.mirror.policies import IdentityPolicy, PrefixPolicy

TWO = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""


def config(text: str) -> MirrorConfig:
    return MirrorConfig.of(parse_properties(text))


def test_the_shortest_file_means_what_it_means_to_mirror_maker() -> None:
    found = config(TWO)
    (flow,) = found.flows
    assert (flow.name, flow.policy) == ("A->B", PrefixPolicy("."))
    assert flow.topics.takes("orders") and not flow.topics.takes("__consumer_offsets")
    assert flow.groups.takes("g") and not flow.groups.takes("console-consumer-1")
    assert flow.sync_topic_configs and flow.sync_topic_acls and not flow.sync_group_offsets
    assert (flow.tasks_max, flow.checkpoint_s, flow.refresh_topics_s) == (1, 60, 600)
    assert {(beat.source, beat.target) for beat in found.beats} == {("A", "B"), ("B", "A")}
    assert found.client("A", "consumer") == {"bootstrap.servers": "a:9092"}
    assert found.unused == ()


def test_a_flow_overrides_what_holds_for_all() -> None:
    found = config(
        TWO
        + """
B->A.enabled = true
topics = orders, payments.*
A->B.topics = orders
topics.exclude = .*tmp
groups = g1,g2
sync.group.offsets.enabled = true
B->A.sync.group.offsets.enabled = false
emit.checkpoints.interval.seconds = 5
A->B.emit.checkpoints.interval.seconds = 1
refresh.topics.enabled = false
replication.factor = 1
replication.policy.separator = _
offset-syncs.topic.location = target
tasks.max = 4
"""
    )
    forth, back = found.flows
    assert forth.topics.takes("orders") and not forth.topics.takes("payments1")
    assert back.topics.takes("payments1") and not back.topics.takes("payments1tmp")
    assert (forth.sync_group_offsets, back.sync_group_offsets) == (True, False)
    assert (forth.checkpoint_s, back.checkpoint_s) == (1, 5)
    assert (forth.refresh_topics_s, forth.replication_factor, forth.tasks_max) == (None, 1, 4)
    assert forth.policy.remote("A", "orders") == "A_orders"
    assert not forth.are_syncs_on_source


def test_settings_of_clients_go_from_the_general_to_the_particular() -> None:
    found = config(
        TWO
        + """
security.protocol = SSL
A.security.protocol = SASL_SSL
A.sasl.jaas.config = secret
A.consumer.fetch.max.bytes = 1000
consumer.isolation.level = read_uncommitted
B.producer.transaction.timeout.ms = 5000
"""
    )
    reader = found.client("A", "consumer")
    assert (reader["security.protocol"], reader["sasl.jaas.config"]) == ("SASL_SSL", "secret")
    assert (reader["fetch.max.bytes"], reader["isolation.level"]) == ("1000", "read_uncommitted")
    assert found.client("B", "producer")["security.protocol"] == "SSL"
    assert found.client("B", "producer")["transaction.timeout.ms"] == "5000"
    assert "fetch.max.bytes" not in found.client("A", "admin")


def test_what_means_something_to_connect_alone_is_named() -> None:
    found = config(TWO + "key.converter = x\nA->B.offset.lag.max = 100\n")
    assert found.unused == ("A->B.offset.lag.max", "key.converter")


def test_old_names_are_understood() -> None:
    (flow,) = config(TWO + "topics.blacklist = secret\ngroups.blacklist = g9\n").flows
    assert not flow.topics.takes("secret") and not flow.groups.takes("g9")


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        config(
            """
clusters = A, B
A.bootstrap.servers = a:9092
A->B.enabled = yes
A->C.enabled = true
tasks.max = none
topics = [
replication.policy.class = com.example.Mine
A.consumer.isolation.level = never
B->A.enabled = true
"""
        )
    told = str(raised.value).splitlines()
    for word in (
        "A->B.enabled=yes is neither true nor false",
        "A->C.enabled is about a flow from 'A' to 'C'",
        "B.bootstrap.servers is missing",
        "tasks.max=none is not a whole number",
        "topics: '[' is no regular expression",
        "replication.policy.class=com.example.Mine is not known here",
        "A.consumer.isolation.level=never is not one of read_committed, read_uncommitted",
    ):
        assert sum(line.startswith(word) for line in told) == 1, (word, told)
    assert len(told) == 7


@pytest.mark.parametrize("text", ["", "clusters = A", "clusters = A, A"])
def test_one_cluster_is_none_to_mirror_to(text: str) -> None:
    with pytest.raises(ConfigError, match="at least two clusters"):
        config(text)


def test_a_file_without_a_flow_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="No flow is enabled"):
        config(TWO.replace("true", "false"))


IDENTITY = "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"


def test_names_that_stay_the_same_must_not_go_in_a_circle() -> None:
    both = TWO + "B->A.enabled = true\n" + IDENTITY
    with pytest.raises(ConfigError, match=r"A->B, B->A .* in a circle"):
        config(both)
    three = """
clusters = A, B, C
A.bootstrap.servers=a:1
B.bootstrap.servers=b:1
C.bootstrap.servers=c:1
A->B.enabled=true
B->C.enabled=true
C->A.enabled=true
"""
    with pytest.raises(ConfigError, match="A->B, B->C, C->A"):
        config(three + IDENTITY)
    assert len(config(three).flows) == 3  # Names tell the way.


def test_topics_that_are_listed_may_go_both_ways_if_they_differ() -> None:
    found = config(
        TWO
        + IDENTITY
        + "B->A.enabled = true\nA->B.topics = orders-1\nB->A.topics = payments, users\n"
    )
    assert all(flow.policy == IdentityPolicy(".") for flow in found.flows)
