"""What stands in the tree is what Kafka's readers know, and comes back as it went in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster import znodes
from penstock.cluster.image.image import Endpoint, PartitionState
from penstock.cluster.znodes import (
    BrokerNode,
    FenceNode,
    FenceState,
    NodeUnreadable,
    PreviousShutdown,
    ProducerIdBlock,
    TopicNode,
)
from penstock.errors import ConfigError

STATE = PartitionState(
    leader=2,
    leader_epoch=7,
    isr=(2, 0),
    min_isr=2,
    elr=(1,),
    lke=(3,),
    leader_recovery_state=1,
    controller_epoch=4,
    partition_epoch=11,
)


def test_a_partition_state_is_kafkas_with_our_keys_after_it() -> None:
    assert znodes.encode_state(STATE) == (
        b'{"controller_epoch":4,"leader":2,"version":1,"leader_epoch":7,"isr":[2,0],'
        b'"leader_recovery_state":1,"elr":[1],"lke":[3],"min_isr":2}'
    )
    assert znodes.decode_state("/x", znodes.encode_state(STATE), 11) == STATE


def test_a_partition_state_written_by_apache_kafka_is_read() -> None:
    data = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":3,"isr":[0,1]}'
    assert znodes.decode_state("/x", data, 5) == PartitionState(
        leader=0, leader_epoch=3, isr=(0, 1), min_isr=1, controller_epoch=1, partition_epoch=5
    )


def test_a_topic_is_kafkas() -> None:
    node = TopicNode(
        topic_id=bytes(range(16)), partitions={0: (1, 2), 1: (2, 1)}, adding={}, removing={}
    )
    assert json.loads(node.encode()) == {
        "removing_replicas": {},
        "partitions": {"0": [1, 2], "1": [2, 1]},
        "topic_id": "AAECAwQFBgcICQoLDA0ODw",
        "adding_replicas": {},
        "version": 3,
    }


def test_a_broker_is_kafkas() -> None:
    node = BrokerNode(
        endpoints=(
            Endpoint("INTERNAL", "10.0.0.1", 9093, "SSL"),
            Endpoint("PLAIN", "::1", 9092, "PLAINTEXT"),
        ),
        rack="r1",
        registered_ms=1700,
    )
    assert json.loads(node.encode()) == {
        "features": {},
        "listener_security_protocol_map": {"INTERNAL": "SSL", "PLAIN": "PLAINTEXT"},
        "endpoints": ["INTERNAL://10.0.0.1:9093", "PLAIN://[::1]:9092"],
        "jmx_port": -1,
        "port": 9092,
        "host": "::1",
        "version": 5,
        "timestamp": "1700",
        "rack": "r1",
    }
    assert BrokerNode.decode("/x", node.encode()) == node


def test_a_broker_without_a_plain_listener_has_no_old_address() -> None:
    node = BrokerNode(endpoints=(Endpoint("SSL", "h", 9093, "SSL"),), rack=None, registered_ms=1)
    value = json.loads(node.encode())
    assert (value["host"], value["port"]) == (None, -1)
    assert "rack" not in value


def test_small_nodes_are_kafkas() -> None:
    assert znodes.encode_controller(3, 99) == b'{"version":1,"brokerid":3,"timestamp":"99"}'
    assert znodes.encode_cluster_id("abc") == b'{"version":"1","id":"abc"}'
    assert znodes.decode_cluster_id(b'{"version":"1","id":"abc"}') == "abc"
    assert znodes.encode_config({"a": "b"}) == b'{"version":1,"config":{"a":"b"}}'
    assert znodes.encode_config_change("topics", "t") == b'{"version":2,"entity_path":"topics/t"}'
    block = ProducerIdBlock(broker_id=1, first=2000, last=2999)
    assert block.encode() == (b'{"version":1,"broker":1,"block_start":"2000","block_end":"2999"}')
    assert ProducerIdBlock.decode(block.encode()) == block


def test_parents_come_before_children() -> None:
    seen = {""}
    for path in znodes.PERSISTENT_PATHS:
        assert path.rpartition("/")[0] in seen
        seen.add(path)


replicas = st.lists(st.integers(0, 9), max_size=4, unique=True).map(tuple)
assignments = st.dictionaries(st.integers(0, 50), replicas, max_size=5)


@given(
    st.binary(min_size=16, max_size=16),
    assignments,
    assignments,
    assignments,
    st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_a_topic_comes_back_as_it_was(
    topic_id: bytes,
    partitions: dict[int, tuple[int, ...]],
    adding: dict[int, tuple[int, ...]],
    removing: dict[int, tuple[int, ...]],
    unsettled: tuple[int, int] | None,
) -> None:
    node = TopicNode(
        topic_id=topic_id,
        partitions=partitions,
        adding=adding,
        removing=removing,
        unsettled=unsettled,
    )
    assert TopicNode.decode("/x", node.encode()) == node


@given(
    st.sampled_from(FenceState),
    st.text(),
    st.lists(st.text()).map(tuple),
    st.sampled_from(PreviousShutdown),
    st.integers(-1, 2**62),
)
def test_a_fence_comes_back_as_it_was(
    state: FenceState,
    incarnation: str,
    directories: tuple[str, ...],
    prev: PreviousShutdown,
    epoch: int,
) -> None:
    node = FenceNode(
        state=state,
        incarnation=incarnation,
        directory_ids=directories,
        prev_shutdown=prev,
        epoch=epoch,
    )
    assert FenceNode.decode("/x", node.encode()) == node


@given(st.dictionaries(st.text(), st.text()))
def test_settings_come_back_as_they_were(config: dict[str, str]) -> None:
    assert znodes.decode_config("/x", znodes.encode_config(config)) == config


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_entity_has_a_path_of_its_own(name: str) -> None:
    path = znodes.config_path("groups", name)
    kind, _, last = path.removeprefix("/config/").partition("/")
    assert kind == "groups"
    assert "/" not in last and last not in (".", "..")
    assert znodes.config_name("groups", last) == name


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_no_name_of_a_user_can_be_taken_for_the_default_or_for_a_path(name: str) -> None:
    stored = znodes.sanitized(name)
    assert znodes.desanitized(stored) == name
    assert set(stored).isdisjoint("/<>") and stored not in (".", "..")
    path = znodes.config_path("users", stored)
    assert path == f"/config/users/{stored}"
    assert znodes.config_name("users", stored) == stored


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("an app/2", "an%20app%2F2"),
        ("CN=x,O=y", "CN%3Dx%2CO%3Dy"),
        ("a.b-c_d", "a.b-c_d"),
        ("a*~+b", "a%2A%7E%2Bb"),
        ("ü", "%C3%BC"),
        ("<default>", "%3Cdefault%3E"),
        ("::1", "%3A%3A1"),
        ("..", "%2E%2E"),
    ],
)
def test_names_are_sanitized_as_kafka_does_it(name: str, stored: str) -> None:
    assert znodes.sanitized(name) == stored
    assert znodes.desanitized(stored) == name


def test_a_client_of_a_user_is_named_after_both() -> None:
    name = znodes.user_client_name("alice", "c")
    assert znodes.config_path("users", name) == "/config/users/alice/clients/c"
    assert znodes.user_of("users", name) == "alice"
    assert znodes.user_of("users", "alice") is None
    assert znodes.user_of("topics", name) is None


def test_usual_entities_are_written_as_they_are() -> None:
    assert znodes.config_path("topics", "a.b-c_d") == "/config/topics/a.b-c_d"
    assert znodes.config_path("brokers", "<default>") == "/config/brokers/<default>"


DECODERS = [
    lambda data: znodes.decode_state("/x", data, 0),
    lambda data: TopicNode.decode("/x", data),
    lambda data: BrokerNode.decode("/x", data),
    lambda data: FenceNode.decode("/x", data),
    lambda data: znodes.decode_config("/x", data),
    znodes.decode_cluster_id,
    ProducerIdBlock.decode,
]
BROKEN = (
    b"",
    b"\xff\xfe",
    b"{",
    b"[]",
    b"3",
    b'"text"',
    b"null",
    b"{}",
    b'{"topic_id":"short","partitions":{}}',
    b'{"topic_id":3,"partitions":{"x":1}}',
    b'{"endpoints":[1],"listener_security_protocol_map":{},"timestamp":"1"}',
    b'{"state":"asleep","incarnation":"","dir_ids":[],"prev_shutdown":"clean","epoch":1}',
    b'{"leader":1,"leader_epoch":1,"controller_epoch":1,"isr":3}',
    b'{"config":[]}',
    b'{"broker":1,"block_start":"x","block_end":"1"}',
)


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("data", BROKEN)
def test_a_node_of_something_else_is_named_in_a_sentence(decode, data: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match=r"The metadata node /\S+ cannot be read") as caught:
        decode(data)
    assert isinstance(caught.value, NodeUnreadable)


def test_a_controller_epoch_that_is_no_number_is_named() -> None:
    assert znodes.decode_controller_epoch(b"12") == 12
    with pytest.raises(NodeUnreadable, match="/controller_epoch"):
        znodes.decode_controller_epoch(b"twelve")


def test_the_clean_state_of_a_fence_is_reached_only_by_activation() -> None:
    node = FenceNode(
        state=FenceState.STARTING,
        incarnation="i",
        directory_ids=("d",),
        prev_shutdown=PreviousShutdown.LOSSY,
    )
    fenced = node.with_state(FenceState.FENCED)
    assert fenced.prev_shutdown is PreviousShutdown.LOSSY
    active = fenced.activated(42)
    assert (active.state, active.prev_shutdown) == (FenceState.ACTIVE, PreviousShutdown.CLEAN)
    assert active.epoch == 42
