"""Which partition of an internal topic a key belongs to, and how those topics are made."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.internal_topics import plan_for
from penstock.cluster.topics.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.config.broker import BrokerConfig
from penstock.replica.state_log import java_hash, partition_for

# Values as a Java shell prints them.
KNOWN_HASHES = {
    "": 0,
    "a": 97,
    "Aa": 2112,
    "BB": 2112,
    "hello": 99162322,
    "Hello World": -862545276,
    "polygenelubricants": -2147483648,
}


def by_hand(text: str) -> int:
    """The sum s[0]*31^(n-1) + ... + s[n-1] over UTF-16 units, in 32 bits."""
    units = text.encode("utf-16-be")
    numbers = [units[at] << 8 | units[at + 1] for at in range(0, len(units), 2)]
    total = sum(unit * 31 ** (len(numbers) - 1 - at) for at, unit in enumerate(numbers))
    return (total + (1 << 31)) % (1 << 32) - (1 << 31)


def test_hashes_are_those_of_java() -> None:
    assert {text: java_hash(text) for text in KNOWN_HASHES} == KNOWN_HASHES


@given(st.text())
def test_the_hash_is_the_polynomial_java_documents(text: str) -> None:
    assert java_hash(text) == by_hand(text)


@given(st.text(), st.integers(1, 1000))
def test_every_key_has_a_partition(key: str, count: int) -> None:
    assert partition_for(key, count) in range(count)


def test_the_one_hash_without_a_positive_counterpart_belongs_to_partition_zero() -> None:
    assert partition_for("polygenelubricants", 50) == 0


def test_a_lone_broker_makes_its_internal_topics_with_one_replica() -> None:
    plan = plan_for(CONSUMER_OFFSETS, BrokerConfig({}), broker_count=1)
    assert (plan.partition_count, plan.replication_factor) == (50, 1)
    assert plan.configs["cleanup.policy"] == "compact"


def test_a_cluster_obeys_the_replication_of_its_internal_topics() -> None:
    config = BrokerConfig({"zookeeper.connect": "localhost:2181"})
    assert plan_for(TRANSACTION_STATE, config, broker_count=1).replication_factor == 3


def test_the_transaction_log_is_never_led_by_a_replica_that_lacks_records() -> None:
    config = BrokerConfig({"transaction.state.log.num.partitions": "5"})
    plan = plan_for(TRANSACTION_STATE, config, broker_count=3)
    assert plan.partition_count == 5
    assert plan.configs == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


def test_any_other_topic_gets_the_defaults_of_the_broker() -> None:
    config = BrokerConfig({"num.partitions": "4", "default.replication.factor": "2"})
    plan = plan_for("orders", config, broker_count=3)
    assert (plan.partition_count, plan.replication_factor, plan.configs) == (4, 2, {})
