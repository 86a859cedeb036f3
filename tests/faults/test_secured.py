"""A secured cluster: nothing passes in clear, and in a short fault run every promise holds.

Brokers come to each other, to ZooKeeper and to clients over TLS, and everybody shows a password.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.faults.deployment import Plan
from tests.faults.rounds import chosen_clients, play
from tests.faults.secured import CLIENT, SecureDeployment
from tests.faults.table import FAULTS
from tests.support.broker import BrokerProcess
from tests.support.packets import PacketCapture
from tests.support.waiting import eventually

from penstock.cli.secure_files import ADMIN
from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic
from penstock.config.properties import read_properties

CLIENTS = ("send", "send", "watch", "join", "pipe")
TOPIC = "a-topic-that-nobody-on-the-way-may-know"
MARK = "a record that nobody on the way may read"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureDeployment]:
    place = tmp_path_factory.mktemp("cluster")
    plan = Plan(settings=(("zookeeper.session.timeout.ms", "10000"),))  # It also has to wait.
    with SecureDeployment(directory=place, plan=plan) as started:
        yield started


def pass_on(admin: Mapping[str, str], client: Mapping[str, str]) -> None:
    """A topic is made, and a marked record goes to all replicas and to a consumer."""
    with Admin(admin) as made:
        if TOPIC not in {listing.name for listing in made.list_topics()}:
            made.create_topics([NewTopic(name=TOPIC)])
    producer = Producer({**client, "acks": "all"})
    producer.produce(TOPIC, MARK, key=f"the key of {MARK}")
    assert producer.flush(120) == 0
    consumer = Consumer({**client, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    got = eventually(
        lambda: [one.value() for one in consumer.consume(1, 1) if not one.error()], timeout_s=120
    )
    consumer.close()
    assert got == [MARK.encode()]


def test_a_record_and_its_topic_are_seen_where_nothing_is_encrypted(
    shared_broker: BrokerProcess,
) -> None:
    where = {"bootstrap.servers": shared_broker.address}
    with PacketCapture({shared_broker.port}) as wire:
        pass_on(where, where)
        eventually(lambda: wire.has(MARK) and wire.has(TOPIC))
        assert wire.lost() == 0


def test_no_packet_of_a_secured_cluster_holds_a_record_a_name_or_a_password(
    cluster: SecureDeployment,
) -> None:
    ports = {node.port for node in cluster.brokers.values()}
    zookeepers = {server.port for server in cluster.zookeepers}
    where = {"bootstrap.servers": cluster.bootstrap}
    cluster.wait_for_all_brokers()
    with PacketCapture(ports | zookeepers) as wire:
        pass_on({**where, **cluster.admin_settings}, {**where, **cluster.client_settings})
        eventually(lambda: wire.seen_ports() == ports | zookeepers)
        assert wire.lost() == 0
    assert not any(map(wire.has, (MARK, TOPIC, "/brokers", "readers", *passwords_of(cluster))))


def passwords_of(cluster: SecureDeployment) -> set[str]:
    files = (cluster.files.librdkafka_client(user) for user in (ADMIN, CLIENT))
    found = {read_properties(file)["sasl.password"] for file in files}
    assert all(one.startswith("very-secret") for one in found)
    return found | {"very-secret"}  # The brokers' own begins like that, too.


def test_a_secured_cluster_keeps_its_promises_when_leaders_are_killed(
    cluster: SecureDeployment, tmp_path: Path
) -> None:
    cluster.wait_for_all_brokers()  # One that was starved may have lost its session.
    played = play(
        cluster,
        FAULTS["kill-leader"],
        tmp_path / "round",
        topic="kill-leader",
        specs=chosen_clients(",".join(f"confluent-kafka:{role}" for role in CLIENTS), 0),
        seconds=4.0,
        seed="secured",
    )
    logs = "".join(node.log for node in cluster.brokers.values())
    assert played.is_good, "\n".join([*played.verdict.lines(), *played.notes])
    assert played.blows > 0
    assert played.verdict.acked > 0
    assert played.verdict.read > 0
    assert "very-secret" not in logs
